"""When pages of the changing web change, vanish and come back, in days of that web."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.noise import Ints, mix, unit

BLOCK = 64  # changes drawn at a time
VANISHING, RETURNING = 0.06, 0.5  # shares of pages that vanish, of vanished pages that come back
LIFE = 10.0  # days in which a page vanishes; it returns within as many
GONE, MISSING = 410, 404


class Changes:
    """The true history of n pages: page i changes by a Poisson process of rate `rates[i]`."""

    def __init__(self, key: int, rates: NDArray[np.float64]) -> None:
        self.key, self.rates = key, rates
        self._times: dict[int, list[float]] = {}
        pages: Ints = np.arange(len(rates))
        fate, first, second, code = (unit(mix(key, 71, pages, lane)) for lane in range(4))
        vanishes = fate < VANISHING
        returns = fate < VANISHING * RETURNING
        self.vanishes = np.where(vanishes, first * LIFE, np.inf)
        self.returns = np.where(returns, self.vanishes + 0.1 + second * LIFE, np.inf)
        self.status: Ints = np.where(code < 0.5, MISSING, GONE)

    def times(self, page: int, day: float) -> list[float]:
        """Return the times of the changes of a page up to a day, in order."""
        known = self._times.setdefault(page, [])
        while not known or known[-1] <= day:
            noise = unit(mix(self.key, 70, page, len(known) + np.arange(BLOCK)))
            gaps = -np.log1p(-noise) / self.rates[page]
            known.extend(((known[-1] if known else 0.0) + np.cumsum(gaps)).tolist())
        return known[: bisect_right(known, day)]

    def is_there(self, page: int, day: float) -> bool:
        """Return whether a page exists on a day."""
        return not self.vanishes[page] <= day < self.returns[page]

    def presence(self, page: int, start: float, end: float) -> float:
        """Return for how many days between two moments a page existed."""
        away = min(end, self.returns[page]) - max(start, self.vanishes[page])
        return max(0.0, end - start) - max(0.0, float(away))
