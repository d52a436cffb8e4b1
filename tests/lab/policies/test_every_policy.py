"""What holds for every policy, and how the simple policies differ."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import judged
from rivals import RIVALS
from rivals.graph import Graph
from rivals.inputs import GraphInputs, KeywordInputs, RivalInputs

from tres_scrapy.agent.policy import Experience
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import POLICIES, make_policy
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.queue import FrontierQueue
from tres_scrapy.frontier.store import SampleStore

HOSTS, PAGES_OF_HOST = 8, 8
URLS = [f"http://h{host}.test/{number}" for host in range(HOSTS) for number in range(PAGES_OF_HOST)]
LINKS = np.random.default_rng(6).integers(len(URLS), size=(200, 2))  # not those of the crawls
EVERY = (*POLICIES, *RIVALS)
pytestmark = pytest.mark.slow  # a crawl of each policy in each test


@dataclass(frozen=True)
class Inputs(KeywordInputs, GraphInputs, RivalInputs):
    """The inputs of all policies."""


def setup(seed=0):
    return Inputs(
        seed,
        learning=LearningOptions(exploration_steps=10),
        keywords=("cheese",),
        labels=lambda urls: [is_relevant(url) for url in urls],
        graph=Graph(URLS, LINKS, [is_relevant(url) for url in URLS]),
    )


def is_relevant(url):
    return url.rpartition("/")[2] in {"0", "1"}


def crawl_of(name, seed=0, cap=None):
    store = SampleStore(DomainLedger(cap))
    crawl = Crawl(store, make_policy(name, store, setup(seed)))
    crawl.add_seeds(Outlinks(["http://h0.test/0"], [""], np.zeros((1, 3), dtype=np.float32)))
    return crawl


def crawl_all(name, seed=0, cap=None, busy=lambda store: ()):
    """Crawl a web whose every page links to pages of three hosts; return the URLs in order."""
    return go_on(crawl_of(name, seed, cap), busy)


@cache
def whole_crawl(name):
    """The crawl of a policy, shared by many tests."""
    return crawl_all(name)


def go_on(crawl, busy=lambda store: ()):
    """Crawl until nothing is left; return the URLs in order."""
    store, random, order = crawl.store, np.random.default_rng(5), []
    while (decision := crawl.next(Availability(busy(store)))) is not None:
        url = store.url(decision.row)
        order.append(url)
        hosts, numbers = random.integers(HOSTS, size=9), random.integers(PAGES_OF_HOST, size=9)
        urls = [f"http://h{h}.test/{n}" for h, n in zip(hosts, numbers, strict=True)]
        actions = random.random((9, 3)).astype(np.float32)
        crawl.book(decision.row, judged(float(is_relevant(url))), Outlinks(urls, urls, actions))
    return order


@pytest.mark.parametrize("name", EVERY)
def test_every_url_is_fetched_once(name):
    order = whole_crawl(name)
    assert len(order) == len(set(order)) == HOSTS * PAGES_OF_HOST


@pytest.mark.parametrize("name", EVERY)
def test_cap_holds_for_every_policy(name):
    order = crawl_all(name, cap=Cap(3, 3))
    domains = [url.split("/")[2] for url in order]
    assert max(map(domains.count, domains)) == 3
    assert len(order) == 3 * HOSTS


@pytest.mark.parametrize("name", EVERY)
def test_raised_max_returns_samples(name):
    crawl = crawl_of(name, cap=Cap(2, 2))
    first = go_on(crawl)
    assert crawl.store.pending == 0
    known = {url for url in crawl.store.closure.urls if "search" not in url}
    assert set(first) < known
    rows = crawl.change_cap(None)
    assert {crawl.store.url(row) for row in rows.tolist()} == known - set(first)
    assert crawl.store.pending == len(rows)
    then = set(go_on(crawl))
    assert known - set(first) <= then
    assert not then & set(first), "no URL is fetched twice"
    assert crawl.store.pending == 0


@pytest.mark.parametrize("name", EVERY)
def test_lowered_max_holds_at_once(name):
    crawl = crawl_of(name)
    booked = crawl.next().row
    urls = [f"http://h1.test/{n}" for n in range(PAGES_OF_HOST)]
    crawl.book(
        booked, judged(1.0), Outlinks(urls, urls, np.zeros((len(urls), 3), dtype=np.float32))
    )
    assert not len(crawl.change_cap(Cap(1, 1)))
    order = go_on(crawl)
    assert sum(url.startswith("http://h1.test/") for url in order) == 1


@pytest.mark.parametrize("name", EVERY)
def test_links_of_a_sitemap_are_chosen(name):
    crawl = crawl_of(name)
    seed = crawl.next().row
    crawl.book(seed, judged(1.0), NO_LINKS)
    urls = [f"http://h1.test/{n}" for n in range(PAGES_OF_HOST)]
    crawl.add_unlinked(seed, Outlinks(urls, urls, np.zeros((len(urls), 3), dtype=np.float32)))
    assert set(urls) <= set(go_on(crawl))


@pytest.mark.parametrize("name", EVERY)
def test_same_seed_makes_the_same_choices(name):
    assert crawl_all(name) == whole_crawl(name)


@pytest.mark.parametrize("name", ["tree_random", "random"])
def test_other_seed_other_order(name):
    assert crawl_all(name, seed=1) != whole_crawl(name)


@pytest.mark.parametrize("name", EVERY)
def test_busy_hosts_come_back(name):
    store = SampleStore(DomainLedger())
    policy = make_policy(name, store, setup())
    urls = ["http://a.test/0", "http://b.test/0"]
    rows = store.add(-1, Outlinks(urls, urls, np.zeros((2, 3), dtype=np.float32)))
    policy.expand(Experience(-1, np.zeros(len(FEATURES), dtype=np.float32), 0.0), rows)
    chosen = []
    for busy in ([0, 1], [0], [0], []):
        decision = policy.select(Availability(busy))
        chosen.append(decision and decision.row)
        if decision is not None:
            store.lease(decision.row)
    assert chosen == [None, 1, None, 0]


def test_breadth_first_keeps_discovery_order():
    store = SampleStore(DomainLedger())
    policy = make_policy("breadth_first", store, setup())
    rows = store.add(-1, Outlinks([f"http://a.test/{i}" for i in range(5)], [""] * 5, np.eye(5, 3)))
    policy.expand(Experience(-1, np.zeros(len(FEATURES), dtype=np.float32), 0.0), rows)
    assert [policy.select().row for _ in rows] == rows.tolist()


def test_best_first_takes_probable_anchor():
    store = SampleStore(DomainLedger())
    policy = make_policy("best_first", store, setup())
    actions = np.zeros((4, 3), dtype=np.float32)
    actions[:, 2] = [0.2, 0.9, 0.1, 0.5]
    rows = store.add(-1, Outlinks([f"http://a.test/{i}" for i in range(4)], [""] * 4, actions))
    policy.expand(Experience(-1, np.zeros(len(FEATURES), dtype=np.float32), 0.0), rows)
    assert [policy.select().row for _ in rows] == [1, 3, 0, 2]


def test_oracle_prefers_relevant_pages():
    order = [is_relevant(url) for url in whole_crawl("oracle")]
    others = [is_relevant(url) for url in whole_crawl("random")]
    assert order.index(False) >= 8
    assert np.mean(order[:20]) > 2 * np.mean(others[:20])


def test_queue_frees_one_host_sample():
    store = SampleStore(DomainLedger())
    urls = [f"http://{host}.test/{i}" for host in "ab" for i in range(3)]
    rows = store.add(-1, Outlinks(urls, [""] * 6, np.eye(6, 3)))
    queue = FrontierQueue(store)
    queue.push(rows, [9, 8, 7, 3, 2, 1])
    assert queue.pop(Availability([0])) == (3, 3.0)
    assert [queue.pop()[0] for _ in range(5)] == [0, 1, 2, 4, 5]


@given(
    pushes=st.lists(st.lists(st.integers(0, 5), max_size=9), max_size=6),
    pops=st.integers(0, 3),
)
def test_queue_orders_value_then_arrival(pushes, pops):
    store = SampleStore(DomainLedger())
    queue, slow = FrontierQueue(store), []
    for part, values in enumerate(pushes):
        urls = [f"http://{part}-{i}.test/" for i in range(len(values))]
        rows = store.add(-1, Outlinks(urls, [""] * len(urls), np.zeros((len(urls), 3))))
        queue.push(rows, values)
        slow += zip(rows.tolist(), values, strict=True)
        for _ in range(pops):
            best = max(slow, key=lambda sample: sample[1], default=None)
            assert queue.pop() == best
            if best is not None:
                slow.remove(best)


def test_queue_drains_best_first():
    store = SampleStore(DomainLedger())
    rows = store.add(
        -1, Outlinks([f"http://{i % 2}.test/{i}" for i in range(6)], [""] * 6, np.eye(6, 3))
    )
    queue = FrontierQueue(store)
    queue.push(rows, [3, 1, 2, 6, 5, 4])
    assert queue.pop(Availability([store["host"][3]])) == (4, 5.0), (
        "row 3 is on a busy host and set aside"
    )
    assert queue.empty().tolist() == [3, 5, 0, 2, 1]
    assert queue.pop() is None


@pytest.mark.parametrize("policy", EVERY)
def test_resumable_policies_are_known(policy):
    resumable = make_policy(policy, SampleStore(DomainLedger()), setup()).is_resumable
    assert resumable == (policy in {"tres", "tree_random", "random"})
