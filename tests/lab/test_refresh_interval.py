import numpy as np
import pytest
from refreshing.simulation import SINGLE, SpacedPolicy, simulate

from tres_scrapy.refresh.page_table import PageTable
from tres_scrapy.refresh.policy import FLOOR, Bounds, StaticPolicy


def pages_of(count, groups=None):
    groups = np.zeros(count, int) if groups is None else np.array(groups)
    return PageTable(np.ones(count), (groups,))


def test_due_page_is_fetched_early():
    pages = pages_of(2)
    pages.weights[1] = 2.0
    policy = StaticPolicy(pages, 1.0, Bounds(), 0)
    assert policy.select(1.0, np.ones(2, bool)) == 1
    assert policy.select(1.0, np.array([True, False])) == 0


def test_jitter_spreads_equal_pages():
    policy = StaticPolicy(pages_of(100), 1.0, Bounds(jitter=0.2), 0)
    factors = policy._factors.copy()
    assert 0.8 <= factors.min() < 0.85
    assert 1.15 < factors.max() <= 1.2
    policy.begin(3)
    assert (policy._factors != factors).nonzero()[0].tolist() == [3]


def test_static_follows_change_and_budget():
    pages = pages_of(200, [0] * 100 + [1] * 100)
    pages.changes[:100], pages.changed_time[:100], pages.quiet_time[:100] = 5, 500, 500
    pages.changes[100:], pages.changed_time[100:], pages.quiet_time[100:] = 1, 100, 900
    policy = StaticPolicy(pages, 2.0, Bounds(), 0)
    assert (policy.intervals[:100] < policy.intervals[100:]).all()
    assert (1 / policy.intervals).sum() == pytest.approx(2.0, rel=1e-6)


def test_static_abandons_hopeless_pages():
    """P 5: page 4 is never crawled; the floor keeps every page in sight."""
    pages = pages_of(10)
    pages.changes[:], pages.changed_time[:] = 1, 10_000
    pages.quiet_time[:] = 10_000
    pages.changes[0], pages.changed_time[0], pages.quiet_time[0] = 1_000, 10, 0
    policy = StaticPolicy(pages, 0.001, Bounds(), 0)
    floor = 10 / (FLOOR * 0.001)
    assert policy.intervals[0] == pytest.approx(floor)
    assert (policy.intervals[1:] < floor).all()


def test_static_keeps_interval_bounds():
    random = np.random.default_rng(0)
    pages = pages_of(50, np.arange(50))
    pages.changes[:] = random.integers(0, 50, 50)
    pages.changed_time[:], pages.quiet_time[:] = pages.changes, 50 - pages.changes
    policy = StaticPolicy(pages, 1.0, Bounds(30, 100), 0)
    assert policy.intervals.min() >= 30 - 1e-6
    assert policy.intervals.max() <= 100 + 1e-6


def test_static_solves_anew_as_visits_come():
    pages = pages_of(2, [0, 1])
    policy = StaticPolicy(pages, 1.0, Bounds(), 0)
    before = policy.intervals.copy()
    for visit in range(50):
        pages.see(visit % 2, visit % 2 == 0, visit + 1.0)
        policy.end()
    assert (policy.intervals != before).all()


@pytest.mark.long
@pytest.mark.slow
def test_static_beats_random_draws():
    """SO with known rates and random draws keeps 5.73 pages fresh; even spacing keeps more."""
    run = simulate(SINGLE, lambda pages, _: SpacedPolicy(pages), 3_000, 0)
    assert run.fresh[-2000:].mean() > 5.7
