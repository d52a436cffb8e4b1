import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tres_scrapy.topic.fit import Bags, fit_logistic


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def bags_of(dense):
    parts = [(np.flatnonzero(row), row[np.flatnonzero(row)]) for row in dense]
    return Bags.of(parts, dense.shape[1])


def test_fit_agrees_with_scikit_learn(rng):
    dense = rng.random((200, 30)) * (rng.random((200, 30)) < 0.3)
    labels = dense[:, 0] + 0.3 * rng.random(200) > dense[:, 1] + 0.1
    weights = rng.random(200) + 0.5
    found, bias = fit_logistic(bags_of(dense), labels.astype(float), weights, 3.0)
    known = LogisticRegression(C=3.0, tol=1e-8, max_iter=1000).fit(dense, labels, weights)
    assert found == pytest.approx(known.coef_[0], abs=0.01)
    assert bias == pytest.approx(known.intercept_[0], abs=0.01)


def test_soft_target_counts_as_both_labels(rng):
    dense = rng.random((50, 4))
    targets = rng.random(50)
    soft, _ = fit_logistic(bags_of(dense), targets, np.ones(50), 10.0)
    twice = bags_of(np.concatenate([dense, dense]))
    hard = np.repeat([1.0, 0.0], 50)
    split, _ = fit_logistic(twice, hard, np.concatenate([targets, 1 - targets]), 10.0)
    assert soft == pytest.approx(split, abs=1e-2)


def test_text_without_words_is_no_error():
    empty = Bags.of([(np.zeros(0, np.int64), np.zeros(0))], 3)
    found, _ = fit_logistic(empty, np.array([1.0]), np.ones(1), 1.0)
    assert found.tolist() == [0, 0, 0]
