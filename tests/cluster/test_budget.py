from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.cluster.budget import Budget
from tres_scrapy.cluster.message import Status


@dataclass
class Shard:
    """A shard as the budget sees it: it fetches at once what it may, if it has links."""

    number: int
    value: float = 1.0
    limit: int = 0
    pages: int = 0
    leased: int = 0
    has_links: bool = True
    busy: bool = False

    def status(self):
        idle = not self.has_links and not self.leased
        counts = self.pages, self.leased, self.limit
        return Status(self.number, *counts, value=self.value, ready=True, idle=idle, busy=self.busy)

    def obey(self, limit, spare):
        self.limit = limit
        if spare is not None:
            self.limit = min(self.limit, self.pages + self.leased + spare)

    def lease(self):
        self.leased += self.has_links and self.limit > self.pages + self.leased

    def book(self):
        if self.leased:
            self.pages, self.leased = self.pages + 1, self.leased - 1


class Crawl:
    """Some shards and their budget; the limits are saved before a shard hears of them."""

    def __init__(self, total, shards):
        self.total = total
        self.budget = Budget(total, [0] * shards)
        self.shards = [Shard(number) for number in range(shards)]
        self.statuses = {}

    def report(self, shard, *, lost=False):
        status = self.statuses[shard.number] = shard.status()
        active = [each for each in self.statuses.values() if each.ready and not each.idle]
        limit, spare = self.budget.ask(status, active), self.budget.spare(status, active)
        if not lost:
            shard.obey(limit, spare)

    def restart(self):
        """Lose all but the limits, as a killed coordinator does."""
        self.budget, self.statuses = Budget(self.total, self.budget.limits), {}

    def check(self):
        assert sum(self.budget.limits) <= self.budget.total
        for shard in self.shards:
            assert shard.pages + shard.leased <= shard.limit <= self.budget.limits[shard.number]

    def run(self, rounds):
        """Let all shards fetch what they may in each round."""
        for _ in range(rounds):
            for shard in self.shards:
                self.run_shard(shard)
            self.check()

    def run_shard(self, shard):
        self.report(shard)
        while shard.has_links and shard.pages + shard.leased < shard.limit:
            shard.lease()
            shard.book()

    @property
    def pages(self):
        return sum(shard.pages for shard in self.shards)


KINDS = ["report", "lose", "lease", "lease", "book", "value", "links", "kill", "restart"]
EVENTS = st.tuples(st.sampled_from(KINDS), st.integers(0, 4), st.floats(-0.5, 2))


@given(st.integers(1, 300), st.integers(1, 5), st.lists(EVENTS, max_size=150), st.integers(0, 4))
def test_limits_never_exceed_budget_and_all_is_granted(total, count, events, survivor):
    """Whatever shards do, and whoever dies; in the end a single one that has links is enough."""
    crawl = Crawl(total, count)
    for event, number, value in events:
        shard = crawl.shards[number % count]
        if event in {"report", "lose"}:
            crawl.report(shard, lost=event == "lose")
        elif event == "kill":  # what it was told is lost, and what it leased is fetched again
            shard.leased, shard.limit = 0, shard.pages
        elif event == "restart":
            crawl.restart()
        elif event == "value":
            shard.value = value
        elif event == "links":
            shard.has_links = value > 0.3
        else:
            getattr(shard, event)()
        crawl.check()
    for shard in crawl.shards:
        while shard.leased:
            shard.book()
        shard.has_links = shard.number == survivor % count
    crawl.run(2 * total + 20)
    assert crawl.pages == total


def test_crawl_without_budget_is_always_granted_more():
    crawl = Crawl(None, 3)
    crawl.run(200)
    assert all(shard.pages > 100 for shard in crawl.shards)


@pytest.mark.parametrize("count", [2, 8])
def test_better_links_get_more_pages(count):
    crawl = Crawl(20_000, count)
    for shard in crawl.shards:
        shard.value = 0.9 - 0.3 * (shard.number % 2)  # two temperatures less
    crawl.run(300)
    pages = np.array([shard.pages for shard in crawl.shards])
    assert 4 < pages[::2].mean() / pages[1::2].mean() < 10, pages


