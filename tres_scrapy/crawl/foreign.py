"""Pages in a language that the pack does not read: their verdicts mean little."""

from __future__ import annotations

from collections import Counter
from typing import Final

FOREIGN: Final = "foreign/"  # in the counts of a crawl, before the language


def count_foreign(counts: Counter[str], language: str, packs: str) -> None:
    """Count a page whose language is known and another than the pack's; "" is any."""
    if packs and language not in {packs, ""}:
        counts[FOREIGN + language] += 1


def foreign_pages(counts: Counter[str]) -> Counter[str]:
    """Return the number of such pages by language, from the counts of a crawl."""
    return Counter(
        {
            name.removeprefix(FOREIGN): count
            for name, count in counts.items()
            if name.startswith(FOREIGN)
        }
    )
