"""Fits of a few seconds at most during a crawl: the regression, a mixture of two groups.

Without labels, one score says how likely each text is relevant: the square root of the score of
irrelevant texts lies around one mean, that of relevant texts around a higher one. The share of
relevant texts is estimated, within bounds.
"""

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
ROUNDS: Final = 200
BOUNDS: Final = (0.01, 0.95)  # of the share of relevant texts
MOST_LIFTED: Final = 1e3  # of log odds
HALVINGS: Final = 40
NARROWEST: Final = 0.02  # deviation of a group
WIDEST: Final = 0.06  # once pages are known
# Before pages are known: means of both groups, measured on seven topics (benchmarks/words.py), and
# how many pages each of these means counts for.
LOW_MEAN: Final = 0.17
HIGH_MEAN: Final = 0.42
BELIEF: Final = 5.0
# The least that HIGH_MEAN counts for, as a share of all pages. A crawl chooses its pages: one that
# has lost its topic fetches pages near it, which would become the relevant group without this.
ANCHOR: Final = 0.2


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


class TwoGroups(NamedTuple):
    """Two groups of texts with the same deviation, and the share of the relevant one."""

    low: float
    high: float
    deviation: float
    share: float

    def probabilities(self, scores: Numbers) -> Numbers:
        """Return P(relevant) of each score, rising with it, [n]."""
        return sigmoid(self.log_odds(scores))

    def log_odds(self, scores: Numbers) -> Numbers:
        """Return the log odds of P(relevant) of each score, [n]."""
        x = np.sqrt(np.maximum(scores, 0))
        distance: Numbers = (x - self.low) ** 2 - (x - self.high) ** 2
        prior = float(np.log(self.share / (1 - self.share)))
        return distance / (2 * self.deviation**2) + prior

    def edge(self) -> tuple[float, float]:
        """Return the score at which P(relevant) is 0.5, after the slope of the log odds there."""
        against = np.log((1 - self.share) / self.share)
        gap = self.high - self.low
        x = max(1e-3, (self.low + self.high) / 2 + self.deviation**2 * against / gap)
        return float(gap / (2 * x * self.deviation**2)), float(x * x)


def lift(log_odds: Numbers, least: float) -> float:
    """Return what to add to log odds so that at least so many texts are relevant, in sum.

    It is 0 if they are. If no text stands out, each gains little.
    """
    if float(sigmoid(log_odds).sum()) >= least:
        return 0.0
    low, high = 0.0, MOST_LIFTED
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float(sigmoid(log_odds + middle).sum()) < least:
            low = middle
        else:
            high = middle
    return high


FIRST: Final = TwoGroups(LOW_MEAN, HIGH_MEAN, 0.08, 0.3)


def fit_mixture(scores: Numbers) -> TwoGroups:
    """Return the mixture that explains scores [n] best, by expectation and maximisation."""
    if not len(scores):
        return FIRST
    x = np.sqrt(np.maximum(scores, 0))
    found = FIRST
    anchor = BELIEF + ANCHOR * len(x)
    for _ in range(ROUNDS):
        p = found.probabilities(scores)
        high = (p @ x + anchor * HIGH_MEAN) / (p.sum() + anchor)
        low = ((1 - p) @ x + BELIEF * LOW_MEAN) / ((1 - p).sum() + BELIEF)
        high = max(high, low + 2 * NARROWEST)
        spread = p @ (x - high) ** 2 + (1 - p) @ (x - low) ** 2 + BELIEF * FIRST.deviation**2
        deviation = float(np.clip(np.sqrt(spread / (len(x) + BELIEF)), NARROWEST, WIDEST))
        share = (p.sum() + BELIEF * FIRST.share) / (len(x) + BELIEF)
        found = TwoGroups(float(low), float(high), deviation, float(np.clip(share, *BOUNDS)))
    return found
