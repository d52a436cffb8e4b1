"""Estimators of change rates, tested on pages with known rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tres_scrapy.refresh.page_table import SHAPE, pooled_rates, shrunk_rate


def visits(rate, gaps, seed=0):
    return np.random.default_rng(seed).random(len(gaps)) < -np.expm1(-rate * gaps)


def sums(gaps, changed):
    return [np.array([each]) for each in (changed.sum(), gaps[changed].sum(), gaps[~changed].sum())]


def likely_rate(gaps, changed):
    """Return the maximum-likelihood rate of one page from each of its visits."""

    def unlikely(rate):
        return rate * gaps[~changed].sum() - np.log(-np.expm1(-rate * gaps[changed])).sum()

    found = minimize_scalar(unlikely, bounds=(1e-6, 20), method="bounded", options={"xatol": 1e-9})
    return found.x


def test_rate_counts_changes_between_visits():
    """Cho and Garcia-Molina (2003): changes seen divided by time watched is too low."""
    gaps = np.full(20_000, 1.0)
    changed = visits(2.0, gaps)
    assert changed.sum() / gaps.sum() < 1
    assert shrunk_rate(*sums(gaps, changed), np.array([0.1]))[0] == pytest.approx(2.0, rel=0.05)


def test_gap_sums_are_sufficient():
    gaps = np.random.default_rng(2).uniform(0.5, 1.5, 5_000)
    changed = visits(0.7, gaps)
    shrunk = shrunk_rate(*sums(gaps, changed), np.array([0.7]))[0]
    assert shrunk == pytest.approx(likely_rate(gaps, changed), rel=0.03)


@given(st.integers(0, 40), st.floats(0.01, 100), st.floats(0.0, 100), st.floats(1e-4, 100))
def test_shrunk_rate_is_a_stationary_point(changes, gap, quiet, prior):
    changed_time = changes * gap
    rate = shrunk_rate(*(np.array([float(x)]) for x in (changes, changed_time, quiet, prior)))[0]
    z = rate * gap
    seen = changes * z / np.expm1(z) if z < 700 else 0.0
    assert rate > 0
    assert seen + SHAPE == pytest.approx(rate * (quiet + SHAPE / prior), rel=1e-6)


def test_unvisited_page_has_prior_rate():
    nothing = np.zeros(2)
    expected = np.array([0.3, 7.0])
    assert shrunk_rate(nothing, nothing, nothing, expected) == pytest.approx(expected)


def test_few_visits_lean_on_group():
    """The estimate of an unvisited page is its group's; that of a much visited page is its own."""
    groups = np.array([0] * 50 + [1] * 50)
    changes = np.where(groups == 0, 9.0, 1.0)
    changed_time, quiet = changes.copy(), 10 - changes
    for column in (changes, changed_time, quiet):
        column[[0, 50]] = 0
    rates = pooled_rates(changes, changed_time, quiet, [groups], expected=0.5)
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert rates[50] == pytest.approx(rates[51], rel=0.1)
    assert rates[0] > 10 * rates[50]


def test_pooling_improves_estimates():
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 50)
    true = (10 ** random.uniform(-2, 1, 20))[groups] * random.gamma(2, 0.5, 1_000)
    changed = np.zeros(1_000)
    for _ in range(3):
        changed += random.random(1_000) < -np.expm1(-true)
    pooled = pooled_rates(changed, changed, 3 - changed, [groups], expected=1.0)
    alone = shrunk_rate(changed, changed, 3 - changed, np.ones(1_000))

    def error(rates):
        return np.abs(np.log(rates / true)).mean()

    assert error(pooled) < 0.7 * error(alone)
