"""The split of a leaf: Eq. 3 and Eq. 4 (P 2.6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NOISE = 1e-12  # a smaller reduction is rounding, not variance


class Split(NamedTuple):
    """The partition x[feature] < threshold | x[feature] >= threshold; its variance reduction VR."""

    feature: int
    threshold: float
    reduction: float


def best_split(
    x: NDArray[np.float32], rewards: NDArray[np.float32], min_share: float = 0.0
) -> Split | None:
    """Return the split of experience samples with the highest positive VR, or None.

    `x` [n, features], `rewards` [n]. Thresholds lie midway between neighbouring values. Among equal
    reductions, the lowest threshold of the first feature wins. Each side keeps at least the share
    `min_share` of the samples.
    """
    count = len(rewards)
    if np.var(rewards, dtype=np.float64) <= _NOISE:
        return None
    order = np.argsort(x, axis=0, kind="stable")
    values = np.take_along_axis(x, order, axis=0)
    sums = np.cumsum(rewards[order], axis=0, dtype=np.float64)
    squares = np.cumsum(np.square(rewards[order]), axis=0, dtype=np.float64)
    n_left = np.arange(1, count)[:, None]
    n_right = count - n_left
    # n V = sum of squares - squared sum / n; row i is the cut after the i + 1 lowest values
    left = squares[:-1] - sums[:-1] ** 2 / n_left
    right = (squares[-1] - squares[:-1]) - (sums[-1] - sums[:-1]) ** 2 / n_right
    whole = squares[-1] - sums[-1] ** 2 / count
    reduction = (whole - left - right) / count
    possible = (values[:-1] < values[1:]) & (np.minimum(n_left, n_right) >= min_share * count)
    reduction = np.where(possible, reduction, -np.inf).T  # [features, n - 1]
    best, cut = np.unravel_index(np.argmax(reduction), reduction.shape)
    if not reduction[best, cut] > _NOISE:
        return None
    threshold = _between(values[cut, best], values[cut + 1, best])
    return Split(int(best), threshold, float(reduction[best, cut]))


def _between(low: np.float32, high: np.float32) -> float:
    """Return a float32 c with low < c <= high, the middle if float32 can represent it."""
    middle = np.float32((float(low) + float(high)) / 2)
    return float(middle if low < middle else high)
