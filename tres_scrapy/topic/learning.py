"""What the pages of a crawl and answers about them teach: a judge of all fields of a page.

The answered pages, the best and the worst of the others by the keywords are learned by a logistic
regression (learning from positive and unlabelled pages: Bekker, Davis, 2020). An answered page
counts more than others, and as answers come, fewer pages count as relevant without one. The
regression never learns from its own verdicts, so that errors do not feed themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.classifier import sigmoid
from tres_scrapy.topic.fit import fit_logistic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tres_scrapy.topic.fit import Bags

    Numbers = NDArray[np.float64]

STRENGTH: Final = 0.1  # inverse of the penalty of the regression, without answers
TOLD_STRENGTH: Final = 3.0  # with many
# The pages that count as relevant without an answer: this part of their expected number, within
# these shares of all pages. The worst of the others count as irrelevant.
TAKEN: Final = 0.4
TAKEN_BOUNDS: Final = (0.04, 0.6)
LEFT_OUT: Final = 1.5  # best pages that do not count as irrelevant, as a multiple of those taken
FEWEST_TAKEN: Final = 3
# An answer counts for so many pages, and so many fewer count as relevant without one.
YES_WEIGHT: Final = 2.0
NO_WEIGHT: Final = 3.0
YES_REPLACES: Final = 2.0
NO_REPLACES: Final = 0.5
FOLDS: Final = 4  # each page is judged by a model that does not know it


class Lesson(NamedTuple):
    """Weights of words [width] and intercept of a score.

    `held_out` [n] is the score of each page by a model that does not know it; `pulls` holds, by
    row, what an answer adds to the score of a page with its words.
    """

    weights: Numbers
    intercept: float
    held_out: Numbers
    pulls: Mapping[int, float]


class _Sample(NamedTuple):
    rows: NDArray[np.int64]
    labels: Numbers
    weights: Numbers


def learn(bags: Bags, before: Numbers, told: Mapping[int, bool]) -> Lesson:
    """Return the judge after pages and answers by row; `before` [n] are log odds by keywords."""
    strength = TOLD_STRENGTH if any(told.values()) else STRENGTH
    sample = _draw(before, told)
    weights, bias = _fit(bags, sample, strength)
    held_out = np.zeros(bags.height)
    every = np.arange(bags.height)
    for fold in range(FOLDS):
        known = sample.rows % FOLDS != fold
        part = _Sample(sample.rows[known], sample.labels[known], sample.weights[known])
        tested = every[fold::FOLDS]
        inner, shift = _fit(bags, part, strength, (weights, bias))
        held_out[tested] = bags.take(tested).times(inner) + shift
    judged = bags.take(sample.rows).times(weights) + bias
    missed = strength * sample.weights * (sample.labels - sigmoid(judged))
    pulls = dict(zip(sample.rows.tolist(), missed.tolist(), strict=True))
    return Lesson(weights, bias, held_out, {row: pulls[row] for row in told})


def _draw(before: Numbers, told: Mapping[int, bool]) -> _Sample:
    """Return what to learn from: the answers, the best and the worst of the other pages."""
    expected = float(sigmoid(before).sum())
    low, high = TAKEN_BOUNDS
    size = max(
        FEWEST_TAKEN, float(np.clip(TAKEN * expected, low * len(before), high * len(before)))
    )
    yes, no = ([row for row, answer in told.items() if answer is kind] for kind in (True, False))
    others = [row for row in np.argsort(-before, kind="stable").tolist() if row not in told]
    # before the first yes, answers no replace nothing: they would outweigh the keywords
    replaced = YES_REPLACES * len(yes) + NO_REPLACES * len(no) if yes else 0
    good = others[: max(0, round(size - replaced))]
    bad = others[max(round(LEFT_OUT * size), len(before) // 3) :]
    sizes = (len(yes), len(no), len(good), len(bad))
    labels = np.repeat([1.0, 0.0, 1.0, 0.0], sizes)
    weights = np.repeat([YES_WEIGHT, NO_WEIGHT, 1.0, 1.0], sizes)
    for kind in (0.0, 1.0):  # first half of the weight to the one, then half of all to the other
        part = labels == kind
        weights[part] *= weights.sum() / (2 * max(1.0, float(weights[part].sum())))
    return _Sample(np.array([*yes, *no, *good, *bad], dtype=np.int64), labels, weights)


def _fit(
    bags: Bags, sample: _Sample, strength: float, start: tuple[Numbers, float] | None = None
) -> tuple[Numbers, float]:
    """Return the weights of words, [width], and the intercept; 0 if all labels are the same."""
    if len(np.unique(sample.labels)) < 2:
        return np.zeros(bags.width), 0.0
    part = bags.take(sample.rows)
    return fit_logistic(part, sample.labels, sample.weights, strength, start)
