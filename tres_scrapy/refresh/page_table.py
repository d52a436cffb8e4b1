"""The statistics of all pages of a collection, in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.refresh.rate import Floats, pooled_rates

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class PageTable:
    """What is known of n pages, one column each; times are in seconds, or slots of a simulation.

    `fetched` is the time of the last visit. `changes` counts the visits that found a change;
    `changed_time` and `quiet_time` sum the gaps before these and before the other visits. `levels`
    are groups of similar pages, from large to small; `arms` are the groups that bandits use.
    """

    def __init__(self, weights: Floats, arms: Ints, levels: Sequence[Ints] = ()) -> None:
        self.weights, self.arms = weights, arms
        self.levels = levels or (arms,)
        self.fetched = np.zeros(len(weights))
        self.changes = np.zeros(len(weights))
        self.changed_time = np.zeros(len(weights))
        self.quiet_time = np.zeros(len(weights))

    def __len__(self) -> int:
        return len(self.weights)

    def see(self, page: int, changed: bool | None, now: float) -> None:
        """Record a visit; None: there was no earlier copy to compare with."""
        gap = now - self.fetched[page]
        if changed is not None and gap > 0:
            self.changes[page] += changed
            (self.changed_time if changed else self.quiet_time)[page] += gap
        self.fetched[page] = now

    def arm_weights(self) -> Floats:
        """Return the mean weight of the pages of each arm, [K]."""
        return np.bincount(self.arms, self.weights) / np.maximum(np.bincount(self.arms), 1)

    def rates(self, pace: float) -> Floats:
        """Return the estimated change rate of each page, [n], at `pace` requests a unit of time."""
        return pooled_rates(
            self.changes,
            self.changed_time,
            self.quiet_time,
            self.levels,
            expected=pace / len(self),
        )
