"""How often a page changes, from visits that tell only whether it has (paper, reference 12).

Between two visits a page that changes with Poisson rate r has changed with probability
1 - exp(-r gap); how many times, a visit does not tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHAPE: Final = 0.5  # changes that a prior is worth
STEPS: Final = 60  # of Newton's method; it needs some ten
TOLERANCE: Final = 1e-10


def naive_rate(changes: Floats, time: Floats) -> Floats:
    """Return changes seen by time watched; too low where a page changes between two visits twice.

    Cho and Garcia-Molina (2003) show it to be biased however long one watches.
    """
    return changes / time


def bias_reduced_rate(changes: Floats, visits: Floats, gap: Floats) -> Floats:
    """Return -log((n - x + 0.5) / (n + 0.5)) / gap, for visits at one gap (the same paper)."""
    return -np.log((visits - changes + 0.5) / (visits + 0.5)) / gap


def likely_rate(gaps: Floats, changed: NDArray[np.bool_]) -> float:
    """Return the maximum-likelihood rate of one page from each of its visits, [n] each.

    0 where it never changed, infinity where it always had.
    """
    if not changed.any() or changed.all():
        return float("inf") if changed.any() else 0.0
    quiet, seen = float(gaps[~changed].sum()), gaps[changed]
    rate = len(seen) / float(gaps.sum())
    for _ in range(STEPS):
        grown = np.expm1(rate * seen)
        slope = -float((seen**2 * (grown + 1) / grown**2).sum())
        step = (quiet - float((seen / grown).sum())) / slope
        rate += step
        if abs(step) <= TOLERANCE * rate:
            break
    return rate


def shrunk_rate(changes: Floats, changed_time: Floats, quiet_time: Floats, prior: Floats) -> Floats:
    """Return the rates of n pages, each drawn towards the rate `prior` that is expected of it.

    `changes` counts the visits that found a change, `changed_time` and `quiet_time` are the sums of
    the gaps before those and before the others, [n] each. The prior is worth half a change; without
    it and with gaps of one length it is the maximum-likelihood rate, otherwise within a few percent
    of it.
    """
    gap = changed_time / np.maximum(changes, 1)
    quiet = quiet_time + SHAPE / prior
    # The root of x z / (e^z - 1) + SHAPE - r quiet, z = r gap, convex and falling in r: Newton's
    # method climbs to it from below.
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
    """Return the rates of n pages, [n]: few visits of a page count less than those of its group.

    `levels` are ever smaller groups, whole numbers from 0, [n] each. A page is drawn towards the
    rate of its smallest group, a group towards that of the one around it, the largest ones towards
    the rate of all pages, and this towards `expected`.
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
    """Return the rate of the group of each page, [n]; pages of a group have one prior."""
    count = np.bincount(groups)
    expected = np.bincount(groups, priors) / np.maximum(count, 1)
    each = shrunk_rate(
        _sums(groups, changes),
        _sums(groups, changed_time),
        _sums(groups, quiet_time),
        np.maximum(expected, 1e-300),  # a group without pages expects nothing
    )
    return each[groups]


def _sums(groups: NDArray[np.int64], column: Floats) -> Floats:
    return np.bincount(groups, column).astype(np.float64)
