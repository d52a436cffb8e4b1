"""Fits of a moment during a crawl: the regression, and a mixture of two groups.

Without labels, one score says how likely each text is relevant: the square root of the score of
irrelevant texts lies around one mean, that of relevant texts around a higher one. The share of
relevant texts is estimated, within bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from tres_scrapy.topic.classifier import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def fit_logistic(
    texts: csr_array, targets: Numbers, weights: Numbers, strength: float
) -> tuple[Numbers, float]:
    """Return coefficients [width] and intercept for targets between 0 and 1, [n].

    `texts` is [n, width]; `weights` [n] says how much each text counts; `strength` is the inverse
    of the penalty on the squared coefficients. The same input gives the same result.
    """
    width = texts.shape[1]

    def loss(at: Numbers) -> tuple[float, Numbers]:
        inner, bias = at[:-1], at[-1]
        logits = texts @ inner + bias
        # log(1 + exp(z)) - q z, without overflow
        costs = np.logaddexp(0, logits) - targets * logits
        slopes = weights * (sigmoid(logits) - targets)
        gradient = np.append(slopes @ texts + inner / strength, slopes.sum())
        return float(weights @ costs + inner @ inner / (2 * strength)), gradient

    options = {"maxiter": ITERATIONS, "maxcor": MEMORY, "gtol": FLAT}
    found = minimize(loss, np.zeros(width + 1), jac=True, method="L-BFGS-B", options=options).x
    return found[:-1], float(found[-1])


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
