from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

from tres_scrapy.training.score import Score, curve, score

ANSWERS = st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=40)


def test_scores_match_known_table() -> None:
    true = np.repeat([True, True, False, False], [6, 2, 4, 8])  # 6 found, 2 missed, 4 false
    probability = np.repeat([0.5, 0.4, 0.9, 0.1], [6, 2, 4, 8])
    found = score(true, probability, 0.5)
    assert found[:3] == pytest.approx((6 / 10, 6 / 8, (12 / 18 + 16 / 22) / 2))
    assert found.mcc == pytest.approx(np.corrcoef(true, probability >= 0.5)[0, 1])


def test_silent_model_scores_zero() -> None:
    silent = score(np.array([True, False]), np.zeros(2), 0.5)
    assert (silent.precision, silent.recall, silent.mcc) == (0, 0, 0)


@pytest.mark.parametrize(
    ("true", "expected"),
    [([True, True], Score(1, 0.5, 1 / 3, 0, 1)), ([False, False], Score(0, 0, 1 / 3, 0, 0))],
)
def test_scores_of_one_class_are_defined(true: list[bool], expected: Score) -> None:
    assert score(np.array(true), np.array([0.9, 0.1]), 0.5) == pytest.approx(expected)


def test_scores_of_no_documents_are_zero() -> None:
    assert score(np.array([], dtype=bool), np.array([]), 0.5) == (0, 0, 0, 0, 0)


@given(ANSWERS)
def test_curve_equals_scikit_learn(answers: list[tuple[bool, int]]) -> None:
    labels, eighths = zip(*answers, (True, 0), strict=True)
    true, probability = np.array(labels), np.array(eighths) / 8
    area = average_precision_score(true, probability)
    assert score(true, probability, 0.5).pr_auc == pytest.approx(area)
    precision, recall, threshold = precision_recall_curve(true, probability)
    found = curve(true, probability)
    np.testing.assert_array_equal(found.threshold, threshold[::-1])
    np.testing.assert_allclose(found.precision, precision[-2::-1])
    np.testing.assert_allclose(found.recall, recall[-2::-1])
