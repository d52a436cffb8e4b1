"""The policies that choose the next page of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tres_scrapy.refresh.allocation import allocate_within, chance
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


class IntervalPolicy(PagePolicy):
    """Fetches the page that is due first, even before it is due: no request is left unused."""

    def __init__(self, pages: PageTable, intervals: Floats, bounds: Bounds, seed: int) -> None:
        self.pages, self.bounds, self._random = pages, bounds, np.random.default_rng(seed)
        self.intervals = np.clip(intervals, bounds.least, bounds.most)
        self._factors = self._jittered(len(pages))

    def select(self, now: float, allowed: Mask) -> int:
        """Return the allowed page that is due first."""
        due = self.pages.fetched + self.intervals * self._factors
        return int(np.argmin(np.where(allowed, due, np.inf)))

    def begin(self, page: int, now: float) -> None:
        """Draw the jitter of the next interval."""
        self._factors[page] = self._jittered(1)[0]

    def _jittered(self, count: int) -> Floats:
        return 1 + self.bounds.jitter * self._random.uniform(-1, 1, count)


class StaticPolicy(IntervalPolicy):
    """Static optimisation with change rates estimated from the visits so far (default).

    Each page gets the optimal share of requests for the present estimates (Eq. 8) within the
    bounds; 2 % of all requests are shared evenly. The visits of a page are evenly spaced. `pace` is
    the number of requests in a unit of time.
    """

    floor = 0.02

    def __init__(self, pages: PageTable, pace: float, bounds: Bounds, seed: int) -> None:
        super().__init__(pages, np.full(len(pages), len(pages) / pace), bounds, seed)
        self._pace = pace
        self._period = int(np.clip(len(pages) // 200, 1, 500))  # visits between two solutions
        self._visits = 0
        self.solve()

    def solve(self) -> None:
        """Estimate all rates again and share out the requests."""
        pages, count = self.pages, len(self.pages)
        self.rates = pages.rates(self._pace)
        even = np.full(count, self.floor / count)
        least = np.maximum(even, 1 / (self.bounds.most * self._pace))
        most = np.full(count, np.inf)
        if self.bounds.least > 0:
            most = np.maximum(least, 1 / (self.bounds.least * self._pace))
        shares = allocate_within(chance(self.rates / self._pace), pages.weights, least, most)
        self.intervals = 1 / (shares * self._pace)

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Count the visit and solve again after every n/200 visits (at least 1, at most 500)."""
        self._visits += 1
        if self._visits % self._period == 0:
            self.solve()
