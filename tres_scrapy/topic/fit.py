"""Fits of a moment during a crawl: a mixture of two groups, and the regression it begins.

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
    from collections.abc import Mapping

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
STRENGTH: Final = 3.0  # inverse of the penalty of the regression
# The pages that the regression takes for relevant: this part of their estimated share, within
# bounds. The worst of the others are taken for irrelevant.
TAKEN: Final = 0.7
TAKEN_BOUNDS: Final = (0.04, 0.6)
LEFT_OUT: Final = 1.5  # best pages that are not taken for irrelevant, as a multiple of those taken
# An answer counts for so many pages, and so many fewer are taken for relevant without one.
YES_WEIGHT: Final = 2.0
NO_WEIGHT: Final = 3.0
YES_REPLACES: Final = 2.0
NO_REPLACES: Final = 0.5
FOLDS: Final = 4  # of the answers: each is judged by a model that does not know it
TIE: Final = 1e-6  # of log odds: of equal pages, none stands out
BEST_PAGES: Final = 5  # of the highest first score: they are relevant until better ones are found
BEST_SHARE: Final = 0.3  # of all pages that these are at most
FEWEST_PAGES: Final = 10  # pages to learn from


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


class Sample(NamedTuple):
    """The pages that a regression learns from: their rows, labels and weights, [n] each."""

    rows: NDArray[np.int64]
    labels: Numbers
    weights: Numbers


def draw_sample(scores: Numbers, share: float, told: Mapping[int, bool]) -> Sample:
    """Return what to learn from: the answers, the best and the worst of the other pages."""
    low, high = TAKEN_BOUNDS
    size = max(BEST_SHARE * FEWEST_PAGES, float(np.clip(TAKEN * share, low, high)) * len(scores))
    yes, no = ([row for row, answer in told.items() if answer is kind] for kind in (True, False))
    others = [row for row in np.argsort(-scores, kind="stable").tolist() if row not in told]
    wanted = size - YES_REPLACES * len(yes) - NO_REPLACES * len(no)
    good = others[: max(0 if yes else 3, round(wanted))]
    bad = others[max(round(LEFT_OUT * size), len(scores) // 3) :]
    sizes = (len(yes), len(no), len(good), len(bad))
    labels = np.repeat([1.0, 0.0, 1.0, 0.0], sizes)
    weights = np.repeat([YES_WEIGHT, NO_WEIGHT, 1.0, 1.0], sizes)
    for kind in (0.0, 1.0):  # both together weigh the same
        part = labels == kind
        weights[part] *= weights.sum() / (2 * max(1.0, float(weights[part].sum())))
    return Sample(np.array([*yes, *no, *good, *bad], dtype=np.int64), labels, weights)


def learn(texts: csr_array, sample: Sample) -> tuple[Numbers, float]:
    """Return the weights of words, [width], and the intercept."""
    return fit_logistic(texts[sample.rows], sample.labels, sample.weights, STRENGTH)


def held_out(texts: csr_array, scores: Numbers, share: float, told: Mapping[int, bool]) -> Numbers:
    """Return the log odds of each answered page by a model without its answer, [answers]."""
    rows = list(told)
    found = np.zeros(len(rows))
    for fold in range(min(FOLDS, len(rows))):
        part = rows[fold::FOLDS]
        known = {row: answer for row, answer in told.items() if row not in part}
        weights, bias = learn(texts, draw_sample(scores, share, known))
        found[fold::FOLDS] = texts[part] @ weights + bias
    return found


def threshold(judged: Numbers, share: float, told: Mapping[int, bool], held_out: Numbers) -> float:
    """Return the log odds of the regression from which on pages are relevant.

    Without answers, these are the pages that the regression calls relevant, and as many of the best
    as the first score expects. With answers, the threshold moves half of the way to the middle
    between the pages answered yes and those answered no: they were chosen, and prove no share.
    """
    others = np.sort(np.delete(judged, list(told)))[::-1]
    expected = max(share * len(others), min(BEST_PAGES, BEST_SHARE * len(others)))
    place = max(1, min(round(expected), len(others) - 1))
    guess = min(0.0, float(others[place - 1 : place + 1].mean())) + TIE if len(others) else 0.0
    labels = np.array([*told.values()], dtype=bool)
    yes, no = held_out[labels], held_out[~labels]
    if not len(no):
        return min(guess, float(yes.min(initial=guess)))
    if not len(yes):  # the best of the other pages remain to search for
        return guess
    return (guess + (float(yes.mean()) + float(no.mean())) / 2) / 2


def pulls(judged: Numbers, sample: Sample) -> dict[int, float]:
    """Return what each page adds to the log odds of a page with its words, by row."""
    missed = sample.weights * (sample.labels - sigmoid(judged[sample.rows]))
    return dict(zip(sample.rows.tolist(), (STRENGTH * missed).tolist(), strict=True))


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
