from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.topic.classifier import Calibration, sigmoid
from tres_scrapy.training.validation import PLATEAU, best_threshold, calibrate


def mcc(true: np.ndarray, predicted: np.ndarray) -> float:
    if true.all() or not true.any() or predicted.all() or not predicted.any():
        return 0.0
    return float(np.corrcoef(true, predicted)[0, 1])


def test_calibration_recovers_the_odds() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 20_000)
    true = rng.random(20_000) < sigmoid(3 * logits - 1)
    found = calibrate(logits, true)
    assert found == pytest.approx((3, -1), abs=0.15)
    chosen = np.abs(found.probabilities(logits) - 0.5) < 0.1
    assert true[chosen].mean() == pytest.approx(0.5, abs=0.05)


def test_probability_is_sigmoid() -> None:
    scaling = Calibration(2.0, -1.0)
    assert scaling.log_odds(np.array([0.5]))[0] == 0
    assert scaling.probabilities(np.array([0.5, -1e9, 1e9])).tolist() == [0.5, 0, 1]


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([-2.0, -0.5, 0.1, 0.2, 3.0])),
        min_size=1,
        max_size=30,
    )
)
def test_no_threshold_has_a_better_mcc(pairs: list[tuple[bool, float]]) -> None:
    true = np.array([label for label, _ in pairs], dtype=bool)
    values = np.array([value for _, value in pairs], dtype=np.float64)
    found = best_threshold(true, values)
    every = [mcc(true, values >= value) for value in set(values.tolist())]
    assert found.mcc == pytest.approx(max([0.0, *every]), abs=1e-9)
    assert mcc(true, values >= found.value) >= found.mcc - PLATEAU - 1e-9


def test_threshold_is_middle_of_ties() -> None:
    true = np.array([False, False, True, True])
    assert best_threshold(true, np.array([-3.0, -1.0, 5.0, 7.0])) == pytest.approx((2.0, 1.0))
