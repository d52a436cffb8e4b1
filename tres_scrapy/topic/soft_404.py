"""Pages that say "not found" with status 200."""

from __future__ import annotations

import re

from tres_scrapy.topic.text import Page, tokenise

_LONG = 150  # words; a longer page says more than that something is missing
_MISSING = re.compile(
    r"\b404\b|\bnot\s+found\b|\b(?:no\s+longer|does\s*n[o']t|cannot\s+be)\s+(?:exists?|available|found)\b",
    re.IGNORECASE,
)


def is_soft_404(page: Page) -> bool:
    """Say whether a short page speaks of a missing page in its title or in its first words."""
    if not _MISSING.search(f"{page.title} {page.text[:200]}"):
        return False
    return len(tokenise(page.text)) < _LONG
