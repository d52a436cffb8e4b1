"""The quick experiments of the paper; benchmarks/refresh.py runs all of them."""

import numpy as np
import pytest

from tres_scrapy.lab.refresh_policies import (
    BanditPolicy,
    StaticBandit,
    ThompsonBandit,
    UniformBandit,
)
from tres_scrapy.lab.refresh_simulation import SINGLE, Experiment, IndexPolicy, simulate
from tres_scrapy.refresh.allocation import allocate, freshness
from tres_scrapy.refresh.page_table import PageTable

WEIGHTS = np.array(SINGLE.weights)


def mean(make, slots=4_000, runs=3, experiment=SINGLE):
    traces = [simulate(experiment, make, slots, seed) for seed in range(runs)]
    rewards = np.mean([trace.running(slots) for trace in traces])
    return float(rewards), float(np.mean([trace.fresh.mean() for trace in traces]))


@pytest.mark.slow
def test_uniform_earns_what_theory_says():
    reward, _ = mean(lambda pages, random: BanditPolicy(pages, UniformBandit(random)))
    quarter = np.full(4, 0.25)
    theory = (WEIGHTS * SINGLE.chances * freshness(quarter, SINGLE.chances)).sum()
    assert theory == pytest.approx(1.0536, abs=1e-4)
    assert reward == pytest.approx(theory, abs=0.03)


@pytest.mark.slow
def test_paper_order_is_reproduced():
    """Uniform < TS < SO; but TS scaled by importance finds more changes than SO, and SO keeps more
    pages fresh: the reward is not freshness."""
    shares = allocate(SINGLE.chances, WEIGHTS)
    uniform, _ = mean(lambda pages, random: BanditPolicy(pages, UniformBandit(random)))
    printed, _ = mean(lambda pages, r: BanditPolicy(pages, ThompsonBandit(np.ones(4), r)))
    scaled, scaled_fresh = mean(lambda pages, r: BanditPolicy(pages, ThompsonBandit(WEIGHTS, r)))
    static, static_fresh = mean(lambda pages, r: BanditPolicy(pages, StaticBandit(shares, r)))
    assert 1.03 < uniform < 1.08
    assert 1.84 < printed < 1.95
    assert 2.17 < static < 2.25 < scaled + 0.02
    assert scaled > static
    assert static_fresh > scaled_fresh + 0.5


def test_one_page_earns_most():
    reward, fresh = mean(lambda pages, random: IndexPolicy(pages, SINGLE.chances, freshness=False))
    assert reward == pytest.approx(5 * (1 - np.exp(-0.6)), abs=0.04)
    assert fresh == pytest.approx(5.0, abs=0.05)


def test_freshness_is_measured_after_fetch():
    always = Experiment("always", (1,), (1.0,), (2.0,), bernoulli=True)
    trace = simulate(always, lambda pages, r: BanditPolicy(pages, UniformBandit(r)), 3, 0)
    assert trace.rewards.tolist() == [2, 2, 2]
    assert trace.fresh.tolist() == [2, 2, 2]


def test_simulation_follows_its_seed():
    def rewards(seed):
        make = lambda pages, r: BanditPolicy(pages, UniformBandit(r))  # noqa: E731
        return simulate(SINGLE, make, 300, seed).rewards.tolist()

    assert rewards(1) == rewards(1) != rewards(2)


def test_experiment_arms_have_their_counts():
    pages = Experiment("two", (2, 3), (0.1, 0.2), (5.0, 1.0)).pages()
    assert isinstance(pages, PageTable)
    assert pages.arms.tolist() == [0, 0, 1, 1, 1]
    assert pages.weights.tolist() == [5, 5, 1, 1, 1]
