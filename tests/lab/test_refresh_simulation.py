"""The quick experiments of the paper; benchmarks/refresh.py runs all of them."""

import numpy as np
import pytest
from refreshing.simulation import (
    SINGLE,
    BanditPolicy,
    Experiment,
    StaticBandit,
    ThompsonBandit,
    allocate,
    freshness,
    simulate,
)

from tres_scrapy.refresh.page_table import PageTable

WEIGHTS = np.array(SINGLE.weights)
EVEN = np.ones(4)


def draws(shares):
    return lambda pages, random: BanditPolicy(pages, StaticBandit(shares, random))


def samples(weights):
    return lambda pages, random: BanditPolicy(pages, ThompsonBandit(weights, random))


def mean(make, slots=4_000, runs=3):
    traces = [simulate(SINGLE, make, slots, seed) for seed in range(runs)]
    rewards = np.mean([trace.running(slots) for trace in traces])
    return float(rewards), float(np.mean([trace.fresh.mean() for trace in traces]))


def test_static_draws_by_shares():
    shares = np.array([0.7, 0.3, 0.0])
    bandit = StaticBandit(2 * shares, np.random.default_rng(0))
    drawn = np.bincount([bandit.choose() for _ in range(3_000)], minlength=3) / 3_000
    assert drawn == pytest.approx(shares, abs=0.03)


def test_thompson_finds_changing_arm():
    """P 4: the random draws, as printed, are not scaled by importance."""
    for weights, wanted in ((np.ones(3), 0), (np.array([1, 5, 1.0]), 1)):
        bandit = ThompsonBandit(weights, np.random.default_rng(0))
        for arm, chance in enumerate((0.8, 0.4, 0.1)):
            for number in range(100):
                bandit.learn(arm, number < 100 * chance)
        assert np.bincount([bandit.choose() for _ in range(300)]).argmax() == wanted
        assert bandit.changed.tolist() == [81, 41, 11]


def test_pages_of_an_arm_take_turns():
    """P 2: each group has a pointer."""
    pages = PageTable(np.ones(4), (np.array([0, 1, 1, 1]),))
    policy = draws(np.array([0.0, 1.0]))(pages, np.random.default_rng(0))
    order = []
    for now in range(1, 6):
        order.append(policy.select(now))
        pages.see(order[-1], False, now)
    assert order == [1, 2, 3, 1, 2]


@pytest.mark.slow
def test_uniform_earns_what_theory_says():
    reward, _ = mean(draws(EVEN))
    quarter = np.full(4, 0.25)
    theory = (WEIGHTS * SINGLE.chances * freshness(quarter, SINGLE.chances)).sum()
    assert theory == pytest.approx(1.0536, abs=1e-4)
    assert reward == pytest.approx(theory, abs=0.03)


@pytest.mark.long
@pytest.mark.slow
def test_paper_order_is_reproduced():
    """Uniform < TS < SO; but TS scaled by importance finds more changes than SO, and SO keeps more
    pages fresh: the reward is not freshness."""
    uniform, _ = mean(draws(EVEN))
    printed, _ = mean(samples(EVEN))
    scaled, scaled_fresh = mean(samples(WEIGHTS))
    static, static_fresh = mean(draws(allocate(SINGLE.chances, WEIGHTS)))
    assert 1.0 < uniform < 1.11
    assert 1.84 < printed < 1.95
    assert 2.17 < static < 2.25 < scaled + 0.02
    assert scaled > static
    assert static_fresh > scaled_fresh + 0.5


def test_freshness_is_measured_after_fetch():
    always = Experiment("always", (1,), (1e9,), (2.0,))
    trace = simulate(always, draws(np.ones(1)), 3, 0)
    assert trace.rewards.tolist() == [2, 2, 2]
    assert trace.fresh.tolist() == [2, 2, 2]


def test_simulation_follows_its_seed():
    def rewards(seed):
        return simulate(SINGLE, draws(EVEN), 300, seed).rewards.tolist()

    assert rewards(1) == rewards(1) != rewards(2)


def test_experiment_arms_have_their_counts():
    assert Experiment("two", (2, 3), (0.1, 0.2)).arms.tolist() == [0, 0, 1, 1, 1]
