"""The statistics of all pages of a collection, and the change rates that they suggest.

A page that changes with Poisson rate r has changed between two visits with probability
1 - exp(-r gap). A visit does not show how many times it changed (reference 12).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
NUMBERS: Final = re.compile(r"\d+")
SHAPE: Final = 0.5  # the weight of a prior, in changes
STEPS: Final = 60  # at most, of Newton's method; about ten are needed
TOLERANCE: Final = 1e-10


class PageTable:
    """What is known of n pages, one column each; times are in seconds, or slots of a simulation.

    `fetched` is the time of the last visit. `changes` counts the visits that found a change;
    `changed_time` and `quiet_time` sum the gaps before these and before the other visits. `levels`
    are groups of similar pages, from large to small, [n] each.
    """

    def __init__(self, weights: Floats, levels: Sequence[Ints]) -> None:
        self.weights, self.levels = weights, levels
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


def shrunk_rate(changes: Floats, changed_time: Floats, quiet_time: Floats, prior: Floats) -> Floats:
    """Return the rates of n pages, each shrunk towards its expected rate `prior`.

    `changes` counts the visits that found a change; `changed_time` and `quiet_time` sum the gaps
    before these and before the other visits, [n] each. The prior has the weight of half a change.
    Without a prior and with equal gaps this is the maximum-likelihood rate, with unequal gaps it is
    within a few percent of it.
    """
    gap = changed_time / np.maximum(changes, 1)
    quiet = quiet_time + SHAPE / prior
    # Solve x z / (e^z - 1) + SHAPE - r quiet = 0 with z = r gap. The left side is convex and falls
    # with r, so Newton's method reaches the root from below.
    rate = (SHAPE + changes) / (quiet + changed_time)
    for _ in range(STEPS):
        z = np.clip(rate * gap, 1e-9, 300.0)
        grown = np.expm1(z)
        value = changes * z / grown + SHAPE - rate * quiet
        slope = changes * gap * (grown - z * (grown + 1)) / grown**2 - quiet
        step = -value / slope
        rate = rate + step
        if np.all(np.abs(step) <= TOLERANCE * rate):
            break
    return rate


def pooled_rates(
    changes: Floats,
    changed_time: Floats,
    quiet_time: Floats,
    levels: Sequence[Ints],
    expected: float,
) -> Floats:
    """Return the rates of n pages, [n]; a page with few visits takes the rate of its group.

    `levels` are groups from large to small, numbered from 0, [n] each. A page is shrunk towards the
    rate of its smallest group, a group towards the group around it, the largest groups towards the
    rate of all pages, and that rate towards `expected`.
    """
    rates = np.full(len(changes), expected)
    for groups in (np.zeros(len(changes), np.int64), *levels):
        rates = _of_groups(groups, changes, changed_time, quiet_time, rates)
    return shrunk_rate(changes, changed_time, quiet_time, rates)


def _of_groups(
    groups: Ints,
    changes: Floats,
    changed_time: Floats,
    quiet_time: Floats,
    priors: Floats,
) -> Floats:
    """Return the rate of the group of each page, [n]; its prior is the mean over its pages."""
    count = np.bincount(groups)
    expected = np.bincount(groups, priors) / np.maximum(count, 1)
    each = shrunk_rate(
        _sums(groups, changes),
        _sums(groups, changed_time),
        _sums(groups, quiet_time),
        np.maximum(expected, 1e-300),  # a group without pages has no prior
    )
    return each[groups]


def _sums(groups: Ints, column: Floats) -> Floats:
    return np.bincount(groups, column).astype(np.float64)
