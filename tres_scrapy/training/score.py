"""How well probabilities and a threshold agree with true labels (P 3.3)."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Score(NamedTuple):
    """Precision and recall of the relevant, F-macro, Matthews correlation, average precision."""

    precision: float
    recall: float
    f_macro: float
    mcc: float
    pr_auc: float


class Curve(NamedTuple):
    """Precision and recall at every distinct probability taken as threshold, falling."""

    threshold: NDArray[np.float64]  # [distinct]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]


def score(true: NDArray[np.bool_], probability: NDArray[np.float64], threshold: float) -> Score:
    """Compare labels with P(relevant) >= threshold; a ratio with nothing below the line is 0."""
    predicted = probability >= threshold
    tp, fp = int((true & predicted).sum()), int((~true & predicted).sum())
    fn, tn = int((true & ~predicted).sum()), int((~true & ~predicted).sum())
    f_macro = (_ratio(2 * tp, 2 * tp + fp + fn) + _ratio(2 * tn, 2 * tn + fp + fn)) / 2
    mcc = _ratio(tp * tn - fp * fn, sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    found = curve(true, probability)
    pr_auc = float(np.sum(np.diff(found.recall, prepend=0) * found.precision))
    return Score(_ratio(tp, tp + fp), _ratio(tp, tp + fn), f_macro, mcc, pr_auc)


def curve(true: NDArray[np.bool_], probability: NDArray[np.float64]) -> Curve:
    """Return the precision-recall curve; documents of one probability are taken together."""
    order = np.argsort(-probability, kind="stable")
    falling = probability[order]
    last = np.flatnonzero(np.diff(falling, append=-np.inf))  # of each distinct probability
    found = np.cumsum(true[order])[last]
    return Curve(falling[last], found / (last + 1), found / max(int(true.sum()), 1))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
