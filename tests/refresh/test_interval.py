import numpy as np
import pytest

from tres_scrapy.lab.refresh_policies import NUTCH, STORM, AdaptivePolicy, RoundRobinPolicy
from tres_scrapy.lab.refresh_simulation import SINGLE, Experiment, simulate
from tres_scrapy.refresh.page_table import PageTable
from tres_scrapy.refresh.policy import Bounds, StaticPolicy


def pages_of(count, groups=None):
    return PageTable(np.ones(count), np.zeros(count, int) if groups is None else np.array(groups))


@pytest.mark.parametrize(
    ("rule", "after_change", "after_none"), [(STORM, 6.0, 15.0), (NUTCH, 8.0, 12.0)]
)
def test_interval_follows_the_rule(rule, after_change, after_none):
    """StormCrawler: half way to the shortest, or x 1.5; Nutch: x 0.8 or x 1.2."""
    policy = AdaptivePolicy(pages_of(3), np.full(3, 10.0), Bounds(2, 100), 0, rule)
    policy.end(0, True, 0.0)
    policy.end(1, False, 0.0)
    policy.end(2, None, 0.0)
    assert policy.intervals.tolist() == [after_change, after_none, 10]


def test_interval_stays_within_its_bounds():
    policy = AdaptivePolicy(pages_of(2), np.full(2, 10.0), Bounds(9, 11), 0, NUTCH)
    policy.end(0, True, 0.0)
    policy.end(1, False, 0.0)
    assert policy.intervals.tolist() == [9, 11]


def test_due_page_is_fetched_early():
    pages = pages_of(2)
    policy = AdaptivePolicy(pages, np.array([20.0, 10.0]), Bounds(), 0)
    assert policy.select(1.0, np.ones(2, bool)) == 1
    assert policy.select(1.0, np.array([True, False])) == 0


def test_jitter_spreads_equal_pages():
    policy = AdaptivePolicy(pages_of(100), np.full(100, 10.0), Bounds(jitter=0.2), 0)
    factors = policy._factors.copy()
    assert 0.8 <= factors.min() < 0.85
    assert 1.15 < factors.max() <= 1.2
    policy.begin(3, 0.0)
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
    floor = 10 / (StaticPolicy.floor * 0.001)
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
        policy.end(visit % 2, visit % 2 == 0, visit + 1.0)
    assert (policy.intervals != before).all()


@pytest.mark.slow
def test_static_beats_random_draws():
    """SO with known rates and random draws keeps 5.73 pages fresh; even spacing keeps more."""
    run = simulate(SINGLE, lambda pages, _: StaticPolicy(pages, 1.0, Bounds(), 0), 3_000, 0)
    assert run.fresh[-2000:].mean() > 5.7


@pytest.mark.slow
def test_default_beats_its_rivals():
    """Groups of five similar pages, rates from 0.0001 to 0.3, ten visits each."""
    random = np.random.default_rng(0)
    groups = random.permutation(np.repeat(np.arange(40), 5))
    rates = 10 ** random.uniform(-4, -0.5, 40)[groups]
    experiment = Experiment("heavy", (1,) * 200, tuple(rates.tolist()), (1.0,) * 200)

    def fresh(make):
        return simulate(experiment, make, 2_000, 0).fresh[200:].mean()

    def static(pages, random):
        pages.levels = (groups,)
        return StaticPolicy(pages, 1.0, Bounds(jitter=0.1), 0)

    def adaptive(pages, random):
        return AdaptivePolicy(pages, np.full(200, 200.0), Bounds(least=1, jitter=0.1), 0)

    rivals = fresh(adaptive), fresh(lambda pages, random: RoundRobinPolicy(pages))
    assert fresh(static) > max(rivals)
