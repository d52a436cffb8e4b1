"""Where relevant pages begin, and how many of the pages called relevant are.

P(relevant) rises with the score of a page as a logistic curve. Where it is 0.5 and how steep it is
are unknown: their joint distribution is computed on a grid, from the number of relevant pages that
the keywords let expect, and from answers. An answered page has the score of a model that does not
know it, so that it may be chosen in any way that depends on the score alone.
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
NEGLIGIBLE: Final = 1e-3  # odds of a curve against the best one
TINY: Final = 1e-12
TAIL: Final = 0.1  # outside each end of an interval, which holds four of five cases


class Share(NamedTuple):
    """A share between 0 and 1, and the ends of its interval."""

    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        low, middle, high = (round(100 * each) for each in self)
        return f"{middle} % ({low} to {high} %)"


class Threshold(NamedTuple):
    """The curve of P(relevant), and what it says of the pages called relevant."""

    place: float  # score at which P(relevant) is 0.5
    slope: float
    precision: Share
    recall: Share


UNKNOWN: Final = Threshold(0.0, 1.0, Share(0.0, 0.5, 1.0), Share(0.0, 0.5, 1.0))


def find_threshold(
    scores: Numbers, expected: float, known: Numbers, labels: NDArray[np.bool_]
) -> Threshold:
    """Return the threshold of pages with these scores [n], of which so many may be relevant.

    If none may be, it lies above all of them.
    `known` [k] are the scores of answered pages, `labels` [k] the answers.
    """
    unit = float(scores.std()) or 1.0
    ordered = np.sort(scores)[::-1]
    guess = float(ordered[min(int(expected), len(ordered) - 1)])
    if not expected:
        guess = float(ordered[0]) + unit
    places = guess + unit * PLACES[:, None]
    slopes = SLOPES[None, :] / unit
    odds = -0.5 * (PLACES[:, None] / DOUBT) ** 2
    odds = odds - 0.5 * (np.log(SLOPES / STEEPNESS)[None, :] / STEEPNESS_DOUBT) ** 2
    signs = np.where(labels, 1.0, -1.0)
    for score, sign in zip(known.tolist(), signs.tolist(), strict=True):
        odds = odds - np.logaddexp(0, -sign * slopes * (score - places))
    weight = np.exp(odds - odds.max())
    weight /= weight.sum()
    place = float((weight * places).sum())
    slope = float(np.exp((weight * np.log(slopes)).sum()))
    called = scores >= place
    likely = weight > weight.max() * NEGLIGIBLE
    at, steep = (np.broadcast_to(each, weight.shape)[likely] for each in (places, slopes))
    p = sigmoid(steep[:, None] * (scores - at[:, None])) + TINY  # [curves, n]
    found = p @ called
    precision = _share(found / max(1, int(called.sum())), weight[likely])
    return Threshold(place, slope, precision, _share(found / p.sum(axis=1), weight[likely]))


def _share(values: Numbers, weight: Numbers) -> Share:
    order = np.argsort(values)
    total = np.cumsum(weight[order]) / weight.sum()
    ends = np.searchsorted(total, (TAIL, 0.5, 1 - TAIL)).clip(0, len(order) - 1)
    return Share(*values[order[ends]].tolist())
