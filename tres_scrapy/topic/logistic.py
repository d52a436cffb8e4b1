"""Logistic regression over bags of words, in NumPy alone, for fits during a crawl."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.calibration import sigmoid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

ITERATIONS: Final = 40
MEMORY: Final = 8  # steps that approximate the curvature
FLAT: Final = 1e-4  # length of the gradient per unit of weight at which the fit ends
SUFFICIENT: Final = 1e-4  # share of the expected decrease that a step must reach


class Bags(NamedTuple):
    """Sparse rows, one per text: word numbers [N], their values [N], and the row of each [N]."""

    ids: NDArray[np.int64]
    values: Numbers
    rows: NDArray[np.int64]
    height: int  # number of rows
    width: int  # number of words

    @classmethod
    def of(cls, parts: Sequence[tuple[NDArray[np.int64], Numbers]], width: int) -> Bags:
        """Join the word numbers and values of each text."""
        sizes = [len(ids) for ids, _ in parts]
        ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in parts)])
        values = np.concatenate([np.zeros(0), *(values for _, values in parts)])
        return cls(ids, values, np.repeat(np.arange(len(parts)), sizes), len(parts), width)

    def times(self, weights: Numbers) -> Numbers:
        """Return the sum of values times weights of each row, [n]."""
        sums = np.bincount(self.rows, self.values * weights[self.ids], self.height)
        return np.asarray(sums, dtype=np.float64)

    def turned(self, each: Numbers) -> Numbers:
        """Return the sum of values times a number of each row, by word, [width]."""
        sums = np.bincount(self.ids, self.values * each[self.rows], self.width)
        return np.asarray(sums, dtype=np.float64)


def fit_logistic(
    bags: Bags, targets: Numbers, weights: Numbers, strength: float
) -> tuple[Numbers, float]:
    """Return coefficients [width] and intercept for targets between 0 and 1, [n].

    `weights` [n] says how much each text counts; `strength` is the inverse of the penalty on the
    squared coefficients. The same input gives the same result.
    """

    def loss(at: Numbers) -> tuple[float, Numbers]:
        inner, bias = at[:-1], at[-1]
        logits = bags.times(inner) + bias
        # log(1 + exp(z)) - q z, without overflow
        costs = np.logaddexp(0, logits) - targets * logits
        slopes = weights * (sigmoid(logits) - targets)
        gradient = np.append(bags.turned(slopes) + inner / strength, slopes.sum())
        return float(weights @ costs + inner @ inner / (2 * strength)), gradient

    found = _minimum(loss, np.zeros(bags.width + 1), FLAT * max(1.0, float(weights.sum())))
    return found[:-1], float(found[-1])


def fit_line(scores: Numbers, targets: Numbers, weights: Numbers) -> tuple[float, float]:
    """Return slope and intercept of the log odds of `targets` along `scores`, [n] each."""
    rows = np.arange(len(scores))
    line = Bags(np.zeros(len(rows), np.int64), scores, rows, len(rows), 1)
    slope, intercept = fit_logistic(line, targets, weights, 100.0)
    return float(slope[0]), intercept


def _minimum(loss: Callable[[Numbers], tuple[float, Numbers]], at: Numbers, flat: float) -> Numbers:
    """Return where a smooth function is least (L-BFGS; Nocedal, Wright, 2006, algorithm 7.4)."""
    steps: deque[tuple[Numbers, Numbers, float]] = deque(maxlen=MEMORY)
    value, slope = loss(at)
    for _ in range(ITERATIONS):
        if float(np.linalg.norm(slope)) <= flat:
            break
        way = -_curved(slope, steps)
        size, fall = (1.0 if steps else 1 / float(np.linalg.norm(slope))), float(way @ slope)
        while True:
            to = at + size * way
            less, turn = loss(to)
            if less <= value + SUFFICIENT * size * fall:
                break
            size /= 2
            if size < 1e-10:
                return at
        moved, bent = to - at, turn - slope
        if (product := float(moved @ bent)) > 1e-12:
            steps.append((moved, bent, product))
        at, value, slope = to, less, turn
    return at


def _curved(slope: Numbers, steps: deque[tuple[Numbers, Numbers, float]]) -> Numbers:
    """Return the slope times the approximate inverse of the second derivatives."""
    way, shares = slope.copy(), []
    for moved, bent, product in reversed(steps):
        shares.append(float(moved @ way) / product)
        way -= shares[-1] * bent
    if steps:
        _, bent, product = steps[-1]
        way *= product / float(bent @ bent)
    for (moved, bent, product), share in zip(steps, reversed(shares), strict=True):
        way += moved * (share - float(bent @ way) / product)
    return way
