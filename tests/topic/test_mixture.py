import numpy as np
import pytest

from tres_scrapy.topic.classifier import sigmoid
from tres_scrapy.topic.fit import BOUNDS, FIRST, fit_mixture, lift


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_two_groups_are_told_apart(share):
    rng = np.random.default_rng(1)
    relevant = rng.random(1000) < share
    scores = rng.normal(np.where(relevant, 0.5, 0.15), 0.05).clip(0) ** 2
    found = fit_mixture(scores)
    assert found.share == pytest.approx(share, abs=0.03)
    assert ((found.probabilities(scores) >= 0.5) == relevant).mean() > 0.98


def test_share_stays_within_bounds():
    assert fit_mixture(np.full(5000, 0.01)).share == BOUNDS[0]
    assert fit_mixture(np.full(5000, 0.25)).share <= BOUNDS[1]


def test_probability_is_half_at_the_edge():
    slope, score = FIRST.edge()
    assert slope > 0
    assert FIRST.probabilities(np.array([score])) == pytest.approx(0.5)
    assert fit_mixture(np.zeros(0)) == FIRST


def test_lift_makes_so_many_relevant():
    log_odds = np.linspace(-20, -4, 50)
    assert sigmoid(log_odds + lift(log_odds, 5.0)).sum() == pytest.approx(5)
    assert lift(log_odds + 20, 5.0) == 0
    assert lift(np.zeros(0), 0.0) == 0


def test_pages_near_the_topic_do_not_become_the_topic():
    """A crawl that has lost its topic sees many pages that share some words with it."""
    random = np.random.default_rng(1)
    found, near, other = (
        random.normal(*group) for group in ((0.42, 0.05, 30), (0.32, 0.06, 230), (0.19, 0.04, 25))
    )
    scores = np.concatenate([found, near, other]) ** 2
    mixture = fit_mixture(scores)
    taken = mixture.probabilities(scores) >= 0.5
    assert taken[:30].mean() > 0.6
    assert taken[30:].mean() < 0.4


def test_a_crawl_that_finds_little_else_is_believed():
    random = np.random.default_rng(1)
    scores = np.concatenate([random.normal(0.40, 0.05, 200), random.normal(0.2, 0.05, 80)]) ** 2
    assert fit_mixture(scores).share == pytest.approx(200 / 280, abs=0.05)
