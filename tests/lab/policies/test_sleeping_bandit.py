from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.lab.policies.sb_classifier import ALPHA, SleepingBandit


def choose(bandit, *awake):
    return awake[bandit.choose(np.array(awake))]


def play(bandit, rewards, *awake):
    arm = choose(bandit, *awake)
    bandit.learn(arm, rewards[arm])
    return arm


def test_each_arm_is_tried_once_then_the_highest_bound():
    bandit = SleepingBandit()
    assert [play(bandit, [0, 1, 0], 0, 1, 2) for _ in range(4)] == [0, 1, 2, 1]
    width = ALPHA * sqrt(log(4))
    assert bandit.scores(np.arange(4)) == pytest.approx([width, 1 + width / sqrt(2), width, inf])


def test_alpha_is_that_of_auer():
    assert pytest.approx(sqrt(8)) == ALPHA


def test_best_arm_sleeps():
    bandit = SleepingBandit(alpha=0.1)
    for _ in range(9):
        play(bandit, [0, 1, 0.5], 0, 1, 2)
    assert choose(bandit, 0, 1, 2) == 1
    assert choose(bandit, 0, 2) == 2
    assert choose(bandit, 0) == 0


def test_new_arm_is_tried_at_once():
    bandit = SleepingBandit()
    for _ in range(5):
        play(bandit, [1], 0)
    assert choose(bandit, 0, 7, 3) == 3, "the oldest of the new arms"


def test_choice_counts_before_its_reward():
    bandit = SleepingBandit()
    assert [choose(bandit, 0, 1) for _ in range(4)] == [0, 1, 0, 1]
    bandit.learn(1, 1.0)
    width = ALPHA * sqrt(log(4) / 2)
    assert bandit.scores(np.arange(2)) == pytest.approx([width, 1 + width])


@given(st.lists(st.tuples(st.sets(st.integers(0, 4), min_size=1), st.integers(0, 3)), max_size=40))
def test_choices_are_those_of_the_formula(rounds):
    bandit, past = SleepingBandit(), {arm: [] for arm in range(5)}
    for t, (awake, reward) in enumerate(rounds):

        def score(arm, t=t):
            rewards = past[arm]
            if not rewards:
                return inf
            return sum(rewards) / len(rewards) + sqrt(8 * log(t) / len(rewards))

        arm = choose(bandit, *awake)
        best = max(map(score, awake))
        assert score(arm) == pytest.approx(best)
        assert score(arm) < inf or arm == min(each for each in awake if not past[each])
        bandit.learn(arm, reward)
        past[arm].append(reward)
    assert bandit.choices == len(rounds)
