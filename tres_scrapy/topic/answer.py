"""What answers about pages of a crawl teach: a judge of all fields of a page.

The answered pages, the best and the worst of the others by the judge before are learned by a
logistic regression (learning from positive and unlabelled pages: Bekker, Davis, 2020). An answered
page counts more than others, and as answers come, fewer pages count as relevant without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.classifier import sigmoid
from tres_scrapy.topic.fit import Bags, fit_logistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Texts = Sequence[tuple[NDArray[np.int64], Numbers]]

STRENGTH: Final = 3.0  # inverse of the penalty of the regression
# The pages that count as relevant without an answer: this part of their expected number, within
# these shares of all pages. The worst of the others count as irrelevant.
TAKEN: Final = 0.7
TAKEN_BOUNDS: Final = (0.04, 0.6)
LEFT_OUT: Final = 1.5  # best pages that do not count as irrelevant, as a multiple of those taken
FEWEST_TAKEN: Final = 3
# An answer counts for so many pages, and so many fewer count as relevant without one.
YES_WEIGHT: Final = 2.0
NO_WEIGHT: Final = 3.0
YES_REPLACES: Final = 2.0
NO_REPLACES: Final = 0.5
GUESS: Final = 0.5  # share of the expected number of relevant pages in the threshold
FOLDS: Final = 4  # of the answers: each is judged by a model that does not know it
UNSURE: Final = 2.0  # deviation of the log odds at the threshold, without an answer
DOUBT: Final = 1.28  # deviations of an interval that holds four of five cases


class AnswerFit(NamedTuple):
    """Weights of words [width] and intercept of log odds whose threshold is 0.

    `without` [answers] are the log odds of each answered page by a model that does not know its
    answer; `pulls` holds, by row, what an answer adds to the log odds of a page with its words.
    """

    weights: Numbers
    intercept: float
    without: Numbers
    pulls: Mapping[int, float]


class _Sample(NamedTuple):
    rows: list[int]
    labels: Numbers
    weights: Numbers


def fit_answers(texts: Texts, width: int, before: Numbers, told: Mapping[int, bool]) -> AnswerFit:
    """Return the judge after answers about pages, by row; `before` [n] are log odds without them.

    `texts` holds the numbers and values of the words of each page.
    """
    expected = float(sigmoid(before).sum())
    sample = _draw(before, expected, told)
    weights, bias = _learn(texts, width, sample)
    judged = Bags.of(texts, width).times(weights) + bias
    without = _held_out(texts, width, before, expected, told)
    edge = _threshold(judged, expected, told, without)
    missed = sample.weights * (sample.labels - sigmoid(judged[sample.rows]))
    pulls = dict(zip(sample.rows, (STRENGTH * missed).tolist(), strict=True))
    return AnswerFit(weights, bias - edge, without - edge, {row: pulls[row] for row in told})


def interval(log_odds: Numbers) -> tuple[float, float]:
    """Return the probabilities between which the threshold lies, by the answered pages alone."""
    p = sigmoid(log_odds)
    width = DOUBT / float(np.sqrt((p * (1 - p)).sum() + 1 / UNSURE**2))
    low, high = sigmoid(np.array([-width, width])).tolist()
    return low, high


def _draw(before: Numbers, expected: float, told: Mapping[int, bool]) -> _Sample:
    """Return what to learn from: the answers, the best and the worst of the other pages."""
    low, high = TAKEN_BOUNDS
    size = max(
        FEWEST_TAKEN, float(np.clip(TAKEN * expected, low * len(before), high * len(before)))
    )
    yes, no = ([row for row, answer in told.items() if answer is kind] for kind in (True, False))
    others = [row for row in np.argsort(-before, kind="stable").tolist() if row not in told]
    wanted = size - YES_REPLACES * len(yes) - NO_REPLACES * len(no)
    good = others[: max(0 if yes else FEWEST_TAKEN, round(wanted))]
    bad = others[max(round(LEFT_OUT * size), len(before) // 3) :]
    sizes = (len(yes), len(no), len(good), len(bad))
    labels = np.repeat([1.0, 0.0, 1.0, 0.0], sizes)
    weights = np.repeat([YES_WEIGHT, NO_WEIGHT, 1.0, 1.0], sizes)
    for kind in (0.0, 1.0):  # both together weigh the same
        part = labels == kind
        weights[part] *= weights.sum() / (2 * max(1.0, float(weights[part].sum())))
    return _Sample([*yes, *no, *good, *bad], labels, weights)


def _learn(texts: Texts, width: int, sample: _Sample) -> tuple[Numbers, float]:
    """Return the weights of words, [width], and the intercept."""
    bags = Bags.of([texts[row] for row in sample.rows], width)
    return fit_logistic(bags, sample.labels, sample.weights, STRENGTH)


def _held_out(
    texts: Texts, width: int, before: Numbers, expected: float, told: Mapping[int, bool]
) -> Numbers:
    """Return the log odds of each answered page by a model without its answer, [answers]."""
    rows = list(told)
    found = np.zeros(len(rows))
    for fold in range(min(FOLDS, len(rows))):
        part = rows[fold::FOLDS]
        known = {row: answer for row, answer in told.items() if row not in part}
        weights, bias = _learn(texts, width, _draw(before, expected, known))
        bags = Bags.of([texts[row] for row in part], width)
        found[fold::FOLDS] = bags.times(weights) + bias
    return found


def _threshold(
    judged: Numbers, expected: float, told: Mapping[int, bool], without: Numbers
) -> float:
    """Return the log odds from which on pages are relevant.

    It lies half of the way from the expected number of relevant pages to the middle between the
    pages answered yes and those answered no: these were chosen, and prove no share.
    """
    others = np.sort(np.delete(judged, list(told)))[::-1]
    guess = 0.0
    if len(others):
        place = max(1, min(round(expected * len(others) / len(judged)), len(others) - 1))
        guess = min(0.0, float(others[place - 1 : place + 1].mean()))
    labels = np.array([*told.values()], dtype=bool)
    yes, no = without[labels], without[~labels]
    if not len(no):
        return min(guess, float(yes.min(initial=guess)))
    if not len(yes):  # the best of the other pages remain to search for
        return guess
    middle = (float(yes.mean()) + float(no.mean())) / 2
    return GUESS * guess + (1 - GUESS) * middle
