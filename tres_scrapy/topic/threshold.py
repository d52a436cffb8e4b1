"""Where relevant pages begin, and how many of the pages called relevant are.

The share of relevant pages rises with the score as a logistic curve. Where it is 0.5 and how steep
it is are unknown: their joint distribution is computed on a grid, from the number of relevant pages
that the keywords let expect or a trained pack finds, and from answers. An answered page has the
score of a model that does not know it, so that it may be chosen in any way that depends on the
score alone.

Before the first answer yes the threshold is where that share is expected to be 0.5: as the number
of relevant pages says, and how pages score that are likely by the keywords. Then it is where the
output has the highest expected F1: where scores tell relevant pages badly from others, fewer than
half of the pages at the threshold are relevant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.classifier import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

# In deviations of the scores:
PLACES: Final = np.linspace(-4.0, 4.0, 81)  # of the threshold, from the expected one
SLOPES: Final = np.geomspace(0.5, 16.0, 11)
DOUBT: Final = 1.0  # deviation of the threshold before answers
STEEPNESS: Final = 2.5  # middle of the slope before answers
STEEPNESS_DOUBT: Final = 0.7  # deviation of its logarithm
# Log odds of each curve before answers, by place and slope.
PRIOR: Final = (
    -0.5 * (PLACES[:, None] / DOUBT) ** 2
    - 0.5 * (np.log(SLOPES / STEEPNESS)[None, :] / STEEPNESS_DOUBT) ** 2
)
NEGLIGIBLE: Final = 1e-3  # odds of a curve against the best one
TINY: Final = 1e-12
ROUNDING: Final = 1e-9  # of a score
# Without answers: so much of the way from the expected number of pages to the score above which
# lie all but some of the pages that are likely by the keywords.
ALIKE: Final = 0.3
UNLIKE: Final = 0.05
BEFORE_YES: Final = 0.25  # of an answer no, as a share of what it counts when there is a yes
LEAST_SHARE: Final = 0.3  # of relevant pages at the threshold
TAIL: Final = 0.1  # outside each end of an interval, which holds four of five cases


class Share(NamedTuple):
    """A share between 0 and 1, and the ends of its interval."""

    low: float
    value: float
    high: float

    def __str__(self) -> str:
        low, value, high = (f"{100 * each:.0f}" for each in self)
        return f"{value} % ({low} to {high} %)"


class Threshold(NamedTuple):
    """Where relevant pages begin, and what is known of the pages called relevant."""

    place: float = 0.0  # the score
    slope: float = 1.0
    precision: Share | None = None
    recall: Share | None = None


def expected_place(scores: Numbers, expected: float, likely: Numbers | None = None) -> float:
    """Return the score from which on pages are relevant, without answers; scores are [n].

    So many pages may be relevant; if none may be, it lies above all of them. `likely` [n] is how
    likely each page is by the keywords: pages that look like those may be relevant without them.
    """
    ordered = np.sort(scores)[::-1]
    if not expected:
        return float(ordered[0]) + deviation_of(scores)
    place = float(ordered[min(int(expected), len(ordered) - 1)])
    if likely is None:
        return place
    order = np.argsort(scores)
    below = np.cumsum(likely[order] ** 2)
    alike = float(scores[order][np.searchsorted(below, UNLIKE * below[-1])])
    return place + ALIKE * (alike - place)


def find_threshold(
    scores: Numbers, guess: float, known: Numbers, labels: NDArray[np.bool_]
) -> Threshold:
    """Return the threshold of pages with these scores [n], which was guessed before answers.

    `known` [k] are the scores of answered pages, `labels` [k] the answers.
    """
    unit = deviation_of(scores)
    places, slopes, odds = _curves(unit, guess, known, labels)
    weight = np.exp(odds - odds.max())
    weight /= weight.sum()
    slope = float(np.exp((weight * np.log(slopes)).sum()))
    if not labels.any():
        return Threshold(float((weight * places).sum()), slope)
    likely = weight > weight.max() * NEGLIGIBLE
    at, steep = (np.broadcast_to(each, weight.shape)[likely] for each in (places, slopes))
    weight, ordered = weight[likely], np.sort(scores)[::-1]
    p = sigmoid(steep[:, None] * (ordered - at[:, None])) + TINY  # [curves, n]
    place = _best_place(ordered, p, weight, float(ordered[0]) + unit)
    called = ordered >= place
    found = p @ called
    if not called.any():
        return Threshold(place, slope)
    precision = _share(found / int(called.sum()), weight)
    return Threshold(place, slope, precision, _share(found / p.sum(axis=1), weight))


def evidence(scores: Numbers, guess: float, known: Numbers, labels: NDArray[np.bool_]) -> float:
    """Return the log of how likely the answers are by these scores, as `find_threshold` has them.

    It is the marginal likelihood over all curves.
    """
    odds = _curves(deviation_of(scores), guess, known, labels)[2]
    return float(np.logaddexp.reduce(odds, axis=None) - np.logaddexp.reduce(PRIOR, axis=None))


def _curves(
    unit: float, guess: float, known: Numbers, labels: NDArray[np.bool_]
) -> tuple[Numbers, Numbers, Numbers]:
    """Return places [p, 1] and slopes [1, s] of curves, and the log odds of each after answers."""
    places = guess + unit * PLACES[:, None]
    slopes = SLOPES[None, :] / unit
    odds = PRIOR
    signs = np.where(labels, 1.0, -1.0)
    share = 1.0 if labels.any() else BEFORE_YES
    for score, sign in zip(known.tolist(), signs.tolist(), strict=True):
        odds = odds - share * np.logaddexp(0, -sign * slopes * (score - places))
    return places, slopes, odds


def deviation_of(scores: Numbers) -> float:
    """Return the standard deviation, 1 where the scores differ by rounding errors alone."""
    deviation = float(scores.std())
    return deviation if deviation > ROUNDING * float(np.abs(scores).max(initial=0.0)) else 1.0


def _best_place(ordered: Numbers, p: Numbers, weight: Numbers, above: float) -> float:
    """Return the score from which on F1 is expected to be highest, `above` if hardly a page is so.

    `ordered` [n] are the scores, the best first; `p` [curves, n] how likely each is relevant.
    """
    found = p.cumsum(axis=1)
    f1 = weight @ (2 * found / (np.arange(1, len(ordered) + 1) + found[:, -1:]))
    f1[weight @ p < LEAST_SHARE * weight.sum()] = 0.0
    last = int(np.argmax(f1))
    return float(ordered[last : last + 2].mean()) if f1[last] else above


def _share(values: Numbers, weight: Numbers) -> Share:
    order = np.argsort(values)
    total = np.cumsum(weight[order]) / weight.sum()
    ends = np.searchsorted(total, (TAIL, 0.5, 1 - TAIL)).clip(0, len(order) - 1)
    return Share(*values[order[ends]].tolist())
