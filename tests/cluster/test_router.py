from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import judged

from tres_scrapy.agent.policy import Decision, Policy
from tres_scrapy.cluster.router import LinkBatch, Router, owner_of
from tres_scrapy.cluster.shard_crawl import MAX_HOPS, ShardCrawl
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import PAGE, Crawl
from tres_scrapy.crawl.failure import REDIRECT_AWAY, REDIRECT_LIMIT
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import LINK, SEED_PATH
from tres_scrapy.frontier.ledger import ANY_HOST, DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore, State
from tres_scrapy.links.code import RaggedArray


class Obedient(Policy):
    """A policy that chooses the row that it is told to."""

    row = None

    def __init__(self):
        self.readmitted = []

    def observe(self, experience):
        pass

    def expand(self, experience, outlinks, page):
        pass

    def readmit(self, rows):
        self.readmitted += rows.tolist()

    def learn(self):
        return None

    def select(self, available=ANY_HOST):
        row, self.row = self.row, None
        return None if row is None else Decision(row, 0, None)


def crawl_of(shard=0, shards=1, cap=None):
    store = SampleStore(DomainLedger(cap, inlinks=True))
    if shards == 1:
        return Crawl(store, Obedient())
    return ShardCrawl(store, Obedient(), router=Router(shard, shards))


def links_of(*urls, feature=0.0):
    cues = RaggedArray.of([[len(url)] * (len(url) % 3) for url in urls])
    actions = np.full((len(urls), 3), feature, dtype=np.float32)
    return Outlinks(list(urls), [f"to {url}" for url in urls], actions, cues)


def lease(crawl, url):
    """Lease the first waiting sample of a URL."""
    store = crawl.store
    crawl.policy.row = next(row for row in store.pending_rows().tolist() if store.url(row) == url)
    return crawl.next().row


def deliver(crawls):
    """Deliver all batches, and those that result."""
    for crawl in crawls:
        for shard, data in crawl.router.take():
            crawls[shard].receive([LinkBatch.unpacked(data)])


def samples_of(crawl):
    """Return what is known of each sample that waits, with the page that it was found on."""
    store = crawl.store
    found = Counter()
    for row in store.pending_rows().tolist():
        rows, parent = np.array([row]), store["parent"][row]
        page = None if parent == NO_PARENT else store.url(parent)
        x = tuple(store.features(rows)[0, :LINK].round(5).tolist())
        cues = tuple(store.cues.take(rows).codes.tolist())
        found[page, store.url(row), store.anchors[row], x, cues, store.path_to(parent)] += 1
    return found


def url_of(number):
    return f"http://www.d{number % 9}.test/{number}"


def fetch(crawl, url, number):
    row = lease(crawl, url)
    urls = [url_of(number * 5 + i * i) for i in range(1, 6)]
    crawl.book(row, judged(number % 3 == 0), links_of(*urls, feature=number % 4 / 4))


@given(st.lists(st.integers(0, 1000), max_size=15), st.integers(2, 5))
def test_shards_have_the_samples_of_one_crawl(choices, count):
    """Whatever is fetched next: features 1 to 8, cues, and the page of each link are the same."""
    one, shards = crawl_of(), [crawl_of(number, count) for number in range(count)]
    for crawl in (one, *shards):
        own = [url for url in map(url_of, range(3)) if crawl.owns(url)]
        crawl.add_seeds(links_of(*own))
        crawl._first.empty()  # this test chooses
    for choice in choices:
        urls = sorted({one.store.url(row) for row in one.store.pending_rows().tolist()})
        urls = [url for url in urls if not one.store.closure.is_closed(url)]
        if not urls:
            break
        url = urls[choice % len(urls)]
        fetch(one, url, int(url.rpartition("/")[2]))
        owner = next(crawl for crawl in shards if crawl.owns(url))
        fetch(owner, url, int(url.rpartition("/")[2]))
        deliver(shards)
        together = sum((samples_of(crawl) for crawl in shards), Counter())
        assert together == samples_of(one)


def test_links_are_divided_in_their_order():
    router = Router(1, 3)
    urls = [f"http://d{number}.test/{'a' * number}" for number in range(20)]
    kept, away = router.divide("http://page.test/", SEED_PATH, links_of(*urls))
    assert {*kept.urls, *away.urls} == {*urls}
    batches = {shard: LinkBatch.unpacked(data) for shard, data in router.take()}
    assert kept.urls == [url for url in urls if router.owner(url) == 1]
    assert batches.keys() == {0, 2}
    for shard, batch in batches.items():
        own = [number for number, url in enumerate(urls) if router.owner(url) == shard]
        assert batch.links.urls == [urls[number] for number in own]
        assert batch.links.cues.counts.tolist() == [len(urls[number]) % 3 for number in own]
        assert (batch.url, batch.path) == ("http://page.test/", SEED_PATH)
        assert not batch.hops
    assert not router.take()


