"""From logits to probabilities and a decision: Platt scaling and the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLATEAU: Final = 0.01  # thresholds whose MCC is less than this below the best are as good


class Threshold(NamedTuple):
    """A boundary and the MCC of the decision at it."""

    value: float
    mcc: float


class Calibration(NamedTuple):
    """How the logit of a model becomes P(relevant)."""

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


def calibrate(logits: NDArray[np.float64], true: NDArray[np.bool_]) -> Calibration:
    """Fit slope and intercept to labels; P(relevant) then holds for a mix like these documents."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - no crawl should pay it

    model = LogisticRegression(C=1.0).fit(logits[:, None], true)
    return Calibration(float(model.coef_[0, 0]), float(model.intercept_[0]))


def best_threshold(true: NDArray[np.bool_], values: NDArray[np.float64]) -> Threshold:
    """Return the middle of the plateau of thresholds around the best MCC, and that MCC.

    Values are logits or log odds; a document at the threshold is relevant. Without documents of
    both labels the MCC is 0 and the threshold 0.
    """
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    last = np.flatnonzero(np.diff(falling, append=-np.inf))  # of each distinct value
    tp = np.cumsum(true[order])[last].astype(np.float64)
    predicted, relevant, n = last + 1.0, float(true.sum()), len(true)
    spread = np.sqrt(predicted * (n - predicted) * relevant * (n - relevant))
    mcc = np.divide(tp * n - predicted * relevant, spread, out=np.zeros_like(tp), where=spread > 0)
    if not mcc.any():
        return Threshold(0.0, 0.0)
    best = int(np.argmax(mcc))
    poor = np.flatnonzero(mcc < mcc[best] - PLATEAU)
    first = int(poor[poor < best].max(initial=-1)) + 1
    end = int(poor[poor > best].min(initial=len(mcc)))  # at its value the decision is poor
    below = falling[last[min(end, len(mcc) - 1)]]
    return Threshold(float(falling[last[first]] + below) / 2, float(mcc[best]))
