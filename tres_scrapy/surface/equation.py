"""Eq. 5, 6 and 7 of the paper as they are read (docs/surface.md says why)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.surface.acquired import Ints
from tres_scrapy.surface.keyword_feature import Floats


def response_sizes(kappa: NDArray[np.floating], found: Floats) -> Floats:
    """Eq. 5: estimate |R(s_t, a_i)|, [n], by kappa [n, t], whose rows sum to one, and |R_j| [t]."""
    sizes: Floats = kappa @ found
    return sizes


def rewards(sizes: Floats, df: Ints, total: float) -> Floats:
    """Eq. 6: r(s_t, a) = (|R(s_t, a)| - DF(s_t, a)) / |D|, [n].

    Exact only where a query returns every record that holds its keyword.
    """
    rewards: Floats = (sizes - df) / total
    return rewards


def q_values(rewards: Floats, df: Ints, acquired: int, total: float, gamma: float = 1.0) -> Floats:
    """Eq. 7: Q(s_t, a_i), [n], one step ahead (h = 1), for |S_t| = `acquired` and |D| = `total`.

    With |R_j|/|D| = DF_j/|D| + r_j the bracket is |R_j|/|D| * (1 - |S_{t+1}|/|D|): the largest
    response of another keyword, whatever a_i is, so that no pair of keywords need be looked at.
    """
    if len(rewards) < 2:
        return rewards.copy()
    shares = df / total + rewards  # |R_j| / |D|
    left = 1 - acquired / total - rewards  # of the database after a_i
    best = np.where(left >= 0, _best_other(shares), -_best_other(-shares))
    q: Floats = rewards + gamma * best * left
    return q


def _best_other(values: Floats) -> Floats:
    """Return for each place the largest value of all others, [n]."""
    first = int(values.argmax())
    best = np.full(len(values), values[first])
    best[first] = np.delete(values, first).max()
    return best
