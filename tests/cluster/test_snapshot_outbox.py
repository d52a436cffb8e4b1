"""Shards that die and go back to their snapshots lose no link, whatever happens when."""

import sqlite3
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from tres_scrapy.cluster.outbox import Outbox
from tres_scrapy.cluster.router import LinkBatch, PackedBatch
from tres_scrapy.cluster.shard import Shard
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.run.run_file import SCHEMA

SHARDS = 3
OWN = "CREATE TABLE page (shard INTEGER, url TEXT); CREATE TABLE link (url TEXT)"


def copy_of(source):
    copy = sqlite3.connect(":memory:", isolation_level=None)
    source.backup(copy)
    return copy


class Member:
    """A shard with the real outbox and the real protocol; its pages and links are rows.

    It is also the crawl, the job, the wire and the keeper of its shard.
    """

    def __init__(self, number):
        self.number, self.epoch, self.stopped = number, 0, []
        self.flying = []  # calls that may arrive at any time, in any order
        self.copies, self.snapshot = [], sqlite3.connect(":memory:", isolation_level=None)
        tables = [each for each in SCHEMA.tables.split(";") if "outbox" in each or "peer" in each]
        self.snapshot.executescript(";".join([*tables, OWN]))
        self.lose()

    def lose(self):
        """Die with the disk: another process goes on from the last snapshot."""
        self.database = copy_of(self.snapshot)
        self.restart()

    def restart(self):
        """Die: another process goes on with the same disk."""
        self.epoch += 1
        self.confirmed, self.copies, self.calls = {}, [], {}
        self.outbox = Outbox(self.database)
        self.outbox.begin(self.epoch)
        job = SimpleNamespace(journal=self, write=self.call, failed=False)
        learner = SimpleNamespace(crawl=self, job=job, stop=self.stopped.append)
        crawler = SimpleNamespace(engine=None, settings=Settings(), signals=SignalManager())
        crawler.get_extension = lambda kind: learner
        self.shard = Shard(crawler, self, self.number, SHARDS, self)

    # what the shard asks of its job, crawl, keeper and wire

    def receive(self, *given):
        if len(given) == 1:  # the crawl gets links, then the job saves them
            self.links = [url for batch in given[0] for url in batch.links.urls]
            return
        _, sender, number = given
        with_links = partial(self.database.executemany, "INSERT INTO link VALUES (?)")
        self.write(lambda cursor: self.outbox.receive(cursor, sender, number), with_links)

    def call(self, save, *given):
        save(*given)
        return True

    def save(self, crawl):
        self.write(lambda cursor: None)

    def durable(self, sender):
        return self.confirmed.get(sender, 0)

    def deliver(self, shard, after, batches):
        self.flying.append((shard, after, batches))
        self.calls[shard] = self.flying[-1]
        return Future()

    def write(self, act, with_links=None):
        cursor = self.database.cursor()
        cursor.execute("BEGIN")
        act(cursor)
        if with_links is not None:
            with_links([(url,) for url in self.links])
        self.outbox.remove_arrived(cursor)
        cursor.execute("COMMIT")
        self.outbox.keep()

    # events

    def book(self, other, url):
        """Fetch a page with a link to another shard."""
        links = Outlinks([url], [""], np.zeros((1, 3), dtype=np.float32))
        batch = PackedBatch(other, LinkBatch(url, SEED_PATH, links).packed())

        def act(cursor):
            cursor.execute("INSERT INTO page VALUES (?, ?)", (other, url))
            self.outbox.send(cursor, [batch])

        self.write(act)

    def send(self, other):
        self.shard._sender._inquired.clear()
        self.shard._sender._schedule._times.clear()  # time passes
        self.shard._guarded(lambda: self.shard._deliver(other))

    def answered(self, other, receipt):
        """Get the answer to the call that is under way, or hear that it failed."""
        self.calls.pop(other)
        answer = Future()
        if receipt is None:
            answer.set_exception(ConnectionError())
        else:
            answer.set_result(receipt)
        self.shard._sender._inquired[other] = float("inf")  # no question follows at once
        self.shard._calls.end(other, partial(self.shard._arrived, other), answer)

    def copy(self):
        self.copies.append((copy_of(self.database), dict(self.outbox.received)))

    def upload(self):
        if self.copies:
            self.snapshot, self.confirmed = self.copies.pop(0)

    def pages(self, other):
        found = self.database.execute("SELECT url FROM page WHERE shard = ?", (other,))
        return {url for (url,) in found}

    def urls(self):
        return [url for (url,) in self.database.execute("SELECT url FROM link")]


EVENTS = (
    *["book"] * 4,
    *["send", "arrive", "answer", "fail", "late"],
    *["copy", "upload", "restart", "lose"],
)


SENT = [("book", 0, 1), ("send", 0, 1), ("answer", 0, 1)]


def play(members, event, shard, other, number):
    one, two = members[shard], members[other]
    if event == "book":
        one.book(other, f"http://{shard}.test/{number}")
    elif event == "send":
        one.send(other)
    elif event == "arrive" and other in one.calls:
        deliver(one, two, one.calls[other])
    elif event == "answer" and other in one.calls:
        one.answered(other, deliver(one, two, one.calls[other]))
    elif event == "fail" and other in one.calls:
        one.answered(other, None)
    elif event == "late" and one.flying:  # a call of a process that may be dead
        call = one.flying[number % len(one.flying)]
        deliver(one, members[call[0]], call)
    elif event in {"copy", "upload", "restart", "lose"}:
        getattr(one, event)()


def deliver(one, two, call):
    _, after, batches = call
    return two.shard.receive(one.number, after, batches)


def is_quiet(members):
    """Return whether nothing is under way, as the coordinator decides it."""
    return all(
        two.outbox.received[one.number] >= count
        for one in members
        for two in members
        for count in [one.outbox.sent[two.number]]
    )


def missing(members):
    return {
        url for one in members for two in members for url in one.pages(two.number) - set(two.urls())
    }


# what a receiver confirms is lost with it
@example([*SENT, ("lose", 1, 0)])
# a number is used again, for another batch
@example([("copy", 0, 1), ("upload", 0, 1), *SENT, ("lose", 0, 1), ("book", 0, 1)])
@example([*[*SENT, ("lose", 0, 1)] * 2, ("book", 0, 1)])
# a receiver has lost the batch before the next one, which has the same owner, or an older one
@example([*SENT, ("lose", 1, 0), *SENT])
@example([("book", 0, 1), ("restart", 0, 1), *SENT[1:], ("lose", 1, 0), *SENT])
# one batch more than ten, which would wait for others
@example([*[("book", 0, 1)] * 10, *SENT[1:], ("book", 0, 1)])
@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(EVENTS), st.integers(0, SHARDS - 1), st.integers(0, SHARDS - 1)
        ).filter(lambda each: each[1] != each[2]),
        max_size=60,
    )
)
def test_no_link_is_lost(events):
    members = [Member(number) for number in range(SHARDS)]
    for number, (event, shard, other) in enumerate(events):
        play(members, event, shard, other, number)
        if is_quiet(members):
            assert not missing(members)
    for _ in range(100):
        if is_quiet(members):
            break
        for one in members:
            for two in members:
                if one is not two:
                    one.send(two.number)
                    play(members, "answer", one.number, two.number, 0)
    assert is_quiet(members)
    assert not missing(members)
    assert not any(member.stopped for member in members)
    if not any(event == "lose" for event, *_ in events):
        for member in members:
            assert len(member.urls()) == len(set(member.urls()))
