"""Shards that are killed at any time get each link of each other exactly once."""

import sqlite3

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judged import judged

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.actor_policy import ActorPolicy
from tres_scrapy.cluster.router import LinkBatch, Router
from tres_scrapy.cluster.shard_crawl import ShardCrawl
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import LINK
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import Eligibility, SampleStore
from tres_scrapy.links.code import RaggedArray
from tres_scrapy.run.recovery import recover
from tres_scrapy.url.message import TresError

SETUP = PolicyInputs(learning=LearningOptions(replay_capacity=12, batch_size=4))


def links_of(*numbers):
    urls = [f"http://d{number % 7}.test/{number}" for number in numbers]
    actions = np.full((len(urls), 3), 0.5, dtype=np.float32)
    cues = RaggedArray.of([[number] for number in numbers])
    return Outlinks(urls, ["anchor"] * len(urls), actions, cues)


def crawl_of(number):
    store = SampleStore(DomainLedger(inlinks=True))
    return ShardCrawl(store, ActorPolicy(store, SETUP), router=Router(number, 2))


class Shard:
    """One of two shards; a new one adds the first of its own URLs as a seed."""

    def __init__(self, directory, number):
        self.directory, self.number = directory, number
        self.journal, self.crawl = ShardJournal.open(directory, {}), crawl_of(number)
        links = links_of(*range(7))
        own = [place for place, url in enumerate(links.urls) if self.crawl.router.owns(url)]
        self.crawl.add_seeds(links.take(own[:1]))
        self.journal.save(self.crawl)

    @property
    def outbox(self):
        return self.journal.outbox

    def kill(self):
        self.journal.database.close()
        self.journal, self.crawl = ShardJournal.open(self.directory, {}), crawl_of(self.number)
        recover(self.journal, self.crawl)

    def book(self):
        decision = self.crawl.next()
        if decision is None:
            return
        self.journal.lease(self.crawl, decision)
        number = int(self.crawl.store.url(decision.row).rpartition("/")[2])
        links = links_of(*(number * 3 + i for i in range(1, 5)))
        if number % 6 == 5:
            target = links.urls[0]
            if not self.crawl.router.owns(target):
                failure = self.crawl.redirect_away(decision.row, target)
                self.journal.book(self.crawl, self.crawl.book(decision.row, failure))
                return
        booking = self.crawl.book(decision.row, judged(number % 3 == 0), links)
        self.journal.book(self.crawl, booking)

    def send(self, other, most=2):
        """Send the next batches to another shard."""
        after = other.outbox.received[self.number]
        for number, data in self.outbox.next(other.number, after, most):
            other.crawl.receive([LinkBatch.unpacked(data)])
            other.journal.receive(other.crawl, self.number, number)

    def note_arrival(self, other):
        self.outbox.arrived(other.number, other.outbox.received[self.number])

    def state(self):
        store, tree, links = self.crawl.store, self.crawl.policy.tree, self.crawl.policy._links
        links._links.grow(len(store))
        rows = np.arange(len(store))
        pending = store.pending_rows()
        seeds = set(store.seeds().tolist())
        in_tree = {row for leaf in range(len(tree)) for row in tree.pool.rows(leaf).tolist()}
        alive = pending[store.eligibility(pending) != Eligibility.DEAD].tolist()
        outbox = self.journal.database.execute("SELECT * FROM outbox ORDER BY shard, number")
        return {
            "trails": [store.trail(row) for row in rows.tolist()],
            "features": store.features(rows)[:, :LINK].tolist(),
            "guests": dict(store.guests),
            "alive": alive,
            "waiting in the tree or first": sorted((in_tree | seeds) & set(alive)),
            "cues": store.cues.take(rows).codes.tolist(),
            "counts": (
                +self.outbox.sent,
                +self.outbox.received,
                self.outbox.waiting,
                self.outbox.size,
            ),
            "outbox": outbox.fetchall(),
            "siblings": links._links["fetched"].tolist(),
            "transitions": self.crawl.policy.noted,
        }


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(st.tuples(st.sampled_from("BBBSSAK"), st.integers(0, 1)), max_size=40))
@example([("B", 0), ("S", 0), ("K", 1)])  # it has received links and fetched nothing
@pytest.mark.long
def test_killed_shards_have_each_link_once(tmp_path_factory, events):
    """B books, S sends, A hears of an arrival, K kills."""
    directory = tmp_path_factory.mktemp("job")
    shards = [Shard(directory / str(number), number) for number in range(2)]
    for event, number in events:
        shard, other = shards[number], shards[1 - number]
        if event == "B":
            shard.book()
        elif event == "S":
            shard.send(other)
        elif event == "A":
            shard.note_arrival(other)
        else:
            before = shard.state()
            shard.kill()
            assert shard.state() == before
    for shard, other in (shards, shards[::-1]):
        shard.send(other, most=1000)
        shard.note_arrival(other)
        shard.journal.save(shard.crawl)
        assert shard.outbox.waiting == shard.outbox.size == 0
        assert other.outbox.received[shard.number] == shard.outbox.sent[other.number]
        told = len(other.crawl.store.guests) + len(other.crawl.store.seeds())
        assert told <= shard.outbox.sent[other.number] + 1
    for shard in shards:
        shard.journal.close()


