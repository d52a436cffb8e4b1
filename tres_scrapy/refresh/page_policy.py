"""What chooses the next page of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tres_scrapy.refresh.page_table import Mask, PageTable
from tres_scrapy.refresh.rate import Floats


@dataclass(frozen=True)
class Bounds:
    """The shortest and longest time between two visits of a page, and the jitter."""

    least: float = 0.0
    most: float = float("inf")
    jitter: float = 0.0  # share by which an interval may be longer or shorter


@dataclass(frozen=True)
class PolicySetup:
    """The arguments that policies are created with: `pace` in requests a second.

    `quiet` counts the visits of each page without a change, [n]. `intervals` are those kept from
    an earlier run, [n], NaN where unknown.
    """

    pages: PageTable
    pace: float
    bounds: Bounds
    seed: int
    quiet: Floats
    intervals: Floats


class PagePolicy(Protocol):
    """Chooses the page to fetch next; the page table is updated before `end` is called."""

    def select(self, now: float, allowed: Mask) -> int:
        """Return one of the allowed pages, [n]; at least one is allowed."""

    def begin(self, page: int, now: float) -> None:
        """Note that a fetch of the page begins."""
        return

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Learn whether the page had changed; None: nothing can be learned."""
        return

    def dump(self) -> bytes | None:
        """Return what the next run needs besides the page table, None for nothing."""
        return None

    def restore(self, state: bytes) -> None:
        """Load the state that an earlier run kept, if it is one of this policy."""
        return


def oldest(pages: PageTable, allowed: Mask) -> int:
    """Return the first of the allowed pages with the oldest visit."""
    return int(np.argmin(np.where(allowed, pages.fetched, np.inf)))
