"""The policy that chooses the next page of a collection: static optimisation (Eq. 8).

A page that changes with chance d and is fetched with probability p in each slot is fresh for the
share F = p / (p + d - d p) of the time. The sum of w F over all pages is concave in p. At its
maximum, w d / (d + (1 - d) p)^2 is the same price for every page that is fetched at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tres_scrapy.refresh.page_table import Floats, Mask, PageTable

MIN_CHANCE: Final = 1e-12  # bounds for the chance of a change
MAX_CHANCE: Final = 1 - 1e-9
STEPS: Final = 100  # of the bisection
FLOOR: Final = 0.02  # share of all requests that are shared evenly


@dataclass(frozen=True)
class Bounds:
    """The shortest and longest time between two visits of a page, and the jitter."""

    least: float = 0.0
    most: float = float("inf")
    jitter: float = 0.0  # share by which an interval may be longer or shorter


class StaticPolicy:
    """Fetches the page that is due first, even before it is due: no request is left unused.

    Each page gets the optimal share of requests for the change rates estimated so far, within the
    bounds; 2 % of all requests are shared evenly. The visits of a page are evenly spaced. `pace` is
    the number of requests in a unit of time. The page table is updated before `end` is called.
    """

    def __init__(self, pages: PageTable, pace: float, bounds: Bounds, seed: int) -> None:
        self._pages, self._pace, self._bounds = pages, pace, bounds
        self._random = np.random.default_rng(seed)
        self._factors = self._jittered(len(pages))
        self._period = int(np.clip(len(pages) // 200, 1, 500))  # visits between two solutions
        self._visits = 0
        self.intervals = self._solve()

    def select(self, now: float, allowed: Mask) -> int:
        """Return the allowed page, [n], that is due first; at least one is allowed."""
        due = self._pages.fetched + self.intervals * self._factors
        return int(np.argmin(np.where(allowed, due, np.inf)))

    def begin(self, page: int) -> None:
        """Draw the jitter of the page's next interval: a fetch begins."""
        self._factors[page] = self._jittered(1)[0]

    def end(self) -> None:
        """Count a visit and solve again after every n/200 visits (at least 1, at most 500)."""
        self._visits += 1
        if self._visits % self._period == 0:
            self.intervals = self._solve()

    def _solve(self) -> Floats:
        """Estimate all rates again and return the intervals of the optimal shares."""
        pages, pace, bounds, count = self._pages, self._pace, self._bounds, len(self._pages)
        least = np.maximum(np.full(count, FLOOR / count), 1 / (bounds.most * pace))
        most = np.full(count, np.inf)
        if bounds.least > 0:
            most = np.maximum(least, 1 / (bounds.least * pace))
        shares = allocate_within(chance(pages.rates(pace) / pace), pages.weights, least, most)
        return 1 / (shares * pace)

    def _jittered(self, count: int) -> Floats:
        return 1 + self._bounds.jitter * self._random.uniform(-1, 1, count)


def oldest(pages: PageTable, allowed: Mask) -> int:
    """Return the first of the allowed pages with the oldest visit."""
    return int(np.argmin(np.where(allowed, pages.fetched, np.inf)))


def chance(rates: Floats) -> Floats:
    """Return the chance of a change in one slot, from Poisson rates in changes a slot."""
    return np.clip(-np.expm1(-rates), MIN_CHANCE, MAX_CHANCE)


def allocate_within(chances: Floats, weights: Floats, least: Floats, most: Floats) -> Floats:
    """Return the optimal probabilities of a fetch in a slot, between `least` and `most`, [n] each.

    They are found by bisection and sum up to 1. If `least` alone exceeds that, it is scaled down;
    if `most` fits in it, it is returned. Chances and weights are above 0.
    """
    most = np.minimum(most, 1.0)
    if least.sum() >= 1:
        scaled: Floats = least / least.sum()
        return scaled
    if most.sum() <= 1:
        return most
    odds, lift = chances / (1 - chances), np.sqrt(weights * chances) / (1 - chances)
    # The level is the price to the power of -1/2.
    low, high = 0.0, float(((most + odds) / lift).max())
    for _ in range(STEPS):
        level = (low + high) / 2
        if np.clip(level * lift - odds, least, most).sum() > 1:
            high = level
        else:
            low = level
    return np.clip(low * lift - odds, least, most)
