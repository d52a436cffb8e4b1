"""The value of the next keyword, learned from the executed actions Tr (B.2, Eq. 5).

The features of a keyword are statistical (log(TF/n), log(DF/n), residual IDF), linguistic (length,
digits, kind) and of the HTML (depth, and the place in whose text the keyword has its largest
share). Counts are shares of the acquired records, so that features of different steps can be
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.surface.acquired import Acquired, Floats, Ints, Sightings

WIDTH: Final = 0.25  # sigma of the Gaussian kernel
FLOOR: Final = 1e-9  # the least weight of a pair of keywords
DECADES: Final = 4.0  # a share of 1e-4 becomes 0, a share of 1 becomes 1
RIDF_SCALE: Final = 4.0
LENGTH_SCALE: Final = 15.0
DEPTH_SCALE: Final = 20.0


class Features(NamedTuple):
    """Features of n keywords: numbers scaled to about [0, 1], [n, 6]; place and kind, [n, 2]."""

    numeric: Floats
    discrete: Ints

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the features of all parts in order."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Trial(NamedTuple):
    """An executed action: a query for the keyword `number`, and how many new records it returned.

    `features` [1] and `sightings` [1] are those at the moment of issue.
    """

    number: int
    features: Features
    sightings: Sightings
    new: int


def expected_new(acquired: Acquired, trials: Sequence[Trial], candidates: Ints) -> Floats:
    """Return the expected new records of each candidate, [n].

    With E the expected number of unknown records of a keyword (see acquired.py), it is
    E * sum_j kappa * new_j / sum_j kappa * E_j, the most likely ratio for Poisson yields. It
    assumes neither full-text search nor complete answers and does not need |D|.
    """
    if not trials:
        return acquired.df[candidates].astype(np.float64)
    rates = acquired.recaptures.rates
    executed = Features.join([trial.features for trial in trials])
    kappa = kernel(features(acquired, candidates), executed)
    promised = kappa @ Sightings.join([trial.sightings for trial in trials]).expected(rates)
    found = kappa @ np.array([trial.new for trial in trials], np.float64)
    return acquired.recaptures.sightings(candidates).expected(rates) * found / promised


def features(acquired: Acquired, numbers: Ints) -> Features:
    """Return the features of keywords at the present step s_t."""
    n = max(acquired.records, 1)
    tf = np.maximum(acquired.tf[numbers], 0.5) / n
    df = np.maximum(acquired.df[numbers], 0.5) / n
    # document frequency against a Poisson distribution of the same occurrences
    ridf = -np.log2(df) + np.log2(-np.expm1(-tf))
    scaled = [1 + np.log10(tf) / DECADES, 1 + np.log10(df) / DECADES, ridf / RIDF_SCALE]
    statistical = np.clip(np.column_stack(scaled), 0, 1.5)
    length, digits = acquired.spelling[numbers].T
    length = np.minimum(length / LENGTH_SCALE, 1.0)
    depth = np.minimum(acquired.depth[numbers] / DEPTH_SCALE, 1.0)
    # A title has few words and a body many. By counts, nearly all words of titles would be words
    # of bodies, so the place is where the keyword has its largest share of the text.
    shares = acquired.places[numbers] / np.maximum(acquired.places.sum(axis=0), 1)
    return Features(
        np.column_stack([statistical, length, digits, depth]),
        np.column_stack([shares.argmax(axis=1), acquired.kinds[numbers].argmax(axis=1)]),
    )


def kernel(left: Features, right: Features) -> NDArray[np.float32]:
    """Return kappa [n, m], each row of which sums to one (Nadaraya and Watson).

    Two different places or kinds are at distance 1.
    """
    a, b = left.numeric.astype(np.float32), right.numeric.astype(np.float32)
    distances = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    for column in range(left.discrete.shape[1]):
        distances += left.discrete[:, column, None] != right.discrete[None, :, column]
    weights = np.exp(-np.maximum(distances, 0) / np.float32(2 * WIDTH**2)) + np.float32(FLOOR)
    kappa: NDArray[np.float32] = weights / weights.sum(axis=1, keepdims=True)
    return kappa
