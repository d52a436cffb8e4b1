from collections import Counter
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from tres_scrapy.cluster import shard as module
from tres_scrapy.cluster.coordinator import StaleEpochError
from tres_scrapy.cluster.message import Command, Orders, Receipt, Reply, Version
from tres_scrapy.cluster.outbox import EVERY, FULL_OUTBOX, FULL_STORE, OWNER, NumberedBatch
from tres_scrapy.cluster.router import LinkBatch
from tres_scrapy.cluster.shard import SOON, Shard
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.config.config import Config
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import SEED_PATH


class FakeOutbox:
    def __init__(self):
        self.sent, self.received, self.waiting, self.gone = Counter(), Counter(), 0, []
        self.size = 0
        self.batches = {}

    def next(self, shard, after, most):
        found = [each for each in self.batches.get(shard, []) if each.number > after]
        return found[:most]

    def before(self, shard, number):
        return number - 1

    def size_after(self, shard, number):
        return sum(len(each.data) for each in self.batches[shard] if each.number > number)

    def arrived(self, shard, number):
        self.gone.append((shard, number))


class FakeJournal:
    def __init__(self):
        self.outbox, self.synchronous, self.changes = FakeOutbox(), False, 0

    def receive(self, crawl, sender, number):
        self.outbox.received[sender] = number

    def survive_power_cuts(self):
        self.synchronous = True


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
        self.owns, self.taken, self.busy_hosts = lambda url: True, [], []
        self.policy = SimpleNamespace(noted=0, transitions=self.transitions, take=self.taken.append)
        self.store, self.figures = SimpleNamespace(pending=9), dict
        self.store.may_be_ready = lambda busy: "alone" not in busy

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
            self.calls.append((name, arguments))
            return Future()

        return call


@pytest.fixture
def parts(monkeypatch):
    crawl, job, wire, stopped = FakeCrawl(), FakeJob(), FakeWire(), []
    learner = SimpleNamespace(crawl=crawl, job=job, stop=stopped.append, listeners=[])
    learner.exhausted = lambda now: False
    learner.busy_hosts = lambda: crawl.busy_hosts
    crawler = SimpleNamespace(engine=None, settings=Settings(), signals=SignalManager())
    crawler.get_extension = lambda kind: learner
    return SimpleNamespace(
        shard=Shard(crawler, wire, 0, 2), crawl=crawl, job=job, wire=wire, stopped=stopped
    )


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(module, "monotonic", lambda: clock.now)
    return clock


def batch_of(number):
    actions = np.zeros((1, 3), dtype=np.float32)
    links = Outlinks([f"http://a.test/{number}"], [""], actions)
    return NumberedBatch(number, LinkBatch("http://b.test/", SEED_PATH, links).packed())


def test_shard_is_busy_while_it_could_send_nothing(parts):
    assert not parts.shard.status.busy
    parts.crawl.busy_hosts = ["alone"]
    assert parts.shard.status.busy, "all hosts are busy"
    parts.crawl.busy_hosts, parts.crawl.leased = [], parts.shard.status.requests
    assert parts.shard.status.busy, "all requests are under way"


def test_batches_are_taken_once(parts):
    assert parts.shard.receive(1, 0, [batch_of(1), batch_of(2)]) == (2, 2)
    assert parts.shard.receive(1, 1, [batch_of(2), batch_of(3)]) == (3, 3)
    found = [batch.links.urls[0][-1] for batch in parts.crawl.batches]
    assert found == ["1", "2", "3"]


def test_damaged_batch_is_left_out(parts, caplog):
    damaged = NumberedBatch(2, batch_of(2).data[:-1])
    assert parts.shard.receive(1, 0, [batch_of(1), damaged, batch_of(3)]) == (3, 3)
    assert [batch.links.urls[0][-1] for batch in parts.crawl.batches] == ["1", "3"]
    assert "Batch 2 of shard 1 is left out: a batch of links is cut off" in caplog.text


def test_batches_are_taken_from_start_to_end(parts):
    assert not parts.shard.is_open
    parts.shard._loop = object()
    assert parts.shard.is_open
    parts.shard.end("page_limit")
    assert not parts.shard.is_open


@pytest.mark.parametrize(("count", "synchronous"), [(2, 2), (1, 1)])
def test_confirmed_batches_are_on_the_disk(tmp_path, parts, monkeypatch, count, synchronous):
    """A shard waits for the disk (FULL), a crawl without other shards does not (NORMAL)."""
    journal = parts.job.journal = ShardJournal.open(tmp_path, {})
    read = partial(journal.database.execute, "PRAGMA synchronous")
    assert read().fetchone() == (1,)
    looping = SimpleNamespace(start=lambda period, now: None)
    monkeypatch.setattr(module, "create_looping_call", lambda call: looping)
    monkeypatch.setattr(Config, "of", lambda settings: SimpleNamespace(seed=()))
    parts.shard._is_alone = count == 1
    parts.shard.spider_opened(None)
    assert read().fetchone() == (synchronous,)


