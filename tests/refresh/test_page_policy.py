import numpy as np

from tres_scrapy.lab.refresh_policies import (
    BanditPolicy,
    RoundRobinPolicy,
    UniformBandit,
    UniformPolicy,
)
from tres_scrapy.refresh.page_table import PageTable

FOUR = np.ones(4, bool)


def pages_of(*arms, weights=None):
    return PageTable(np.ones(len(arms)) if weights is None else np.array(weights), np.array(arms))


def test_visit_books_its_gap():
    pages = pages_of(0, 0)
    pages.see(0, True, 3.0)
    pages.see(0, False, 5.0)
    pages.see(0, None, 9.0)
    assert (pages.changes[0], pages.changed_time[0], pages.quiet_time[0]) == (1, 3, 2)
    assert pages.fetched.tolist() == [9, 0]


def test_backward_clock_is_no_observation():
    pages = pages_of(0)
    pages.see(0, True, 5.0)
    pages.see(0, True, 4.0)
    assert (pages.changes[0], pages.changed_time[0]) == (1, 5)


def test_arm_weight_is_mean():
    assert pages_of(0, 0, 1, weights=[1.0, 3.0, 5.0]).arm_weights().tolist() == [2, 5]


def test_round_robin_takes_what_waits_longest():
    pages, policy = pages_of(0, 0, 0, 0), RoundRobinPolicy(pages_of(0))
    policy = RoundRobinPolicy(pages)
    order = []
    for now in range(1, 7):
        order.append(policy.select(now, FOUR))
        pages.see(order[-1], False, now)
    assert order == [0, 1, 2, 3, 0, 1]
    assert policy.select(9, np.array([False, True, False, False])) == 1


def test_uniform_takes_any_allowed_page():
    policy = UniformPolicy(np.random.default_rng(0))
    allowed = np.array([True, False, True, False])
    assert {policy.select(0, allowed) for _ in range(50)} == {0, 2}


def test_pages_of_an_arm_take_turns():
    """P 2: each group has a pointer."""
    pages = pages_of(0, 1, 1, 1)
    policy = BanditPolicy(pages, UniformBandit(np.random.default_rng(0)))
    only_second = np.array([False, True, True, True])
    order = []
    for now in range(1, 6):
        order.append(policy.select(now, only_second))
        pages.see(order[-1], False, now)
    assert order == [1, 2, 3, 1, 2]


def test_bandit_learns_by_arm():
    told = []

    class Told(UniformBandit):
        def begin(self, arm):
            told.append(arm)

        def end(self, arm, changed):
            told.append((arm, changed))

    policy = BanditPolicy(pages_of(0, 1), Told(np.random.default_rng(0)))
    policy.begin(1, 0.0)
    policy.end(1, True, 0.0)
    assert told == [1, (1, True)]
