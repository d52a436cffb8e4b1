"""Fits of a fraction of a second during a crawl: logistic regression on sparse texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.classifier import sigmoid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


ITERATIONS: Final = 40
MEMORY: Final = 8  # steps that approximate the curvature
FLAT: Final = 1e-4  # largest slope at which the fit ends
DESCENT: Final = 1e-4  # least gain of a step, as a share of what the slope promises
HALVINGS: Final = 30  # of a step


class Bags(NamedTuple):
    """Sparse rows, one per text: word numbers [N], their values [N], and where each row starts."""

    ids: NDArray[np.int64]
    values: Numbers
    starts: NDArray[np.int64]  # [n + 1], the last is N
    width: int  # number of words

    @classmethod
    def of(cls, parts: Sequence[tuple[NDArray[np.int64], Numbers]], width: int) -> Bags:
        """Join the word numbers and values of each text."""
        sizes = [len(ids) for ids, _ in parts]
        ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in parts)])
        values = np.concatenate([np.zeros(0), *(values for _, values in parts)])
        return cls(ids, values, np.cumsum([0, *sizes], dtype=np.int64), width)

    @property
    def height(self) -> int:
        """The number of texts."""
        return len(self.starts) - 1

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each value, [N]."""
        return np.repeat(np.arange(self.height), np.diff(self.starts))

    def take(self, rows: Iterable[int]) -> Bags:
        """Return some of the texts."""
        spans = [slice(*self.starts[row : row + 2].tolist()) for row in rows]
        return Bags.of([(self.ids[span], self.values[span]) for span in spans], self.width)

    def chosen(self, place: NDArray[np.int64], width: int) -> Bags:
        """Return the texts of other word numbers: `place` [width] has the new ones, -1 for none."""
        known = place[self.ids] >= 0
        sizes = np.bincount(self.rows[known], minlength=self.height)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return Bags(place[self.ids[known]], self.values[known], starts, width)

    def times(self, weights: Numbers) -> Numbers:
        """Return the sum of values times weights of each row, [n]."""
        found = np.zeros(self.height)
        full = np.diff(self.starts) > 0
        if full.any():
            products = self.values * weights[self.ids]
            found[full] = np.add.reduceat(products, self.starts[:-1][full])
        return found

    def turned(self, each: Numbers) -> Numbers:
        """Return the sum of values times a number of each row, by word, [width]."""
        spread = np.repeat(each, np.diff(self.starts))
        sums = np.bincount(self.ids, self.values * spread, self.width)
        return np.asarray(sums, dtype=np.float64)


def fit_logistic(
    bags: Bags,
    targets: Numbers,
    weights: Numbers,
    strength: float,
    start: tuple[Numbers, float] | None = None,
) -> tuple[Numbers, float]:
    """Return coefficients [width] and intercept for targets between 0 and 1, [n].

    `weights` [n] says how much each text counts; `strength` is the inverse of the penalty on the
    squared coefficients. The same input gives the same result. `start` is a result near the one
    that is sought.
    """
    used = np.flatnonzero(np.bincount(bags.ids, minlength=bags.width))
    place = np.zeros(bags.width, np.int64)
    place[used] = np.arange(len(used))
    narrow = bags._replace(ids=place[bags.ids], width=len(used))

    def loss(at: Numbers) -> tuple[float, Numbers]:
        inner, bias = at[:-1], at[-1]
        logits = narrow.times(inner) + bias
        # log(1 + exp(z)) - q z, without overflow
        costs = np.logaddexp(0, logits) - targets * logits
        slopes = weights * (sigmoid(logits) - targets)
        gradient = np.append(narrow.turned(slopes) + inner / strength, slopes.sum())
        return float(weights @ costs + _dot(inner, inner) / (2 * strength)), gradient

    at = np.zeros(len(used) + 1) if start is None else np.append(start[0][used], start[1])
    at = _minimum(loss, at)
    found = np.zeros(bags.width)
    found[used] = at[:-1]
    return found, float(at[-1])


def _minimum(loss: Callable[[Numbers], tuple[float, Numbers]], at: Numbers) -> Numbers:
    """Return where a convex function, given with its gradient, is least (L-BFGS)."""
    value, slope = loss(at)
    past: list[tuple[Numbers, Numbers]] = []  # steps, and how each changed the gradient
    for _ in range(ITERATIONS):
        if float(np.abs(slope).max()) <= FLAT:
            break
        way = _direction(slope, past)
        size = 1.0 if past else min(1.0, 1 / float(np.abs(slope).sum()))
        down = _dot(way, slope)
        for _ in range(HALVINGS):
            lower, turned = loss(at + size * way)
            if lower <= value + DESCENT * size * down:
                break
            size /= 2
        else:  # as low as rounding allows
            break
        if _dot(way, turned - slope) > 0:
            past = [*past[1 - MEMORY :], (size * way, turned - slope)]
        at, value, slope = at + size * way, lower, turned
    return at


def _direction(slope: Numbers, past: Sequence[tuple[Numbers, Numbers]]) -> Numbers:
    """Return where to go: down the slope, stretched by the curvature of the last steps."""
    way = -slope
    shares = []
    for step, change in reversed(past):
        shares.append(_dot(step, way) / _dot(step, change))
        way = way - shares[-1] * change
    if past:
        step, change = past[-1]
        way = way * (_dot(step, change) / _dot(change, change))
    for (step, change), share in zip(past, reversed(shares), strict=True):
        way = way + step * (share - _dot(change, way) / _dot(step, change))
    return way


def _dot(one: Numbers, other: Numbers) -> float:
    """Return the inner product in this thread: BLAS waits for others, long on a busy machine."""
    return float(np.einsum("i,i", one, other))
