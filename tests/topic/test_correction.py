import numpy as np
import pytest

from tres_scrapy.topic.fit import fit_correction

GROUPS = np.kron(np.eye(2), np.ones((5, 5)))  # two kinds of five equal texts


def corrected(before, said, cover=GROUPS):
    weights, others = fit_correction(np.array(before), cover, np.array(said, dtype=float))
    return before + cover @ weights, others


def test_answers_that_agree_change_little():
    before = np.array([5.0] * 5 + [-5.0] * 5)
    after, _ = corrected(before, [1] * 5 + [0] * 5)
    assert after == pytest.approx(before, abs=0.1)


def test_equal_texts_move_with_their_answers():
    after, others = corrected(np.zeros(10), [1] * 5 + [0] * 5)
    assert (after[:5] > 0.8).all()
    assert (after[5:] < -0.8).all()
    assert others > corrected(np.zeros(10), [1] * 5 + [0] * 5, 0 * GROUPS)[1]


def test_answers_without_a_pattern_predict_each_other_worse():
    said = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert corrected(np.zeros(10), said)[1] < corrected(np.zeros(10), said, 0 * GROUPS)[1]


def test_leaving_one_out_is_close_to_fitting_without_it():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(12, 3))
    before, cover = rng.normal(size=12), points @ points.T + 0.5
    said = (rng.random(12) < 0.5).astype(float)
    exact = 0.0
    for out in range(12):
        rest = np.arange(12) != out
        weights, _ = fit_correction(before[rest], cover[np.ix_(rest, rest)], said[rest])
        odds = before[out] + cover[out, rest] @ weights
        exact -= float(np.logaddexp(0, -(2 * said[out] - 1) * odds))
    assert fit_correction(before, cover, said)[1] == pytest.approx(exact, rel=0.05)


def test_wrong_certainty_ends():
    after, _ = corrected(np.full(10, 40.0), [0] * 10, 100 * GROUPS)
    assert (after < 0).all()
