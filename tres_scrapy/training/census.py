"""Counts of the documents that were read and left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tres_scrapy.training.source import Unreadable

NAMED_FAULTS: Final = 5


@dataclass(slots=True)
class Census:
    """The number of documents read, and of those left out, by reason."""

    read: int = 0
    unreadable: int = 0
    empty: int = 0
    duplicates: int = 0
    clashes: int = 0
    foreign: Counter[str] = field(default_factory=Counter)
    relevant: int = 0
    irrelevant: int = 0
    faults: list[Unreadable] = field(default_factory=list)

    def add_fault(self, fault: Unreadable) -> None:
        """Count an unreadable document; the first few are named in the summary."""
        self.unreadable += 1
        if len(self.faults) < NAMED_FAULTS:
            self.faults.append(fault)

    def __str__(self) -> str:
        foreign = ", ".join(f"{code} {count}" for code, count in self.foreign.most_common())
        lines = [
            f"{self.read} documents read: {self.relevant} relevant, {self.irrelevant} irrelevant",
            f"{self.duplicates} left out as duplicates, {self.clashes} with the other label",
            f"{self.empty} left out without words",
            f"{self.foreign.total()} left out in another language: {foreign}",
            f"{self.unreadable} unreadable",
        ]
        kept = [line for line in lines if not line.startswith("0 ")]
        unnamed = self.unreadable - len(self.faults)
        return "\n".join(
            [*kept, *(f"  {fault}" for fault in self.faults)]
            + ([f"  and {unnamed} more"] if unnamed else [])
        )
