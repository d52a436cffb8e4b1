"""Scores of probabilities against true labels, calibration and the best threshold (P 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix_at_thresholds,
    matthews_corrcoef,
    precision_recall_fscore_support,
)

from tres_scrapy.topic.classifier import Calibration

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLATEAU: Final = 0.01  # thresholds with an MCC this close to the best are equally good


class Score(NamedTuple):
    """Precision and recall for relevant, F-macro, Matthews correlation, average precision."""

    precision: float
    recall: float
    f_macro: float
    mcc: float
    pr_auc: float


class Interval(NamedTuple):
    """A share and the ends of its 95 % confidence interval."""

    low: float
    share: float
    high: float


def score(true: NDArray[np.bool_], probability: NDArray[np.float64], threshold: float) -> Score:
    """Score P(relevant) >= threshold against labels; undefined ratios are 0."""
    called = probability >= threshold
    precision, recall, f, _ = precision_recall_fscore_support(
        true, called, labels=[False, True], zero_division=0
    )
    return Score(
        float(precision[1]),
        float(recall[1]),
        float(f.mean()),
        float(matthews_corrcoef(true, called)) if len(np.unique([true, called])) > 1 else 0.0,
        float(average_precision_score(true, probability)) if true.any() else 0.0,
    )


def interval(found: int, count: int) -> Interval:
    """Return the share `found / count` and its Wilson interval."""
    ends = binomtest(found, count).proportion_ci(method="wilson")
    return Interval(float(ends.low), found / count, float(ends.high))


class Threshold(NamedTuple):
    """A threshold and its MCC."""

    value: float
    mcc: float


def calibrate(logits: NDArray[np.float64], true: NDArray[np.bool_]) -> Calibration:
    """Fit slope and intercept to labels; P(relevant) assumes a similar share of relevant ones."""
    model = LogisticRegression(C=1.0).fit(logits[:, None], true)
    return Calibration(float(model.coef_[0, 0]), float(model.intercept_[0]))


def best_threshold(true: NDArray[np.bool_], values: NDArray[np.float64]) -> Threshold:
    """Return the middle of the plateau of thresholds around the best MCC, and that MCC.

    `values` [n] are logits or log odds; a document at the threshold is relevant. Without documents
    of both labels, return 0 and 0.
    """
    tn, fp, fn, tp, falling = confusion_matrix_at_thresholds(true, values, pos_label=True)
    spread = np.sqrt((tp + fp) * (tn + fn) * (tp + fn) * (tn + fp))
    mcc = np.divide(tp * tn - fp * fn, spread, out=np.zeros_like(tp), where=spread > 0)
    if not mcc.any():
        return Threshold(0.0, 0.0)
    best = int(np.argmax(mcc))
    poor = np.flatnonzero(mcc < mcc[best] - PLATEAU)
    first = int(poor[poor < best].max(initial=-1)) + 1
    end = int(poor[poor > best].min(initial=len(mcc)))  # at its value the decision is poor
    below = falling[min(end, len(mcc) - 1)]
    return Threshold(float(falling[first] + below) / 2, float(mcc[best]))
