import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tres_scrapy.frontier.tree import best_split


def variance_reduction(x, rewards, feature, threshold):
    """Eq. 4, as printed."""
    left = x[:, feature] < np.float32(threshold)
    parts = [rewards[left], rewards[~left]]
    return np.var(rewards) - sum(len(part) / len(rewards) * np.var(part) for part in parts)


def obvious_best(x, rewards, min_share):
    best = None
    for feature in range(x.shape[1]):
        values = np.unique(x[:, feature])
        for threshold in values[1:]:
            n_left = int((x[:, feature] < threshold).sum())
            if min(n_left, len(x) - n_left) < min_share * len(x):
                continue
            reduction = variance_reduction(x, rewards, feature, threshold)
            if reduction > 1e-9 and (best is None or reduction > best + 1e-12):
                best = reduction
    return best


def test_split_by_hand():
    """Four samples, rewards 0 0 1 1 along feature 1: V(P) = 1/4, both children pure."""
    x = np.array([[0, 0.1], [1, 0.2], [0, 0.6], [1, 0.8]], dtype=np.float32)
    split = best_split(x, np.array([0, 0, 1, 1], dtype=np.float32))
    assert split.feature == 1
    assert split.threshold == pytest.approx(0.4)
    assert split.reduction == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("column", "rewards"),
    [([1, 2, 3], [1, 1, 1]), ([5, 5, 5], [0, 1, 0]), ([0, 1, 0, 1], [0, 0, 1, 1])],
)
def test_no_split_without_positive_reduction(column, rewards):
    x = np.array(column, dtype=np.float32)[:, None]
    assert best_split(x, np.array(rewards, dtype=np.float32)) is None


def test_each_child_keeps_the_minimum_share():
    x = np.arange(10, dtype=np.float32)[:, None]
    rewards = np.array([1] + [0] * 9, dtype=np.float32)
    assert best_split(x, rewards).threshold == 0.5
    assert best_split(x, rewards, min_share=0.2).threshold == 1.5


def test_threshold_separates_neighbouring_floats():
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    split = best_split(np.array([[low], [high]]), np.array([0, 1], dtype=np.float32))
    assert low < np.float32(split.threshold) <= high


@given(
    st.integers(2, 30).flatmap(
        lambda n: st.tuples(
            arrays(np.float32, (n, 3), elements=st.sampled_from([0, 0.1, 0.25, 0.5, 1])),
            arrays(np.float32, n, elements=st.sampled_from([0, 1])),
        )
    ),
    st.sampled_from([0.0, 0.2]),
)
def test_split_equals_equation_4(sample, min_share):
    x, rewards = sample
    split = best_split(x, rewards, min_share)
    rewards = rewards.astype(np.float64)
    best = obvious_best(x, rewards, min_share)
    assert (split is None) == (best is None)
    if split is not None:
        assert split.reduction == pytest.approx(best)
        found = variance_reduction(x, rewards, split.feature, split.threshold)
        assert found == pytest.approx(best)
