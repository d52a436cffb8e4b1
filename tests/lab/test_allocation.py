"""Static optimisation, compared with the paper's printed optimum, a solver and a slow search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refreshing.simulation import MULTIPLE, SINGLE, allocate, freshness
from scipy.optimize import minimize

from tres_scrapy.refresh.policy import allocate_within, chance

WEIGHTS = np.array(SINGLE.weights)
PROBLEMS = st.lists(
    st.tuples(st.floats(1e-4, 0.999), st.floats(1e-2, 10)), min_size=1, max_size=40
).map(lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True)))


def value(shares, chances, weights):
    return float(weights @ freshness(shares, chances))


def test_optimum_is_the_corrected_print():
    """P 5: [0.942, 0.055, 0.003, 0]; mu / Delta says that page 3 outranks page 2."""
    shares = allocate(SINGLE.chances, WEIGHTS)
    assert np.abs(shares - [0.9418, 0.0033, 0.0549, 0]).max() < 5e-4
    assert shares[3] == 0
    assert value(shares, SINGLE.chances, WEIGHTS) == pytest.approx(5.7264, abs=5e-4)


def test_printed_order_is_no_optimum():
    printed = np.array([0.942, 0.055, 0.003, 0])
    assert value(printed, SINGLE.chances, WEIGHTS) == pytest.approx(5.183, abs=5e-3)


def test_probabilities_give_another_optimum():
    shares = allocate(np.array(SINGLE.rates), WEIGHTS)
    assert shares == pytest.approx([0.9529, 0, 0.0471, 0], abs=5e-4)


def test_groups_of_the_second_experiment():
    counts = np.array(MULTIPLE.counts, float)
    shares = allocate(MULTIPLE.chances, WEIGHTS, counts) * counts
    assert shares == pytest.approx([0.554, 0.294, 0.152, 0], abs=1e-3)
    alone = allocate(MULTIPLE.chances, WEIGHTS)
    assert alone == pytest.approx([0.767, 0.021, 0.076, 0.136], abs=1e-3)


@given(PROBLEMS)
def test_closed_form_is_the_bisection(problem):
    chances, weights = problem
    none, all_ = np.zeros_like(chances), np.ones_like(chances)
    exact = allocate(chances, weights)
    assert exact.sum() == pytest.approx(1)
    assert exact == pytest.approx(allocate_within(chances, weights, none, all_), abs=1e-9)


@given(PROBLEMS)
def test_fetched_pages_share_one_price(problem):
    chances, weights = problem
    shares = allocate(chances, weights)
    price = weights * chances / (chances + (1 - chances) * shares) ** 2
    fetched = shares > 1e-12
    assert price[fetched] == pytest.approx(price[fetched].max(), rel=1e-6)
    assert (price[~fetched] <= price[fetched].max() * (1 + 1e-6)).all()


def test_no_solver_finds_better():
    random = np.random.default_rng(0)
    chances, weights = random.uniform(0.01, 0.9, 6), random.uniform(0.1, 5, 6)
    found = minimize(
        lambda shares: -value(np.clip(shares, 1e-9, 1), chances, weights),
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
    )
    best = value(allocate(chances, weights), chances, weights)
    assert best == pytest.approx(-found.fun, rel=1e-6)


def test_counts_stand_for_equal_pages():
    chances, weights, counts = np.array([0.3, 0.05]), np.array([1.0, 2.0]), np.array([3, 7])
    grouped = allocate(chances, weights, counts.astype(float))
    single = allocate(np.repeat(chances, counts), np.repeat(weights, counts))
    assert np.repeat(grouped, counts) == pytest.approx(single)


@given(PROBLEMS)
def test_budget_is_spent_within_bounds(problem):
    chances, weights = problem
    count = len(chances)
    least, most = np.full(count, 0.1 / count), np.full(count, 4 / count)
    shares = allocate_within(chances, weights, least, most)
    assert (shares >= least).all()
    assert (shares <= most).all()
    assert shares.sum() == pytest.approx(1, rel=1e-6)


def test_bounds_that_leave_no_choice():
    chances, weights = np.array([0.1, 0.2]), np.ones(2)
    none, two = np.zeros(2), np.full(2, 2.0)
    assert allocate_within(chances, weights, two, two).tolist() == [0.5, 0.5]
    assert allocate_within(chances, weights, none, np.full(2, 0.1)).tolist() == [0.1, 0.1]


def test_a_million_pages():
    random = np.random.default_rng(0)
    chances, weights = random.uniform(1e-7, 0.5, 10**6), random.random(10**6) + 0.01
    shares = allocate(chances, weights)
    assert shares.sum() == pytest.approx(1)
    assert value(shares, chances, weights) > value(np.full(10**6, 1e-6), chances, weights)


def test_chances_stay_between_0_and_1():
    chances = chance(np.array([0.0, 0.6, 1e9]))
    assert 0 < chances[0] < 1e-9
    assert chances[1] == pytest.approx(1 - np.exp(-0.6))
    assert 0.99 < chances[2] < 1
