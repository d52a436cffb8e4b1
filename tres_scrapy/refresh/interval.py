"""Policies that give each page an interval and fetch the page that is due first."""

from __future__ import annotations

import numpy as np

from tres_scrapy.refresh.allocation import allocate_within, chance
from tres_scrapy.refresh.page_policy import Bounds, PagePolicy
from tres_scrapy.refresh.page_table import Mask, PageTable
from tres_scrapy.refresh.rate import Floats


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
