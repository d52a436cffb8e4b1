"""How much is known of the reward around x(s, a): LinUCB's confidence width (Li et al., 2010)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.feature import FEATURES


class Confidence:
    """The design matrix A = I + sum of z z^T over experience, z being x [8] behind a 1.

    A direction that no experience points in has the greatest width, 1 for each unit; n
    experiences alike leave about 1 / sqrt(n).
    """

    def __init__(self) -> None:
        self._design = np.eye(1 + len(FEATURES))

    def add(self, x: NDArray[np.float32]) -> None:
        """Take in experiences, one x [8] or several [n, 8]; their order counts in the last bit."""
        for z in _with_one(np.atleast_2d(x)):
            self._design += np.outer(z, z)

    def width(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return sqrt(z^T A^-1 z) of x [n, 8] as [n]."""
        z = _with_one(x)
        squares = ((z @ np.linalg.inv(self._design)) * z).sum(axis=1)
        width: NDArray[np.float32] = np.sqrt(squares).astype(np.float32)
        return width


def _with_one(x: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.column_stack([np.ones(len(x)), x])