def test_batches_after_missing_ones_are_not_taken(parts):
    assert parts.shard.receive(1, 1, [batch_of(2)]) == (0, 0)
    assert not parts.crawl.batches


def test_batches_that_are_not_saved_are_not_confirmed(parts):
    parts.job.works = False
    with pytest.raises(OSError, match="could not be saved"):
        parts.shard.receive(1, 0, [batch_of(1)])


def test_limit_rises_with_orders(parts):
    parts.shard._obey(Orders(20))
    assert parts.crawl.granted == 20


def test_spare_pages_go_back(parts):
    parts.shard._obey(Orders(20))
    parts.shard._obey(Orders(20, spare=1))
    assert parts.crawl.granted == 5 + 2 + 1
    parts.shard._obey(Orders(8, spare=0))
    assert parts.crawl.granted == 7  # those under way are kept


def test_full_outbox_holds_the_crawl(parts):
    outbox = parts.job.outbox
    large = bytes(FULL_OUTBOX // 2 + 1)
    outbox.size, outbox.sent[1] = 2 * len(large), 2
    outbox.batches[1] = [NumberedBatch(1, large), NumberedBatch(2, large)]
    parts.shard._obey(Orders(20))
    assert parts.crawl.granted == 7
    parts.shard._sender.arrived(1, Receipt(1, 0))
    parts.shard._obey(Orders(20))
    assert parts.crawl.granted == 20
    outbox.size = FULL_STORE + 1
    parts.shard._obey(Orders(20))
    assert parts.crawl.granted == 7


def test_crawl_waits_until_it_is_ended(parts):
    with pytest.raises(DontCloseSpider):
        parts.shard.spider_idle(None)
    parts.shard._obey(Orders(7, finish="page_limit"))
    parts.shard._obey(Orders(7, finish="page_limit"))
    assert parts.stopped == ["page_limit"]
    parts.shard.spider_idle(None)


def test_former_owner_stops(parts):
    future = Future()
    future.set_exception(StaleEpochError("another owner"))
    parts.shard._calls.end("report", parts.shard._obey, future)
    assert parts.stopped == ["stale_epoch"]


def test_lost_call_is_made_again(parts):
    parts.crawl.policy.noted = 3
    parts.shard._send_transitions()
    parts.shard._send_transitions()  # the first is under way
    assert [name for name, _ in parts.wire.calls] == ["learn"]
    lost = Future()
    lost.set_exception(ConnectionError())
    parts.shard._calls.end("learn", parts.shard._take_update, lost)
    parts.shard._send_transitions()
    assert [arguments[0] for _, arguments in parts.wire.calls] == [0, 0]


def test_learner_says_what_to_send_next(parts):
    parts.shard._take_update(Reply(2, Version(1, 5, 2)))
    parts.crawl.policy.noted = 3
    parts.shard._send_transitions()
    first, transitions, _ = parts.wire.calls[-1][1]
    assert (first, transitions) == (2, [b"transition 2"])


def test_delivery_goes_on_where_the_receiver_is(parts):
    outbox = parts.job.outbox
    outbox.sent[1], outbox.batches[1] = 3, [NumberedBatch(number, b"x") for number in (1, 2, 3)]
    parts.shard._deliver(1)
    assert delivered(parts) == (0, [1, 2, 3])
    answer(parts, Receipt(2, 2))
    assert outbox.gone == [(1, 2)]
    assert delivered(parts) == (2, [3])


def delivered(parts):
    """Return the last delivery."""
    name, (shard, after, batches) = parts.wire.calls[-1]
    assert (name, shard) == ("deliver", 1)
    return after, [each.number for each in batches]


def answer(parts, receipt):
    done = Future()
    done.set_result(receipt)
    parts.shard._calls.end(1, lambda receipt: parts.shard._arrived(1, receipt), done)


def test_batches_stay_until_they_are_durable(parts):
    outbox, parts.shard._snapshots = parts.job.outbox, object()
    outbox.sent[1], outbox.batches[1] = 3, [NumberedBatch(number, b"x") for number in (1, 2, 3)]
    parts.shard._deliver(1)
    answer(parts, Receipt(3, 1))
    assert outbox.gone == [(1, 1)]
    assert delivered(parts) == (0, [])  # it asks again, and sends nothing twice
    answer(parts, Receipt(3, 1))
    assert len(parts.wire.calls) == 2  # not at once


def test_restored_receiver_gets_batches_again(parts):
    outbox = parts.job.outbox
    outbox.sent[1], outbox.batches[1] = 5, [NumberedBatch(number, b"x") for number in (3, 4, 5)]
    parts.shard._sender.arrived(1, Receipt(5, 2))
    parts.shard._arrived(1, Receipt(2, 2))
    assert delivered(parts) == (2, [3, 4, 5])


def test_shard_that_has_lost_links_is_noticed(parts, caplog):
    outbox = parts.job.outbox
    outbox.sent[1], outbox.batches[1] = 5, [NumberedBatch(number, b"x") for number in (3, 4, 5)]
    parts.shard._guarded(lambda: parts.shard._arrived(1, Receipt(1, 1)))
    assert parts.stopped == ["shard_failed"]
    assert "shard 1 has lost links: it needs batch 2 again" in caplog.text


def test_batches_wait_for_others(parts, clock):
    outbox = parts.job.outbox

    def delivered(count):
        """Return how many batches go when there have been so many."""
        outbox.sent[1], before = count, len(parts.wire.calls)
        outbox.batches[1] = [NumberedBatch(number, b"x") for number in range(1, count + 1)]
        parts.shard._pulse()
        calls = [more for name, more in parts.wire.calls[before:] if name == "deliver"]
        parts.shard._calls.under_way.clear()
        if calls:
            parts.shard._sender.arrived(1, Receipt(count, count))
        return [len(batches) for *_, batches in calls]

    assert delivered(100) == [100]
    clock.now += EVERY / 2
    assert delivered(101) == []
    clock.now += EVERY / 2
    assert delivered(103) == [3]


def test_empty_outbox_is_read_once(parts, clock, monkeypatch):
    """A shard that was started again does not know yet what others have."""
    outbox = parts.job.outbox
    reads, find = [], outbox.next
    monkeypatch.setattr(outbox, "next", lambda *given: reads.append(given) or find(*given))
    outbox.sent[1] = 5
    for _ in range(3):
        parts.shard._pulse()
        clock.now += EVERY
    assert len(reads) == 1
    outbox.sent[1], outbox.batches[1] = 6, [NumberedBatch(6, b"x")]
    parts.shard._deliver(1)
    assert delivered(parts) == (5, [6])


def test_batches_of_a_later_owner_are_counted_from_its_first(parts, clock):
    """Their numbers begin above those of the owner before: the crawl has just begun again."""
    first = 7 << OWNER
    outbox = parts.job.outbox
    parts.shard._sender.arrived(1, Receipt(first + 1, first + 1))
    outbox.sent[1] = first + 6
    outbox.batches[1] = [NumberedBatch(first + number, b"x") for number in range(2, 7)]
    parts.shard._sender._schedule.take_turn(1, 1, 0, clock.now)  # the last delivery was just now
    parts.shard._deliver(1)
    assert delivered(parts) == (first + 1, [first + number for number in range(2, 7)])


def test_shard_reports_seldom_while_it_has_pages(parts, clock):
    def reports():
        parts.shard._calls.under_way.clear()
        before = len(parts.wire.calls)
        parts.shard._pulse()
        return [name for name, _ in parts.wire.calls[before:]].count("report")

    parts.crawl.granted = 8
    assert [reports(), reports()] == [1, 0]
    clock.now += 1
    assert [reports(), reports()] == [1, 0]
    parts.crawl.granted -= 1
    assert [reports(), reports()] == [1, 1]


def test_transitions_wait_for_others(parts, clock):
    def sends(noted):
        """Return whether transitions are sent when so many are noted."""
        parts.shard._calls.under_way.clear()
        parts.crawl.policy.noted, before = noted, len(parts.wire.calls)
        parts.shard._send_transitions()
        return len(parts.wire.calls) > before

    assert sends(0)  # it asks for weights
    parts.shard._next_transition = 100
    assert [sends(100), sends(110), sends(111)] == [False, False, True]
    parts.shard._next_transition = 1000
    assert [sends(1000), sends(999 + SOON), sends(1000 + SOON)] == [False, False, True]
    clock.now += 1
    assert sends(1001)
    parts.shard._next_transition = 9
    assert [sends(9), sends(10)] == [False, True]  # few are learned yet


def test_commands_are_obeyed_once(parts, monkeypatch):
    done = []
    steering = SimpleNamespace(pause=lambda: done.append("pause") or "Paused.")
    monkeypatch.setattr(module, "Control", lambda crawler, learner: steering)
    parts.shard._obey(Orders(7, commands=(Command(4, "pause"),)))
    assert (done, parts.shard._obeyed) == (["pause"], 4)


def test_error_of_a_pulse_ends_the_shard_once(parts, caplog):
    def fail():
        raise ArithmeticError("odd")

    parts.shard._guarded(fail)
    parts.shard._guarded(fail)
    assert parts.stopped == ["shard_failed"]
    assert not parts.shard.is_ordered  # so that the coordinator hears of it
    assert caplog.text.count("This shard cannot go on") == 1
