"""Pages in a language that the pack was not trained on: their verdicts are unreliable."""

from __future__ import annotations

from collections import Counter
from typing import Final

FOREIGN: Final = "foreign/"  # prefix in the counts of a crawl, followed by the language


def count_foreign(counts: Counter[str], language: str, packs: str) -> None:
    """Count a page whose known language is not the pack's; a pack with "" reads any."""
    if packs and language not in {packs, ""}:
        counts[FOREIGN + language] += 1


def foreign_pages(counts: Counter[str]) -> Counter[str]:
    """Return the number of foreign pages by language, from the counts of a crawl."""
    return Counter(
        {
            name.removeprefix(FOREIGN): count
            for name, count in counts.items()
            if name.startswith(FOREIGN)
        }
    )
