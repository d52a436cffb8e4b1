from __future__ import annotations

import numpy as np
import pytest

from tres_scrapy.training.validation import Score, interval, score


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


def test_interval_contains_share_and_narrows() -> None:
    few, many = interval(4, 5), interval(400, 500)
    for low, share, high in (few, many):
        assert 0 < low < share == 0.8 < high < 1
    assert many.high - many.low < few.high - few.low
    assert interval(0, 5).low == 0
    assert interval(5, 5).high == 1
