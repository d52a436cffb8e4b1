"""Estimates of change rates from visits that only show whether a page has changed (reference 12).

A page that changes with Poisson rate r has changed between two visits with probability
1 - exp(-r gap). A visit does not show how many times it changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHAPE: Final = 0.5  # the weight of a prior, in changes
STEPS: Final = 60  # at most, of Newton's method; about ten are needed
TOLERANCE: Final = 1e-10


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
    levels: Sequence[NDArray[np.int64]],
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
    groups: NDArray[np.int64],
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


def _sums(groups: NDArray[np.int64], column: Floats) -> Floats:
    return np.bincount(groups, column).astype(np.float64)
