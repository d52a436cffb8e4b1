"""MAX, the most pages fetched from one domain (P 2.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cap:
    """MAX, the most pages fetched from one domain; an adaptive MAX falls from `first` to `last`.

    As in the authors' code, an adaptive MAX is halved after each third of the crawl.
    """

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Cap | None:
        """Read "10", "5_2" or "none"; raise ValueError for anything else."""
        if text.strip().lower() in {"", "none"}:
            return None
        numbers = re.fullmatch(r"(\d+)(?:_(\d+))?", text.strip())
        if numbers is None:
            raise ValueError("must be a number, two like 5_2, or none")
        cap = cls(int(numbers[1]), int(numbers[2] or numbers[1]))
        if cap.last < 1:
            raise ValueError("must be at least 1: write none for no limit")
        if cap.first < cap.last:
            raise ValueError(f"must not rise: write {cap.last}_{cap.first}")
        return cap

    def __str__(self) -> str:
        return f"{self.first}_{self.last}" if self.first != self.last else str(self.first)

    def at(self, progress: float) -> int:
        """Return the cap when the share `progress` (0 to 1) of the crawl is done."""
        return max(self.last, self.first >> int(3 * progress))
