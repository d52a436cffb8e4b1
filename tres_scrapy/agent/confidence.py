"""The uncertainty of the reward at x(s, a): LinUCB's confidence width (Li et al., 2010)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.feature import FEATURES


class Confidence:
    """The design matrix A = I + sum of z z^T over experiences, where z is a 1 followed by x [9].

    Without experience in a direction, the width of a unit vector is 1. After n equal experiences
    it is about 1 / sqrt(n).
    """

    def __init__(self) -> None:
        self._design = np.eye(1 + len(FEATURES))

    def add(self, x: NDArray[np.float32]) -> None:
        """Add one experience x [9] or several [n, 9]; their order changes only the last bits."""
        for z in _with_one(np.atleast_2d(x)):
            self._design += np.outer(z, z)

    def width(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return sqrt(z^T A^-1 z) of x [n, 9] as [n]."""
        z = _with_one(x)
        squares = ((z @ np.linalg.inv(self._design)) * z).sum(axis=1)
        width: NDArray[np.float32] = np.sqrt(squares).astype(np.float32)
        return width


def _with_one(x: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.column_stack([np.ones(len(x)), x])
