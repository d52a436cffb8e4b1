"""The features of keywords, and the kernel kappa that compares two keywords (B.2, Eq. 5).

Statistical: log(TF/n), log(DF/n) and residual IDF. Linguistic: length, digits, kind. HTML: depth,
and the place in whose text the keyword has its largest share. Counts are shares of the acquired
records, so that features of different steps can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.surface.acquired import Acquired, Floats, Ints

WIDTH: Final = 0.25  # sigma of the Gaussian kernel
FLOOR: Final = 1e-9  # the least weight of a pair of keywords
DECADES: Final = 4.0  # a share of 1e-4 becomes 0, a share of 1 becomes 1
RIDF_SCALE: Final = 4.0
LENGTH_SCALE: Final = 15.0
DEPTH_SCALE: Final = 20.0


@dataclass(frozen=True, slots=True)
class Features:
    """Features of n keywords: numbers scaled to about [0, 1], [n, 6]; place and kind, [n, 2]."""

    numeric: Floats
    discrete: Ints

    def take(self, rows: Ints) -> Features:
        """Return the features of some of the keywords."""
        return Features(self.numeric[rows], self.discrete[rows])


Describe = Callable[[Acquired, Ints], Features]


def features(acquired: Acquired, numbers: Ints) -> Features:
    """Return the features of keywords at the present step s_t."""
    statistical = statistical_features(acquired, numbers)
    length, digits = acquired.spelling[numbers].T
    length = np.minimum(length / LENGTH_SCALE, 1.0)
    depth = np.minimum(acquired.depth[numbers] / DEPTH_SCALE, 1.0)
    numeric = np.column_stack([statistical.numeric, length, digits, depth])
    # A title has few words and a body many. By counts, nearly all words of titles would be words
    # of bodies, so the place is where the keyword has its largest share of the text.
    shares = acquired.places[numbers] / np.maximum(acquired.places.sum(axis=0), 1)
    return Features(
        numeric, np.column_stack([shares.argmax(axis=1), acquired.kinds[numbers].argmax(axis=1)])
    )


def statistical_features(acquired: Acquired, numbers: Ints) -> Features:
    """Return only the statistical features, for comparison."""
    n = max(acquired.records, 1)
    tf = np.maximum(acquired.tf[numbers], 0.5) / n
    df = np.maximum(acquired.df[numbers], 0.5) / n
    # document frequency against a Poisson distribution of the same occurrences
    ridf = -np.log2(df) + np.log2(-np.expm1(-tf))
    scaled = [1 + np.log10(tf) / DECADES, 1 + np.log10(df) / DECADES, ridf / RIDF_SCALE]
    numeric = np.clip(np.column_stack(scaled), 0, 1.5)
    return Features(numeric, np.zeros((len(numbers), 0), np.int64))


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
