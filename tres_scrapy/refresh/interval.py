"""Policies that give each page an interval and fetch the page that is due first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tres_scrapy.refresh.allocation import allocate_within, chance
from tres_scrapy.refresh.bandit import Floats, Mask
from tres_scrapy.refresh.page_policy import PagePolicy
from tres_scrapy.refresh.page_table import PageTable


@dataclass(frozen=True)
class Bounds:
    """The shortest and longest time between two visits of a page, and the jitter."""

    least: float = 0.0
    most: float = float("inf")
    jitter: float = 0.0  # share by which an interval may be longer or shorter


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


@dataclass(frozen=True)
class IntervalRule:
    """How the interval of a page changes after a visit.

    After a change it shrinks to the share `shrink`, otherwise it grows by the share `grow`. With
    `halves` only the part above the shortest interval shrinks, as in StormCrawler; without, all of
    it, as in Nutch.
    """

    shrink: float = 0.5
    grow: float = 0.5
    halves: bool = True


STORM, NUTCH = IntervalRule(), IntervalRule(shrink=0.8, grow=0.2, halves=False)


class AdaptivePolicy(IntervalPolicy):
    """The rule of common recrawlers: a shorter interval after a change, otherwise a longer one."""

    def __init__(
        self,
        pages: PageTable,
        intervals: Floats,
        bounds: Bounds,
        seed: int,
        rule: IntervalRule = STORM,
    ) -> None:
        super().__init__(pages, intervals, bounds, seed)
        self._rule = rule

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Shorten or lengthen the interval of the page."""
        if changed is None:
            return
        interval, rule, least = self.intervals[page], self._rule, self.bounds.least
        floor = least * (1 - rule.shrink) if rule.halves else 0.0
        moved = interval * rule.shrink + floor if changed else interval * (1 + rule.grow)
        self.intervals[page] = np.clip(moved, least, self.bounds.most)


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
