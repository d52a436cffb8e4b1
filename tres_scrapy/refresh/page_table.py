"""The statistics of all pages of a collection, in columns, and the groups of similar pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.refresh.rate import Floats, pooled_rates

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
MOST_ARMS = 64
NUMBERS = re.compile(r"\d+")


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


def group_name(url: str) -> str:
    """Return the host and first folder of a URL with numbers as #: a/2024/x gives a/#."""
    parts = urlsplit(url)
    folder = parts.path.split("/")[1] if parts.path.count("/") > 1 else ""
    return f"{parts.hostname or ''}/{NUMBERS.sub('#', folder)}"


def kind_name(url: str) -> str:
    """Return the first folder of a URL: folders of one name on all hosts form a group."""
    return group_name(url).partition("/")[2]


def number(names: Sequence[str]) -> Ints:
    """Return a number from 0 for each name; equal names have equal numbers."""
    return np.unique(np.array(names, dtype=str), return_inverse=True)[1].astype(np.int64)


def arms_of(groups: Ints, rates: Floats, weights: Floats, most: int = MOST_ARMS) -> Ints:
    """Return the arm of each page: its group, or merged groups if there are more than `most`.

    Groups are ordered by mean rate, then by mean weight, and cut into arms with about the same
    number of pages.
    """
    count = np.bincount(groups)
    if len(count) <= most:
        return groups
    rate, weight = (np.bincount(groups, column) / count for column in (rates, weights))
    order = np.lexsort((weight, rate))
    before = np.cumsum(count[order]) - count[order]
    arm = np.empty(len(count), np.int64)
    arm[order] = before * most // len(groups)
    return np.unique(arm[groups], return_inverse=True)[1].astype(np.int64)