@pytest.mark.long
@pytest.mark.parametrize("count", [4, 16])
def test_pages_under_way_grow_with_the_crawl(count):
    """Each of them keeps a host busy: many at once would leave only poor links to fetch."""
    crawl = Crawl(5_000, count)
    most = 0
    while crawl.pages < 4_500:
        for shard in crawl.shards:
            crawl.report(shard)
            while shard.pages + shard.leased < shard.limit:
                shard.lease()
        under_way = sum(shard.leased for shard in crawl.shards)
        assert 0 < under_way <= max(16, crawl.pages / 64)
        most = max(most, under_way)
        max(crawl.shards, key=lambda shard: shard.leased).book()
    assert most > 60


def test_busy_shard_holds_up_no_other():
    """It gets no page while others can fetch one, and is not behind them afterwards."""
    crawl = Crawl(5_000, 2)
    busy, other = crawl.shards
    busy.busy, other.value = True, 0.0
    for _ in range(300):
        crawl.run_shard(other)
        crawl.report(busy)
        assert busy.limit == 0
    assert other.pages > 500
    busy.busy = False
    for _ in range(20):
        crawl.run_shard(busy)
    assert busy.pages > 30, "it has lost no turns"


def test_busy_shards_alone_get_a_page_each():
    crawl = Crawl(50, 3)
    for shard in crawl.shards:
        shard.busy = True
    crawl.run(60)
    assert crawl.pages == 50


def test_blocks_grow_with_the_crawl():
    crawl = Crawl(100_000, 2)
    sizes = []
    while crawl.pages < 20_000:
        shard = crawl.shards[len(sizes) % 2]
        before = shard.limit
        crawl.run_shard(shard)
        sizes.append(shard.limit - before)
    assert max(sizes[:100]) <= 4
    assert max(sizes) == 16


def test_shard_without_links_holds_up_no_other():
    crawl = Crawl(5_000, 4)
    crawl.shards[0].value, crawl.shards[0].has_links = 1.5, False
    crawl.run(1_000)
    assert crawl.pages == 5_000
    assert crawl.shards[0].pages == crawl.shards[0].limit == 0


def test_silent_shard_gives_back_nothing():
    """It may be fetching: its pages are not granted to others."""
    crawl = Crawl(100, 2)
    crawl.report(crawl.shards[0])
    granted = crawl.shards[0].limit
    assert granted
    crawl.shards = crawl.shards[1:]
    crawl.statuses.clear()
    for _ in range(300):
        crawl.report(crawl.shards[0])
        crawl.shards[0].pages = crawl.shards[0].limit
    assert crawl.pages == 100 - granted


def test_hungry_shards_keep_what_they_are_granted():
    """A shard that gave back what it was just granted would never fetch the last page."""
    budget = Budget(2, [1, 1])
    waiting = Status(0, 0, 0, 1, ready=True)
    hungry = Status(1, 1, 0, 1, ready=True)
    assert budget.spare(waiting, [waiting, hungry]) == 1
    empty = Status(0, 0, 0, 1, ready=True, idle=True)
    assert budget.spare(empty, [hungry]) == 0
    assert budget.spare(hungry, [hungry]) is None


def test_shards_join_when_they_find_links():
    crawl = Crawl(3_000, 20)
    for shard in crawl.shards:
        shard.value, shard.has_links = 1.5 - shard.number % 7 / 5, shard.number == 0
    for shard in crawl.shards:
        shard.has_links = True
        crawl.run(1)
    crawl.run(1_000)
    assert crawl.pages == 3_000
    assert all(shard.pages for shard in crawl.shards if shard.value > 1.2)


def test_poor_shards_block_no_better_one():
    """The next page of a poor shard is far off: the better shard goes on until then."""
    crawl = Crawl(500, 4)
    for shard in crawl.shards[1:]:
        shard.value = -1.0
    crawl.run(300)
    assert crawl.pages == 500
    assert crawl.shards[0].pages > 490
