"""How well predicted labels agree with true ones (P 3.3)."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Score(NamedTuple):
    """Precision and recall of the relevant class, F-macro of both classes, Matthews correlation."""

    precision: float
    recall: float
    f_macro: float
    mcc: float


def score(true: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> Score:
    """Compare labels; a ratio with nothing below the line is 0."""
    tp, fp = int((true & predicted).sum()), int((~true & predicted).sum())
    fn, tn = int((true & ~predicted).sum()), int((~true & ~predicted).sum())
    f_macro = (_ratio(2 * tp, 2 * tp + fp + fn) + _ratio(2 * tn, 2 * tn + fp + fn)) / 2
    mcc = _ratio(tp * tn - fp * fn, sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    return Score(_ratio(tp, tp + fp), _ratio(tp, tp + fn), f_macro, mcc)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
