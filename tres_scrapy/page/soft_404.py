"""Pages that say "not found" with status 200."""

from __future__ import annotations

import re

from tres_scrapy.page.text import Page, tokenise

_LONG = 150  # words; a longer page has other content
_NUMBER = re.compile(r"\b404\b")
_MISSING = re.compile(
    r"\b(?:error|page)\W+404\b|\b404\W+(?:error|page|not)\b|\bnot\s+found\b"
    r"|\b(?:no\s+longer|does\s*n[o'\u2019]t|cannot\s+be)\s+(?:exists?|available|found)\b",
    re.IGNORECASE,
)


def is_soft_404(page: Page) -> bool:
    """Return whether a short page reports a missing page in its title or first words."""
    told = _NUMBER.search(page.title) or _MISSING.search(f"{page.title} {page.text[:200]}")
    return told is not None and len(tokenise(page.text)) < _LONG
