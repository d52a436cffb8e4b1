from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from tres_scrapy.cluster import shard as module
from tres_scrapy.cluster.coordinator import StaleEpochError
from tres_scrapy.cluster.shard import FULL, Shard
from tres_scrapy.cluster.status import Command, Orders
from tres_scrapy.cluster.wire import Reply, Version
from tres_scrapy.crawl.parcel import Parcel
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.frontier.outlink import Outlinks
from tres_scrapy.job.mail import Waiting


class FakeMail:
    def __init__(self):
        self.sent, self.received, self.waiting, self.gone = Counter(), Counter(), 0, []
        self.parcels = {}

    def next(self, shard, after, most):
        found = [each for each in self.parcels.get(shard, []) if each.number > after]
        return found[:most]

    def arrived(self, shard, number):
        self.gone.append((shard, number))


class FakeJob:
    def __init__(self):
        self.mail, self.failed, self.works = FakeMail(), False, True

    def receive(self, crawl, sender, number):
        if self.works:
            self.mail.received[sender] = number
        return self.works


class FakeCrawl:
    def __init__(self):
        self.pages, self.leased, self.granted, self.parcels = 5, 2, 7, []
        self.router, self.taken = None, []
        self.policy = SimpleNamespace(noted=0, lessons=self.lessons, take=self.taken.append)

    def lessons(self, first, most):
        return [b"lesson %d" % number for number in range(first, min(3, first + most))]

    def receive(self, parcels):
        self.parcels += parcels


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
    learner = SimpleNamespace(crawl=crawl, job=job, stop=stopped.append)
    crawler = SimpleNamespace(engine=None, settings=Settings(), signals=SignalManager())
    crawler.get_extension = lambda kind: learner
    return SimpleNamespace(
        shard=Shard(crawler, wire, 0, 2), crawl=crawl, job=job, wire=wire, stopped=stopped
    )


def parcel_of(number):
    actions = np.zeros((1, 3), dtype=np.float32)
    links = Outlinks([f"http://a.test/{number}"], [""], actions)
    return Waiting(number, Parcel("http://b.test/", SEED_PATH, links).packed())


def test_parcels_are_taken_once(parts):
    assert parts.shard.receive(1, [parcel_of(1), parcel_of(2)]) == 2
    assert parts.shard.receive(1, [parcel_of(2), parcel_of(3)]) == 3
    found = [parcel.links.urls[0][-1] for parcel in parts.crawl.parcels]
    assert found == ["1", "2", "3"]


def test_missing_parcels_are_noticed(parts):
    with pytest.raises(ValueError, match="parcels of shard 1 are missing after 0"):
        parts.shard.receive(1, [parcel_of(2)])
    assert not parts.crawl.parcels


def test_parcels_that_are_not_saved_are_not_confirmed(parts):
    parts.job.works = False
    with pytest.raises(OSError, match="could not be saved"):
        parts.shard.receive(1, [parcel_of(1)])


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
    parts.job.mail.waiting = FULL + 1
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
    parts.shard._answered("report", parts.shard._obey, future)
    assert parts.stopped == ["stale_epoch"]


def test_lost_call_is_made_again(parts):
    parts.crawl.policy.noted = 3
    parts.shard._teach()
    parts.shard._teach()  # the first is under way
    assert [name for name, _ in parts.wire.calls] == ["teach"]
    lost = Future()
    lost.set_exception(ConnectionError())
    parts.shard._answered("teach", parts.shard._learn, lost)
    parts.shard._teach()
    assert [arguments[0] for _, arguments in parts.wire.calls] == [0, 0]


def test_learner_says_what_to_send_next(parts):
    parts.shard._learn(Reply(2, Version(1, 5, 2)))
    parts.crawl.policy.noted = 3
    parts.shard._teach()
    first, lessons, _ = parts.wire.calls[-1][1]
    assert (first, lessons) == (2, [b"lesson 2"])


def test_delivery_goes_on_where_the_receiver_is(parts):
    mail = parts.job.mail
    mail.sent[1], mail.parcels[1] = 3, [Waiting(number, b"x") for number in (1, 2, 3)]
    parts.shard._deliver(1)
    assert [each.number for each in parts.wire.calls[-1][1][1]] == [1, 2, 3]
    done = Future()
    done.set_result(2)
    parts.shard._answered(1, lambda number: parts.shard._arrived(1, number), done)
    assert mail.gone == [(1, 2)]
    assert [each.number for each in parts.wire.calls[-1][1][1]] == [3]


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
