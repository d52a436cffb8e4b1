"""Hosts that fail for a time, without a network and with a clock that jumps."""

from collections import defaultdict
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from judged import judged
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from test_scheduler import redirected, scheduler_of
from twisted.python.failure import Failure

from tres_scrapy import scheduler as module
from tres_scrapy.config.download import RestOptions
from tres_scrapy.downloader.request import LEASE
from tres_scrapy.extensions import waking
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.host import host_of

TIMEOUT = 30.0
GONE = DownloadConnectionRefusedError("refused")
SILENT = DownloadTimeoutError("silent")


class World:
    """Hosts of some pages each, crawled with a fake clock.

    `fault` says for a host, a path and a time what is wrong: None, an exception, or a status and
    its Retry-After.
    """

    def __init__(self, monkeypatch, fault, hosts=5, pages=20, **rest):
        self.now, self.fault, self.pages = 0.0, fault, pages
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(waking, "call_later", lambda *_: SimpleNamespace(cancel=lambda: None))
        self.names = [f"h{i}.test" for i in range(hosts)]
        self.scheduler, self.crawl = scheduler_of(
            *(f"http://{name}/0" for name in self.names), rest=RestOptions(**rest)
        )
        self.learner = self.scheduler._session
        self.health = self.learner.health
        self.asked = defaultdict(list)  # times by host
        self.under_way = []  # requests that time out, with the time of that
        self.unreachable = False

    def run(self, pause=0.05):
        """Crawl until nothing is left to do."""
        while self.scheduler.has_pending_requests() or self.under_way:
            assert self.now < 100_000, "the crawl does not end"
            self.now += pause
            for late in [each for each in self.under_way if each[0] <= self.now]:
                self.under_way.remove(late)
                self.fail(late[1], SILENT)
            if self.health.in_doubt and not self.under_way:
                if not self.probe():
                    return self
                continue
            request = None if self.health.in_doubt else self.scheduler.next_request()
            if request is not None:
                self.answer(request)
            else:
                self.now += 0.5
        return self

    def probe(self):
        """Ask for the network; return False if the crawl ends."""
        answers = [
            self.fault(host_of(f"{origin}/"), "/robots.txt", self.now) is None
            for origin in self.health.origins()
        ]
        pause = self.health.note_probe(answered=any(answers), now=self.now)
        self.unreachable = self.health.in_doubt and pause is None
        self.now += pause or 0.0
        return not self.unreachable

    def answer(self, request):
        host, path = urlsplit(request.url).hostname, urlsplit(request.url).path
        self.asked[host].append(self.now)
        fault = self.fault(host, path, self.now)
        if fault is None:
            self.learner.steps.note_answer(Response(request.url), request)
            self.scheduler.request_left_downloader(request, spider=None)
            self.book(request.meta[LEASE], host, path)
        elif fault is SILENT:
            self.under_way.append((self.now + TIMEOUT, request))
        elif isinstance(fault, Exception):
            self.fail(request, fault)
        else:
            status, wish = fault
            headers = {} if wish is None else {"Retry-After": str(wish)}
            self.fail(request, HttpError(Response(request.url, status, headers)))

    def fail(self, request, error):
        self.scheduler.request_left_downloader(request, spider=None)
        failure = Failure(error)
        failure.request = request
        request.errback(failure)

    def book(self, row, host, path):
        number = int(path[1:])
        paths = [f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < self.pages]
        urls = [f"http://{host}{path}" for path in paths]
        links = Outlinks(urls, urls, np.zeros((len(urls), 3), dtype=np.float32))
        self.crawl.book(row, judged(True), links)
        self.health.note_booking(row)

    @property
    def whole(self):
        """Whether every page was fetched, and nothing but pages was learned from."""
        store = self.crawl.store
        learned = self.crawl.failures.total() + int(store.ledger._records["visits"].sum())
        return self.crawl.pages == len(self.names) * self.pages == learned


def asked_while(world, host, start, end):
    return len([time for time in world.asked[host] if start <= time < end])


def test_four_of_five_sites_fail_for_a_time(monkeypatch):
    faults = {"h1.test": (429, 60), "h2.test": (503, 60), "h3.test": (500, None), "h4.test": GONE}
    world = World(monkeypatch, lambda host, _, now: faults.get(host) if 0.5 < now < 75 else None)
    assert world.run().whole
    assert not world.health.given_up
    assert world.crawl.counts["postponed/http_429"] > 0
    assert max(asked_while(world, host, 0.5, 75) for host in faults) < 10


