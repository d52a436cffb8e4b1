"""A shard in the middle of others: its reactor, crawl and job only remember."""

from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager
from twisted.internet import reactor

from tres_scrapy.cluster import shard as module
from tres_scrapy.cluster.coordinator import StaleEpochError
from tres_scrapy.cluster.message import Command, Orders, Receipt, Reply, Version
from tres_scrapy.cluster.outbox import EVERY, FULL_OUTBOX, OWNER, NumberedBatch
from tres_scrapy.cluster.router import LinkBatch
from tres_scrapy.cluster.shard import REPORT, SOON, Shard
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.config.config import Config
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.frontier.ledger import ANY_HOST, Availability


class FakeOutbox:
    def __init__(self):
        self.sent, self.received, self.waiting, self.gone = Counter(), Counter(), 0, []
        self.size = self.epoch = 0
        self.batches = {}

    def begin(self, epoch):
        self.epoch = epoch

    def next(self, shard, after, most):
        found = [each for each in self.batches.get(shard, []) if each.number > after]
        return found[:most]

    def arrived(self, shard, number):
        self.gone.append((shard, number))


class FakeJournal:
    def __init__(self):
        self.outbox, self.synchronous, self.database = FakeOutbox(), False, None

    def receive(self, crawl, sender, number):
        self.outbox.received[sender] = number

    def survive_power_cuts(self):
        self.synchronous = True

    def note_lengths(self, files):
        self.files = files


class FakeJob:
    def __init__(self):
        self.journal, self.failed, self.works = FakeJournal(), False, True
        self.outbox = self.journal.outbox

    def write(self, save, *given):
        if self.works:
            save(*given)
        return self.works


class FakeCrawl:
    def __init__(self):
        self.pages, self.leased, self.granted, self.batches = 5, 2, 7, []
        self.owns, self.taken, self.available = lambda url: True, [], ANY_HOST
        self.policy = SimpleNamespace(noted=0, transitions=self.transitions, take=self.taken.append)
        self.store, self.figures = SimpleNamespace(pending=9), dict
        self.store.may_be_ready = lambda available: "alone" not in available.busy

    def transitions(self, first, most):
        return [b"transition %d" % number for number in range(first, min(3, first + most))]

    def receive(self, batches):
        self.batches += batches


