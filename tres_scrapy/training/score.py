"""Scores of probabilities and a threshold against true labels (P 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import (
    average_precision_score,
    matthews_corrcoef,
    precision_recall_fscore_support,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