def test_batch_stays_until_arrival_is_saved(tmp_path):
    shard, other = (Shard(tmp_path / str(number), number) for number in range(2))
    shard.book()
    assert shard.outbox.sent == {1: 1}
    shard.send(other)
    shard.send(other)  # nothing new
    assert other.outbox.received == {0: 1}
    shard.note_arrival(other)
    assert len(shard.outbox.next(1, 0, 9)) == 1
    shard.journal.save(shard.crawl)
    assert shard.outbox.next(1, 0, 9) == []
    shard.kill()
    assert (shard.outbox.sent, shard.outbox.waiting) == ({1: 1}, 0)


def test_batches_are_numbered_and_sent_in_order(tmp_path):
    shard = Shard(tmp_path, 0)
    for _ in range(4):
        shard.book()
    count = shard.outbox.sent[1]
    assert count > 2
    assert [number for number, _ in shard.outbox.next(1, 0, 99)] == list(range(1, count + 1))
    assert [number for number, _ in shard.outbox.next(1, 1, 1)] == [2]


def test_batches_of_failed_transaction_are_sent_later(tmp_path):
    """A full disk, for instance: no batch is lost and no number is left out."""
    shard = Shard(tmp_path, 0)
    shard.book()
    before = dict(shard.outbox.sent), shard.outbox.waiting, shard.outbox.size
    decision = shard.crawl.next()
    shard.journal.lease(shard.crawl, decision)
    booking = shard.crawl.book(decision.row, judged(True), links_of(*range(100, 107)))
    shard.note_arrival(Shard(tmp_path / "other", 1))
    shard.journal.database.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON main.page BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(sqlite3.IntegrityError, match="full"):
        shard.journal.book(shard.crawl, booking)
    assert (dict(shard.outbox.sent), shard.outbox.waiting, shard.outbox.size) == before
    shard.journal.database.execute("DROP TRIGGER full")
    shard.journal.book(shard.crawl, booking)
    assert shard.outbox.sent[1] == before[0][1] + 1
    numbers, batches = zip(*shard.outbox.next(1, 0, 99), strict=True)
    assert numbers == tuple(range(1, shard.outbox.sent[1] + 1))
    assert (len(batches), sum(map(len, batches))) == (shard.outbox.waiting, shard.outbox.size)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE guest_path SET row = 100000",
        "UPDATE guest_path SET length = 0",
        "UPDATE guest_path SET distance = 0.5",
        "UPDATE guest_path SET reward = 'much'",
        "DELETE FROM guest_path",
    ],
)
def test_damaged_guest_is_refused(tmp_path, statement):
    shard, other = (Shard(tmp_path / str(number), number) for number in range(2))
    shard.book()
    shard.send(other)
    assert other.crawl.store.guests
    other.journal.database.execute(statement)
    with pytest.raises(TresError, match="damaged"):
        recover(other.journal, crawl_of(1))