class FakeWire:
    """Keeps calls; a test answers them."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments, **options):
            self.calls.append((name, arguments, Future()))
            return self.calls[-1][-1]

        return call


class Loop:
    def start(self, period, now):
        pass


class World:
    """A shard and all that it sees of the world; its clock stands still."""

    def __init__(self, monkeypatch, count=2, snapshots=None, journal=None):
        self.crawl, self.job, self.wire, self.stopped = FakeCrawl(), FakeJob(), FakeWire(), []
        self.job.journal = journal or self.job.journal
        session = SimpleNamespace(
            crawl=self.crawl,
            job=self.job,
            stop=self.stopped.append,
            listeners=[],
            output=Path("pages.jsonl"),
            health=SimpleNamespace(exhausted=lambda leased, now: False),
        )
        crawler = SimpleNamespace(engine=None, settings=Settings(), signals=SignalManager())
        crawler.get_extension = lambda kind: session
        self.now = 1000.0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "create_looping_call", self._looping)
        monkeypatch.setattr(Config, "of", lambda settings: SimpleNamespace(seed=()))
        monkeypatch.setattr(reactor, "callFromThread", lambda act, *given: act(*given))
        self.shard = Shard(crawler, self.wire, 0, count, snapshots)

    def _looping(self, pulse):
        self.pulse = pulse
        return Loop()

    def open(self):
        self.shard.spider_opened(None)
        return self

    def calls(self, name):
        """Return the arguments of all calls of a name."""
        return [given for called, given, _ in self.wire.calls if called == name]

    def answer(self, name, value):
        """Answer the last call of a name, with a value or an error."""
        future = [future for called, _, future in self.wire.calls if called == name][-1]
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)

    def order(self, limit, **more):
        """Let the shard report, and answer it."""
        self.now += REPORT
        self.pulse()
        self.answer("report", Orders(limit, **more))

    def fill(self, first, last):
        """Fill the outbox with batches for shard 1."""
        outbox = self.job.outbox
        outbox.sent[1] = last
        outbox.batches[1] = [NumberedBatch(number, b"x") for number in range(first, last + 1)]

    def delivered(self):
        """Return the last delivery, which is for shard 1."""
        shard, after, batches = self.calls("deliver")[-1]
        assert shard == 1
        return after, [each.number for each in batches]


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch).open()


def batch_of(number):
    actions = np.zeros((1, 3), dtype=np.float32)
    links = Outlinks([f"http://a.test/{number}"], [""], actions)
    return NumberedBatch(number, LinkBatch("http://b.test/", SEED_PATH, links).packed())


def test_shard_is_busy_while_it_could_send_nothing(world):
    assert not world.shard.status.busy
    world.crawl.available = Availability(["alone"])
    assert world.shard.status.busy, "all hosts are busy"
    world.crawl.available, world.crawl.leased = ANY_HOST, world.shard.status.requests
    assert world.shard.status.busy, "all requests are under way"


def test_batches_are_taken_once(world):
    assert world.shard.receive(1, 0, [batch_of(1), batch_of(2)]) == (2, 2)
    assert world.shard.receive(1, 1, [batch_of(2), batch_of(3)]) == (3, 3)
    found = [batch.links.urls[0][-1] for batch in world.crawl.batches]
    assert found == ["1", "2", "3"]


def test_damaged_batch_is_left_out(world, caplog):
    damaged = NumberedBatch(2, batch_of(2).data[:-1])
    assert world.shard.receive(1, 0, [batch_of(1), damaged, batch_of(3)]) == (3, 3)
    assert [batch.links.urls[0][-1] for batch in world.crawl.batches] == ["1", "3"]
    assert "Batch 2 of shard 1 is left out: a batch of links is cut off" in caplog.text


def test_batches_are_taken_from_start_to_end(monkeypatch):
    world = World(monkeypatch)
    assert not world.shard.is_open
    assert world.open().shard.is_open
    world.shard.end("page_limit")
    assert not world.shard.is_open


@pytest.mark.parametrize(("count", "synchronous"), [(2, 2), (1, 1)])
def test_confirmed_batches_are_on_the_disk(tmp_path, monkeypatch, count, synchronous):
    """A shard waits for the disk (FULL), a crawl without other shards does not (NORMAL)."""
    journal = ShardJournal.open(tmp_path, {})
    world = World(monkeypatch, count, journal=journal)
    assert journal.database.execute("PRAGMA synchronous").fetchone() == (1,)
    world.open()
    assert journal.database.execute("PRAGMA synchronous").fetchone() == (synchronous,)


def test_batches_after_missing_ones_are_not_taken(world):
    assert world.shard.receive(1, 1, [batch_of(2)]) == (0, 0)
    assert not world.crawl.batches


def test_batches_that_are_not_saved_are_not_confirmed(world):
    world.job.works = False
    with pytest.raises(OSError, match="could not be saved"):
        world.shard.receive(1, 0, [batch_of(1)])


def test_limit_rises_with_orders(world):
    assert world.crawl.granted == world.crawl.pages, "nothing is granted at the start"
    world.order(20)
    assert world.crawl.granted == 20


def test_spare_pages_go_back(world):
    world.order(20)
    world.order(20, spare=1)
    assert world.crawl.granted == 5 + 2 + 1
    world.order(8, spare=0)
    assert world.crawl.granted == 7  # those under way are kept


def test_full_outbox_holds_the_crawl(world):
    world.job.outbox.size = FULL_OUTBOX
    world.order(20)
    assert world.crawl.granted == 20
    world.job.outbox.size = FULL_OUTBOX + 1
    world.order(20)
    assert world.crawl.granted == 7


def test_crawl_waits_until_it_is_ended(world):
    with pytest.raises(DontCloseSpider):
        world.shard.spider_idle(None)
    world.order(7, finish="page_limit")
    world.now += REPORT
    world.pulse()
    assert len(world.calls("report")) == 1, "it reports no more"
    assert world.stopped == ["page_limit"]
    world.shard.spider_idle(None)


def test_former_owner_stops(world):
    world.pulse()
    world.answer("report", StaleEpochError("another owner"))
    assert world.stopped == ["stale_epoch"]


def test_lost_call_is_made_again(world):
    world.crawl.policy.noted = 3
    world.pulse()
    world.pulse()  # the first is under way
    assert [first for first, *_ in world.calls("learn")] == [0]
    world.answer("learn", ConnectionError())
    world.pulse()
    assert [first for first, *_ in world.calls("learn")] == [0, 0]


def test_learner_says_what_to_send_next(world):
    world.pulse()
    world.answer("learn", Reply(2, Version(1, 5, 2)))
    world.crawl.policy.noted = 3
    world.pulse()
    first, transitions, _ = world.calls("learn")[-1]
    assert (first, transitions) == (2, [b"transition 2"])


def test_delivery_goes_on_where_the_receiver_is(world):
    world.fill(1, 3)
    world.pulse()
    assert world.delivered() == (0, [1, 2, 3])
    world.answer("deliver", Receipt(2, 2))
    assert world.job.outbox.gone == [(1, 2)]
    assert world.delivered() == (2, [3])


def test_batches_stay_until_they_are_durable(monkeypatch):
    snapshots = SimpleNamespace(
        is_overtaken=False,
        epoch=7,
        age=0.0,
        error="",
        holds=lambda journal: True,
        is_due=lambda journal, at_once: False,
    )
    world = World(monkeypatch, snapshots=snapshots).open()
    assert world.job.outbox.epoch == 7
    world.fill(1, 3)
    world.pulse()
    world.answer("deliver", Receipt(3, 1))
    assert world.job.outbox.gone == [(1, 1)]
    assert world.delivered() == (3, [])  # it asks again, and sends nothing twice
    world.answer("deliver", Receipt(3, 1))
    assert len(world.calls("deliver")) == 2  # not at once


@pytest.fixture
def going_back(world):
    """A shard whose receiver had five batches, of which it cannot lose two, and gets a sixth."""
    world.fill(3, 5)
    world.pulse()
    assert world.delivered() == (2, [3, 4, 5])
    world.answer("deliver", Receipt(5, 2))
    world.answer("deliver", Receipt(5, 2))  # to the question what it cannot lose
    world.fill(3, 6)
    world.now += EVERY
    world.pulse()
    assert world.delivered() == (5, [6])
    return world


def test_restored_receiver_gets_batches_again(going_back):
    going_back.answer("deliver", Receipt(2, 2))
    assert going_back.delivered() == (2, [3, 4, 5, 6])


def test_shard_that_has_lost_links_is_noticed(going_back, caplog):
    going_back.answer("deliver", Receipt(1, 1))
    assert going_back.stopped == ["shard_failed"]
    assert "shard 1 has lost links: it needs batch 2 again" in caplog.text


def test_batches_wait_for_others(world):
    def delivered(count):
        """Return how many batches go when there have been so many."""
        world.fill(1, count)
        before = len(world.calls("deliver"))
        world.pulse()
        calls = world.calls("deliver")[before:]
        if calls:
            world.answer("deliver", Receipt(count, count))
        return [len(batches) for *_, batches in calls]

    assert delivered(100) == [100]
    world.now += EVERY / 2
    assert delivered(101) == []
    world.now += EVERY / 2
    assert delivered(103) == [3]


def test_empty_outbox_is_read_once(world, monkeypatch):
    """A shard that was started again does not know yet what others have."""
    outbox = world.job.outbox
    reads, find = [], outbox.next
    monkeypatch.setattr(outbox, "next", lambda *given: reads.append(given) or find(*given))
    outbox.sent[1] = 5
    for _ in range(3):
        world.pulse()
        world.now += EVERY
    assert len(reads) == 1
    world.answer("deliver", Receipt(5, 5))  # to the question what the other has
    world.fill(6, 6)
    world.pulse()
    assert world.delivered() == (5, [6])


def test_batches_of_a_later_owner_are_counted_from_its_first(world):
    """Their numbers begin above those of the owner before: the crawl has just begun again."""
    first = 7 << OWNER
    world.fill(first + 1, first + 1)
    world.pulse()
    world.answer("deliver", Receipt(first + 1, first + 1))
    world.fill(first + 2, first + 6)
    world.pulse()  # the last delivery was just now
    assert world.delivered() == (first + 1, [first + number for number in range(2, 7)])


def test_shard_reports_seldom_while_it_has_pages(world):
    def reports():
        before = len(world.calls("report"))
        world.pulse()
        if new := len(world.calls("report")) - before:
            world.answer("report", Orders(limit))
        return new

    limit = 8
    assert [reports(), reports()] == [1, 0]
    world.now += REPORT
    assert [reports(), reports()] == [1, 0]
    world.crawl.pages += 1
    assert [reports(), reports()] == [1, 1]


def test_transitions_wait_for_others(world):
    def sends(noted, reply=None):
        """Return whether transitions are sent when so many are noted; the learner has `reply`."""
        world.crawl.policy.noted, before = noted, len(world.calls("learn"))
        world.pulse()
        if has_sent := len(world.calls("learn")) > before:
            world.answer("learn", Reply(reply, Version()))
        return has_sent

    assert sends(0, reply=100)  # it asks for weights
    assert [sends(100), sends(110), sends(111, reply=1000)] == [False, False, True]
    assert [sends(1000), sends(999 + SOON), sends(1000 + SOON, reply=1000)] == [False, False, True]
    world.now += 1
    assert sends(1001, reply=9)
    assert [sends(9), sends(10, reply=10)] == [False, True]  # few are learned yet


def test_commands_are_obeyed_once(world, monkeypatch):
    done = []
    steering = SimpleNamespace(pause=lambda: done.append("pause") or "Paused.")
    monkeypatch.setattr(module, "Control", lambda crawler, session: steering)
    world.order(7, commands=(Command(4, "pause"),))
    assert (done, world.shard.status.commands) == (["pause"], 4)


def test_error_of_a_pulse_ends_the_shard_once(world, caplog):
    def fail(first, most):
        raise ArithmeticError("odd")

    world.crawl.policy.transitions = fail
    world.pulse()
    world.pulse()
    assert world.stopped == ["shard_failed"]
    assert not world.shard.is_ordered  # so that the coordinator hears of it
    assert caplog.text.count("This shard cannot go on") == 1