@pytest.mark.parametrize("fault", [GONE, SILENT, (502, None)])
def test_lost_network_costs_nothing(monkeypatch, fault):
    world = World(monkeypatch, lambda *at: fault if 1 < at[-1] < 76 else None, hosts=8, pages=61)
    assert world.run().whole
    assert world.health.outages == 1
    assert not world.health.given_up


def test_network_that_stays_away_ends_crawl(monkeypatch):
    world = World(monkeypatch, lambda *at: GONE if at[-1] > 1 else None, hosts=8, outage=600.0)
    assert world.run().unreachable
    assert 600 < world.now < 700
    assert not world.health.given_up
    assert not world.crawl.failures


@pytest.mark.parametrize("fault", [GONE, SILENT, (500, None), (503, 120), (429, 1)])
def test_host_away_for_long_loses_nothing(monkeypatch, fault):
    def away(host, path, now):
        return fault if host == "h4.test" and 0.5 < now < 600 else None

    world = World(monkeypatch, away)
    assert world.run().whole
    assert asked_while(world, "h4.test", 0.5, 600) <= 10


def test_dead_host_is_given_up(monkeypatch):
    world = World(monkeypatch, lambda host, *_: GONE if host == "h4.test" else None)
    world.run()
    assert [world.crawl.store.hosts.names[host] for host in world.health.given_up] == ["h4.test"]
    assert world.crawl.pages == 4 * 20
    assert len(world.asked["h4.test"]) == 4, "a host that never answered has three rests"
    assert world.crawl.store.admission.refusals(world.crawl.store) == {"max_rests": 1}


def test_broken_page_ends_no_host(monkeypatch):
    def broken(host, path, now):
        return (500, None) if path in {"/3", "/9"} else None

    world = World(monkeypatch, broken, pages=60)
    world.run()
    assert world.crawl.failures == {"http_500": 10}
    assert world.crawl.pages == 5 * 38, "the others are below the broken ones"
    assert not world.health.given_up


def test_many_dead_hosts_are_no_outage(monkeypatch):
    world = World(monkeypatch, lambda host, *_: GONE if host >= "h3" else None, hosts=40, pages=1)
    world.run()
    assert world.health.outages == 0
    assert len(world.health.given_up) + world.crawl.pages == 40


def test_hopeless_seeds_end_at_once(monkeypatch):
    world = World(monkeypatch, lambda *_: GONE)
    world.run()
    assert world.now < 10
    assert not world.crawl.pages


def test_busy_seed_is_asked_again(monkeypatch):
    world = World(monkeypatch, lambda _h, _p, now: (503, None) if now < 40 else None, hosts=1)
    world.run()
    assert world.whole
    world = World(monkeypatch, lambda *_: (503, None), hosts=1)
    world.run()
    assert world.health.given_up
    assert world.now < 600


def test_silent_hosts_leave_slots_to_others(monkeypatch):
    world = World(
        monkeypatch, lambda host, *_: SILENT if host != "h9.test" else None, hosts=30, pages=400
    )
    most = 0
    while world.crawl.pages < 400:
        request = world.scheduler.next_request()
        if request is not None:
            world.answer(request)
            most = max(most, len(world.under_way))
        elif world.under_way:
            world.now = world.under_way[0][0]
            world.fail(world.under_way.pop(0)[1], SILENT)
    assert most <= 12  # of 16


def test_redirect_to_resting_host_holds_no_slot(monkeypatch):
    world = World(monkeypatch, lambda host, *_: (503, 60) if host == "h1.test" else None, hosts=2)
    first, second = world.scheduler.next_request(), world.scheduler.next_request()
    world.learner.steps.note_answer(Response(first.url), first)
    world.answer(second)
    assert world.scheduler.enqueue_request(redirected(first, "http://h1.test/new"))
    assert world.scheduler.next_request() is None
    assert not world.crawl.leased
    world.now += 75
    urls = {world.scheduler.next_request().url for _ in range(1)}
    assert urls <= {"http://h1.test/new", "http://h1.test/0"}


def test_page_judged_late_proves_no_health(monkeypatch):
    """Its host may have failed since it answered."""
    fault = {"now": None}
    world = World(monkeypatch, lambda *_: fault["now"], hosts=1, pages=3, unreachable=0)
    world.answer(world.scheduler.next_request())
    first, second = (world.scheduler.next_request() for _ in range(2))
    assert second is None, "one request of a host at a time"
    world.learner.steps.note_answer(Response(first.url), first)
    world.scheduler.request_left_downloader(first, spider=None)
    fault["now"] = GONE
    world.answer(world.scheduler.next_request())
    world.book(first.meta[LEASE], "h0.test", urlsplit(first.url).path)
    assert world.scheduler.next_request() is None
    fault["now"] = None
    assert world.run().whole
