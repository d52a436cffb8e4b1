"""Eq. 5, 6 and 7 of the paper as interpreted here (docs/surface.md says why)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.surface.acquired import Ints
from tres_scrapy.surface.keyword_feature import Floats


def response_sizes(kappa: NDArray[np.floating], found: Floats) -> Floats:
    """Return |R(s_t, a_i)|, [n], by Eq. 5 from kappa [n, t] with row sums of one and |R_j| [t]."""
    sizes: Floats = kappa @ found
    return sizes


def rewards(sizes: Floats, df: Ints, total: float) -> Floats:
    """Return r(s_t, a) = (|R(s_t, a)| - DF(s_t, a)) / |D|, [n] (Eq. 6).

    It is exact only if a query returns every record that holds its keyword.
    """
    rewards: Floats = (sizes - df) / total
    return rewards


def q_values(rewards: Floats, df: Ints, acquired: int, total: float, gamma: float = 1.0) -> Floats:
    """Return Q(s_t, a_i), [n], one step ahead (Eq. 7, h = 1); |S_t| is `acquired`, |D| is `total`.

    With |R_j|/|D| = DF_j/|D| + r_j the bracket is |R_j|/|D| * (1 - |S_{t+1}|/|D|). Its maximum is
    at the largest response of another keyword for every a_i, so no pairs are compared.
    """
    if len(rewards) < 2:
        return rewards.copy()
    shares = df / total + rewards  # |R_j| / |D|
    left = 1 - acquired / total - rewards  # the share of the database that remains after a_i
    best = np.where(left >= 0, _best_other(shares), -_best_other(-shares))
    q: Floats = rewards + gamma * best * left
    return q


def _best_other(values: Floats) -> Floats:
    """Return the largest of the other values for each position, [n]."""
    first = int(values.argmax())
    best = np.full(len(values), values[first])
    best[first] = np.delete(values, first).max()
    return best
