"""What the links of all samples say, as codes."""

from __future__ import annotations

from array import array

import numpy as np

from tres_scrapy.frontier.pool import Rows
from tres_scrapy.links.code import RaggedArray


class HashedFeatures:
    """The codes of all samples in one array."""

    def __init__(self) -> None:
        self._codes = array("I")
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def extend(self, links: RaggedArray) -> None:
        """Append the codes of samples."""
        first = len(self._codes)
        self._codes.frombytes(links.codes.tobytes())
        self._ends.frombytes((first + np.cumsum(links.counts)).tobytes())

    def take(self, rows: Rows) -> RaggedArray:
        """Return the codes of some samples."""
        ends = np.frombuffer(self._ends, dtype=np.int64)
        counts = ends[rows + 1] - ends[rows]
        shifts = ends[rows] - (np.cumsum(counts) - counts)
        places = np.arange(int(counts.sum())) + np.repeat(shifts, counts)
        return RaggedArray(np.frombuffer(self._codes, dtype=np.uint32)[places], counts)

    def since(self, first: int) -> RaggedArray:
        """Return the codes of the samples from `first` on."""
        return self.take(np.arange(first, len(self)))