@pytest.mark.parametrize(
    "urls",
    [
        ["http://a.test/", "https://www.a.test:8000/x", "http://b.c.a.test/"],
        ["http://[::1]/", "http://[::1]:80/x"],
    ],
)
def test_one_domain_has_one_owner(urls):
    router = Router(0, 64)
    assert len({router.owner(url) for url in urls}) == 1


def test_owners_never_change():
    """A crawl is resumed by any version and on any machine."""
    assert [owner_of(f"d{number}.test", 7) for number in range(8)] == [0, 2, 6, 1, 0, 3, 1, 4]


def away_from(router):
    return next(url for url in map(url_of, range(1, 9)) if not router.owns(url))


def own_of(router):
    return next(url for url in map(url_of, range(1, 9)) if router.owns(url))


def test_redirect_away_is_fetched_by_its_owner_first():
    shards = [crawl_of(number, 2) for number in range(2)]
    start, target = own_of(shards[0].router), away_from(shards[0].router)
    other = own_of(shards[1].router)
    seed = int(shards[0].add_seeds(links_of(start))[0])
    shards[0].next()
    outlinks = shards[0].book(seed, judged(True), links_of(start + "/next", feature=0.5)).outlinks
    shards[1].add_seeds(links_of(other + "/seed"))
    path = shards[0].store.path_to(seed)
    row = lease(shards[0], start + "/next")
    assert outlinks.tolist() == [row]
    booking = shards[0].book(row, shards[0].redirect_away(row, target))
    assert (booking.kind, booking.experience.reward) == (REDIRECT_AWAY.kind, 0)
    deliver(shards)
    store = shards[1].store
    leased = [shards[1].next().row for _ in range(2)]
    assert [store.url(row) for row in leased] == [other + "/seed", target]
    assert store.path_to(store["parent"][leased[1]]) == path
    assert store.anchors[leased[1]] == f"to {start}/next"
    assert store.features(np.array(leased))[1, 3:6].tolist() == [0.5] * 3
    assert shards[1].book(leased[1], judged(True), links_of()).kind == PAGE


def test_redirected_seed_stays_a_seed():
    shards = [crawl_of(number, 2) for number in range(2)]
    row = int(shards[0].add_seeds(links_of(own_of(shards[0].router)))[0])
    shards[0].next()
    shards[0].book(row, shards[0].redirect_away(row, away_from(shards[0].router)))
    deliver(shards)
    row = shards[1].next().row
    assert shards[1].store.is_seed(row)
    assert not shards[1].store.guests


def test_redirect_to_fetched_page_ends():
    """Two shards that redirect to each other stop."""
    shards = [crawl_of(number, 2) for number in range(2)]
    here, there = own_of(shards[0].router), away_from(shards[0].router)
    shards[0].add_seeds(links_of(here))
    row = shards[0].next().row
    shards[0].book(row, shards[0].redirect_away(row, there))
    deliver(shards)
    row = shards[1].next().row
    shards[1].book(row, shards[1].redirect_away(row, here))
    deliver(shards)
    assert [crawl.next() for crawl in shards] == [None, None]


@pytest.mark.parametrize("is_seed", [True, False])
def test_endless_redirects_end(is_seed):
    """A chain of redirects from shard to shard ends, though each of its URLs is new."""
    shards = [crawl_of(number, 2) for number in range(2)]
    homes = own_of(shards[0].router), away_from(shards[0].router)
    shards[0].add_seeds(links_of(homes[0]))
    row, kinds = shards[0].next().row, []
    if not is_seed:
        shards[0].book(row, judged(True), links_of(homes[0] + "/link"))
        row = lease(shards[0], homes[0] + "/link")
    while row is not None and len(kinds) < 2 * MAX_HOPS:
        here = len(kinds) % 2
        failure = shards[here].redirect_away(row, f"{homes[1 - here]}/{len(kinds)}")
        kinds.append(shards[here].book(row, failure).kind)
        deliver(shards)
        row = None if (decision := shards[1 - here].next()) is None else decision.row
    assert kinds == [REDIRECT_AWAY.kind] * MAX_HOPS + [REDIRECT_LIMIT.kind]
    assert row is None


def test_page_of_another_shard_is_never_fetched():
    shards = [crawl_of(number, 2, Cap(1, 1)) for number in range(2)]
    start = own_of(shards[0].router)
    row = int(shards[0].add_seeds(links_of(start))[0])
    shards[0].next()
    shards[0].book(row, judged(True), links_of(away_from(shards[0].router)))
    deliver(shards)
    store = shards[1].store
    (guest,) = store.guests
    assert store["state"][guest] == State.DONE
    assert store.url(guest) == start
    assert guest not in shards[1].change_cap(None).tolist()
    assert not store.seeds().tolist()
    assert shards[1].policy.readmitted == [guest + 1] == store.pending_rows().tolist()
    assert store.trail(guest + 1) == [start, store.url(guest + 1)]
    assert store.pending == 1
