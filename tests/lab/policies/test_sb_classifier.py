from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
import pytest

from tres_scrapy.agent.policy import PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.policies.sb_classifier import SbClassifierPolicy

MENU = "html body div.#top ul.menu li.item a.go"
TEXT = "html body main.wide article p.lead a"


class Site:
    """A crawl of pages by host; pages of hosts with a t in their names are relevant."""

    def __init__(self, links, seed=0):
        self.store = SampleStore(DomainLedger())
        self.policy = SbClassifierPolicy(self.store, PolicyInputs(seed))
        self.crawl = Crawl(self.store, self.policy)
        self.add_seed("seed")
        self.fetch(links)

    def add_seed(self, host):
        self.crawl.add_seeds(Outlinks([url_of(host)], [""], np.zeros((1, 3), dtype=np.float32)))

    def fetch(self, links=(), busy=(), fails=False):
        """Fetch the next page, which has links (host, path); return its host, None at the end."""
        decision = self.crawl.next([self.store.hosts.index(f"{host}.test") for host in busy])
        if decision is None:
            return None
        host = self.store.url(decision.row).split("/")[2].removesuffix(".test")
        if fails:
            self.crawl.book_failure(decision.row, Failure("http_404"))
            return host
        urls = [url_of(host) for host, _ in links]
        text = PageText(paths={url_of(host): path for host, path in links if path})
        none = np.zeros((len(urls), 3), dtype=np.float32)
        self.crawl.book_page(decision.row, "t" in host, Outlinks(urls, urls, none), text=text)
        return host

    def fetch_all(self):
        return list(iter(self.fetch, None))

    @property
    def scores(self):
        return self.policy._bandit.scores(np.arange(self.crawl.figures()["arms"])).tolist()


def url_of(host):
    return f"http://{host}.test/"


def both(count):
    """Return links to as many irrelevant pages in the menu as relevant ones in the text."""
    return [(f"m{i}", MENU) for i in range(count)] + [(f"t{i}", TEXT) for i in range(count)]


def test_links_of_a_rewarding_path_are_preferred():
    site = Site(both(100))
    order = [site.fetch() for _ in range(100)]
    assert {host[0] for host in order[:2]} == {"m", "t"}
    assert 75 < sum(host[0] == "t" for host in order) < 95
    assert len(set(order)) == 100


def test_arm_without_links_sleeps():
    site = Site([("m", MENU), ("t0", TEXT), ("t1", TEXT)])
    assert sorted(site.fetch_all()) == ["m", "t0", "t1"]
    assert site.crawl.pages == 4


def test_arm_with_busy_host_sleeps():
    site = Site([("m", MENU), ("t", TEXT)])
    assert site.fetch(busy=["m"]) == "t"
    assert site.fetch(busy=["m"]) is None
    assert site.fetch() == "m"


def test_seed_rewards_no_arm():
    site = Site(both(1))
    site.add_seed("t")
    assert [site.fetch(), site.fetch()] == ["t", "m0"]
    assert site.scores == [0, inf]


def test_failure_is_a_choice_without_reward():
    site = Site(both(2))
    assert site.fetch(fails=True)[0] == "m"
    assert site.fetch(fails=True)[0] == "t"
    width = sqrt(8 * log(2))
    assert site.scores == pytest.approx([width, width])
    assert [site.fetch(), site.fetch()][1][0] == "t"
    assert site.scores == pytest.approx([sqrt(8 * log(4) / 2), 1 / 2 + sqrt(8 * log(4) / 2)])


def test_links_of_later_pages_join_their_arms():
    site = Site([("t0", TEXT)])
    site.fetch([("t1", TEXT), ("m0", MENU), ("x", "")])
    assert site.crawl.figures()["arms"] == 3
    assert site.scores == [pytest.approx(1), inf, inf]


def test_links_without_paths_are_one_arm():
    site = Site([("a", ""), ("b", ""), ("c", MENU)])
    assert site.crawl.figures()["arms"] == 2
    assert sorted(site.fetch_all()) == ["a", "b", "c"]


def test_url_of_two_arms_is_fetched_once():
    site = Site([("a", MENU), ("b", TEXT)])
    site.fetch([("b", MENU), ("c", TEXT)])
    assert sorted(site.fetch_all()) == ["b", "c"]
    assert site.store.pending == 0


def test_link_of_an_arm_is_random():
    orders = [tuple(Site(both(9), seed).fetch_all()) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    found = [int(host[1:]) for host in orders[0] if host[0] == "t"]
    assert sorted(found) == list(range(9)) != found
