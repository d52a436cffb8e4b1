"""Clusters of links by the tags that lead to them (Gauquier, Manolescu and Senellart, 2026).

A path such as `html body div.#main ul.menu li a` is a bag of pairs of neighbouring tags, with marks
at both ends, each pair hashed to one of 2^12 dimensions and weighed by its share of the path. A
link joins the cluster whose centroid has the highest cosine to it, if that is 0.75 at least;
otherwise it begins a new cluster.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DIMENSIONS: Final = 2**12
SIMILARITY: Final = 0.75  # least cosine to a cluster's centroid
START, END = "^", "$"  # no tags


class PathVector(NamedTuple):
    """The dimensions [n] of a path that are not 0, in order, and their values."""

    dimensions: NDArray[np.int64]
    values: NDArray[np.float64]


class LinkClusters:
    """Numbers clusters in the order in which they begin; a cluster takes 16 KB."""

    def __init__(self) -> None:
        self._count = 0
        # A centroid is the sum of a cluster's vectors: its length does not change a cosine.
        self._sums = np.zeros((DIMENSIONS, 64), dtype=np.float32)  # [dimension, cluster]
        self._squares = np.zeros(64)  # of the lengths of these sums

    def __len__(self) -> int:
        return self._count

    def add(self, path: str) -> int:
        """Add a link by its path; return its cluster."""
        vector = vector_of(path)
        cosines = self.cosines(vector)
        cluster = int(cosines.argmax()) if len(cosines) else 0
        if not len(cosines) or cosines[cluster] < SIMILARITY:
            cluster = self._begin()
        sums = self._sums[vector.dimensions, cluster]
        self._squares[cluster] += vector.values @ (2 * sums + vector.values)
        self._sums[vector.dimensions, cluster] = sums + vector.values
        return cluster

    def cosines(self, vector: PathVector) -> NDArray[np.float64]:
        """Return the cosine [n] of a path to each centroid."""
        dots = vector.values @ self._sums[vector.dimensions, : self._count]
        lengths = np.sqrt(self._squares[: self._count] * (vector.values @ vector.values))
        cosines: NDArray[np.float64] = dots / lengths
        return cosines

    def _begin(self) -> int:
        if self._count == len(self._squares):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)], axis=1)
            self._squares = np.concatenate([self._squares, np.zeros_like(self._squares)])
        self._count += 1
        return self._count - 1


@lru_cache(maxsize=10_000)  # the links of a menu have one path
def vector_of(path: str) -> PathVector:
    """Return the vector of a path of tags separated by spaces, which may be empty."""
    pairs = list(pairwise([START, *path.split(), END]))
    numbers = (crc32(f"{a} {b}".encode("utf-8", "replace")) % DIMENSIONS for a, b in pairs)
    counts = sorted(Counter(numbers).items())
    dimensions, values = zip(*counts, strict=True)
    return PathVector(np.array(dimensions), np.array(values) / len(pairs))
