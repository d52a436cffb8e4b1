"""The features of a keyword, and kappa, the kernel that compares two of them (B.2, Eq. 5).

Statistical: log(TF/n), log(DF/n) and residual IDF. Linguistic: length, digits, kind. HTML: the
place whose text a keyword has the largest share of, and its depth. As shares of what is acquired,
features of different steps compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.surface.acquired import Acquired, Ints

Floats = NDArray[np.float64]
WIDTH: Final = 0.25  # sigma of the Gaussian kernel
FLOOR: Final = 1e-9  # no pair of keywords is unlike beyond measure
DECADES: Final = 4.0  # a share of 1e-4 is 0, one of 1 is 1
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
    """Return the features of keywords as they are at s_t."""
    statistical = statistical_features(acquired, numbers)
    length, digits = acquired.spelling[numbers].T
    length = np.minimum(length / LENGTH_SCALE, 1.0)
    depth = np.minimum(acquired.depth[numbers] / DEPTH_SCALE, 1.0)
    numeric = np.column_stack([statistical.numeric, length, digits, depth])
    # A title has few words and a body many: a keyword stands most where its share is largest,
    # else the words of titles would all be words of bodies.
    shares = acquired.places[numbers] / np.maximum(acquired.places.sum(axis=0), 1)
    return Features(
        numeric, np.column_stack([shares.argmax(axis=1), acquired.kinds[numbers].argmax(axis=1)])
    )


def spelling_features(acquired: Acquired, numbers: Ints) -> Features:
    """Return the features without the kind, for comparison: nobody tells the part of speech."""
    every = features(acquired, numbers)
    return Features(every.numeric, every.discrete[:, :1])


def statistical_features(acquired: Acquired, numbers: Ints) -> Features:
    """Return the statistical features alone, for comparison."""
    n = max(acquired.records, 1)
    tf = np.maximum(acquired.tf[numbers], 0.5) / n
    df = np.maximum(acquired.df[numbers], 0.5) / n
    # what the document frequency says beyond a Poisson of the same occurrences
    ridf = -np.log2(df) + np.log2(-np.expm1(-tf))
    scaled = [1 + np.log10(tf) / DECADES, 1 + np.log10(df) / DECADES, ridf / RIDF_SCALE]
    numeric = np.clip(np.column_stack(scaled), 0, 1.5)
    return Features(numeric, np.zeros((len(numbers), 0), np.int64))


def kernel(left: Features, right: Features) -> NDArray[np.float32]:
    """Return kappa [n, m], each row of which sums to one (Nadaraya and Watson).

    A feature of names is at distance 1 from any other name.
    """
    a, b = left.numeric.astype(np.float32), right.numeric.astype(np.float32)
    distances = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    for column in range(left.discrete.shape[1]):
        distances += left.discrete[:, column, None] != right.discrete[None, :, column]
    weights = np.exp(-np.maximum(distances, 0) / np.float32(2 * WIDTH**2)) + np.float32(FLOOR)
    kappa: NDArray[np.float32] = weights / weights.sum(axis=1, keepdims=True)
    return kappa
