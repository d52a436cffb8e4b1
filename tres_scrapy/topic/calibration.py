"""Platt scaling: converts logits to probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Calibration(NamedTuple):
    """The parameters that convert the logit of a model to P(relevant)."""

    slope: float
    intercept: float

    def log_odds(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated log odds."""
        return self.slope * logits + self.intercept

    def probabilities(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(relevant)."""
        return sigmoid(self.log_odds(logits))


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of log odds, without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * log_odds))
