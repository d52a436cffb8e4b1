from __future__ import annotations

import numpy as np
import pytest

from tres_scrapy.links.code import silent
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic.pack import Judged
from tres_scrapy.topic.seed_rating import SeedRating, ranked


def judged(p=0.9, anchors=(), hosts=None, language="en"):
    """Return a page whose links have these P(anchor), each on a host of its own or on `hosts`."""
    hosts = hosts or [f"{number}.test" for number in range(len(anchors))]
    links = tuple(Link(f"http://{host}/{i}", "") for i, host in enumerate(hosts))
    actions = np.zeros((len(links), 3), dtype=np.float32)
    actions[:, 2] = anchors
    page = Page("http://seed.test/", "", "", links, language)
    return Judged(page, p, actions, cues=silent(len(links)))


def rated(page, relevant=0, failed=0, most=5):
    """Return a seed of whose sampled pages `relevant` are relevant and `failed` cannot be had."""
    rating = SeedRating("http://seed.test/")
    sample = rating.read(page, 0.5, most)
    for number, each in enumerate(sample[failed:]):
        each.probability, each.relevant = 0.5, number < relevant
    return rating


def test_likely_links_are_counted_by_site():
    rating = rated(
        judged(anchors=[0.9, 0.6, 0.2, 0.7], hosts=["a.test", "www.a.test", "b.test", "c.test"])
    )
    assert (rating.links, rating.sites) == (4, 3)
    assert rating.likely == {"a.test": 2, "c.test": 1}
    assert rating.relevant


def test_sample_has_the_best_links_of_several_sites():
    page = judged(anchors=[0.9, 0.95, 0.8, 0.1, 0.3], hosts=["a.test"] * 3 + ["b.test", "c.test"])
    assert [each.url[-1] for each in rated(page, most=4).sample] == ["1", "0", "4", "3"]
    assert [each.url[-1] for each in rated(page, most=9).sample] == ["1", "0", "4", "3", "2"]


@pytest.mark.parametrize(
    ("anchors", "hosts", "relevant", "failed", "worth"),
    [
        ([0.9] * 30, None, 5, 0, 30),
        ([0.9] * 30, ["a.test"] * 30, 5, 0, 10),  # of one site ten count
        ([0.9] * 30, None, 3, 2, 30),
        ([0.9] * 30, None, 2, 1, 15),
        ([0.1] * 30, None, 4, 0, 4),  # texts such as "more" say nothing
        ([0.9] * 30, None, 0, 5, 0),
        ([], None, 0, 0, 0),
    ],
)
def test_worth_estimates_relevant_pages(anchors, hosts, relevant, failed, worth):
    assert rated(judged(anchors=anchors, hosts=hosts), relevant, failed).worth == worth


@pytest.mark.parametrize(
    ("rating", "is_good", "why"),
    [
        (rated(judged(0.1, [0.9] * 9), 4), True, "9 likely links to 9 sites; 4 of 5 sampled are"),
        (rated(judged(0.9, [0.9] * 9), 2), False, "2 of 5 sampled are on topic"),
        (rated(judged(0.9, [0.9] * 2), 2), False, "2 likely links to 2 sites; 2 of 2"),
        (rated(judged(0.9, [0.9]), 0, failed=1), False, "1 link, but none of the sample could be"),
        (rated(judged(0.9)), False, "no links"),
        (rated(judged()._replace(needs_scripts=True)), False, "scripts build the page"),
        (SeedRating("http://a.test/", error="HTTP 404"), False, "HTTP 404"),
    ],
)
def test_seed_is_taken_for_its_links(rating, is_good, why):
    assert rating.is_good == is_good
    assert why in rating.why


def test_best_seed_is_first():
    dead = SeedRating("dead", error="HTTP 404")
    hub, small, poor = (
        rated(judged(anchors=[0.9] * n), good) for n, good in ((20, 5), (5, 5), (20, 0))
    )
    assert ranked([dead, poor, small, hub]) == [hub, small, poor, dead]
