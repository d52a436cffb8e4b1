"""Fits of a few seconds at most during a crawl: logistic regression, and its change by answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.classifier import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    Numbers = NDArray[np.float64]

ITERATIONS: Final = 40
MEMORY: Final = 8  # steps that approximate the curvature
FLAT: Final = 1e-4  # largest slope at which the fit ends
ROUNDS: Final = 50
CLOSE: Final = 1e-6  # change of the answers' weights at which the fit ends


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
    import torch  # noqa: PLC0415 - the crawler's process imports this module, and fits nothing

    at = torch.zeros(bags.width + 1, dtype=torch.float64)
    found = at.numpy()  # the same memory

    def loss() -> Tensor:
        inner, bias = found[:-1], found[-1]
        logits = bags.times(inner) + bias
        # log(1 + exp(z)) - q z, without overflow
        costs = np.logaddexp(0, logits) - targets * logits
        slopes = weights * (sigmoid(logits) - targets)
        gradient = np.append(bags.turned(slopes) + inner / strength, slopes.sum())
        at.grad = torch.from_numpy(gradient)
        return torch.tensor(weights @ costs + inner @ inner / (2 * strength))

    optimiser = torch.optim.LBFGS(
        [at],
        max_iter=ITERATIONS,
        history_size=MEMORY,
        tolerance_grad=FLAT,
        line_search_fn="strong_wolfe",
    )
    optimiser.step(loss)  # type: ignore[no-untyped-call]  # of torch
    return found[:-1], float(found[-1])


def fit_line(scores: Numbers, targets: Numbers, weights: Numbers) -> tuple[float, float]:
    """Return slope and intercept of the log odds of `targets` along `scores`, [n] each."""
    rows = np.arange(len(scores))
    line = Bags(np.zeros(len(rows), np.int64), scores, rows, len(rows), 1)
    slope, intercept = fit_logistic(line, targets, weights, 100.0)
    return float(slope[0]), intercept


def fit_correction(before: Numbers, cover: Numbers, answers: Numbers) -> tuple[Numbers, float]:
    """Return the weight of each answer [n], and the log-likelihood of each by the others, summed.

    `before` [n] are log odds of the answered texts, `cover` [n, n] the prior covariance of their
    changes, `answers` [n] is 0 or 1. The log odds of a text rise by its covariances times the
    weights.
    """
    sign, unit = 2 * answers - 1, np.eye(len(answers))

    def worth(weights: Numbers) -> float:
        change = cover @ weights
        return float(-np.logaddexp(0, -sign * (before + change)).sum() - weights @ change / 2)

    weights = np.zeros(len(answers))
    for _ in range(ROUNDS):
        p = sigmoid(before + cover @ weights)
        curve = p * (1 - p)
        aim = curve * (cover @ weights) + answers - p
        step = np.linalg.solve(unit + curve[:, None] * cover, aim) - weights
        size, least = 1.0, worth(weights)
        while worth(weights + size * step) < least and size > CLOSE:
            size /= 2
        weights = weights + size * step
        if float(np.abs(step).max(initial=0.0)) < CLOSE:
            break
    after = before + cover @ weights
    p = sigmoid(after)
    curve = p * (1 - p)
    # Variance and mean of the log odds without the answer itself (Vehtari et al., 2016).
    variance = np.diag(np.linalg.solve(unit + cover * curve, cover))
    without = after - variance / (1 - curve * variance) * (answers - p)
    return weights, float(-np.logaddexp(0, -sign * without).sum())
