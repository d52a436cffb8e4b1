"""The Scrapy scheduler that takes requests from the frontier."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic, time
from typing import Any, Final, Self

import numpy as np
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir
from twisted.internet.defer import Deferred
from twisted.python import failure as twisted_failure

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.allotment import Allotment
from tres_scrapy.crawl.failure import (
    REDIRECT_CLOSED,
    REDIRECT_LIMIT,
    REDIRECT_NOT_HTTP,
    REDIRECT_OUT_OF_SCOPE,
    Failure,
)
from tres_scrapy.crawl.patience import WAITED, Patience
from tres_scrapy.crawl.registry import kind_of
from tres_scrapy.crawl.slot import HostSlots, Slot
from tres_scrapy.downloader.delay import CrawlDelay, HeldError, SharedAddresses
from tres_scrapy.downloader.engine import SHUTDOWN, is_under_way
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.downloader.request import LEASE, OWN, SAMPLE, START
from tres_scrapy.extensions.own_queue import OwnQueue
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.waking import Probe, Waking
from tres_scrapy.frontier.ledger import Availability
from tres_scrapy.frontier.store import NO_PARENT
from tres_scrapy.url.canonical import canonicalise

OF_SITE: Final = 3  # redirects that a site may need: to https, to www, to a language
PATIENT: Final = 0.6  # `hurry` of a crawl with a page budget

logger = logging.getLogger(__name__)


class TreeFrontierScheduler(BaseScheduler):
    """Builds a Request when the policy has chosen a sample that can be sent now.

    The requests of a project's own spider that are not samples go to `own`, Scrapy's scheduler, and
    are sent first.

    Samples wait in the frontier, not in the downloader: no host gets more requests than its slot
    can send at once, and at most CONCURRENT_REQUESTS samples are leased. With
    CONCURRENT_REQUESTS=1 the choice ignores busy hosts, as in the paper; requests then wait in the
    downloader.
    """

    def __init__(
        self,
        crawler: Crawler,
        session: CrawlSession,
        own: OwnQueue,
        shared: SharedAddresses | None = None,
        own_delay_of: Callable[[str], float] = lambda host: 0.0,
    ) -> None:
        self._crawler = crawler
        self._own_delay_of = own_delay_of  # seconds that a host asks for
        self._shared = shared or SharedAddresses()
        self._session = session
        self._own = own
        self._crawl, self._steps = session.crawl, session.steps
        settings = crawler.settings
        self._concurrency = settings.getint("CONCURRENT_REQUESTS") or math.inf
        self._max_redirects = settings.getint("REDIRECT_MAX_TIMES")
        self._host_concurrency = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._delay = settings.getfloat("DOWNLOAD_DELAY")
        self._again: deque[Request] = deque()  # redirects and retries of leased samples
        self._out: dict[int, Request] = {}  # by row, the request that was handed out last
        names = self._crawl.store.hosts.names
        self._slots = HostSlots(names, self._slot_of, self._crawl.is_leased)
        self._waking = Waking(crawler, session, self._slots)
        self._scheduling: int | None = None  # the row of a sample between the two calls
        self._health = session.health
        share = self._health.options.new_hosts if session.follows_all else 1.0
        most_new = max(1, share * self._concurrency)  # requests to hosts never heard from
        self._allotment = Allotment(
            self._crawl.store, self._slots, self._concurrency, self._host_concurrency, most_new
        )
        self._patience = Patience(_hurry_of(settings))
        self._probe = Probe(crawler, self._health, session.stop)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = CrawlSession.of(crawler)
        dupefilter = session.requests.dupefilter
        assert dupefilter is not None  # it has one in a real crawl
        jobdir = None if session.follows_all else job_dir(crawler.settings)
        own = OwnQueue.with_filter(crawler, dupefilter.filter, jobdir)
        shared, delay = map(crawler.get_extension, (SharedAddresses, CrawlDelay))
        scheduler = cls(crawler, session, own, shared, *([] if delay is None else [delay.delay_of]))
        if not session.follows_all:
            crawler.signals.connect(scheduler.request_scheduled, signal=signals.request_scheduled)
        crawler.signals.connect(
            scheduler.request_left_downloader, signal=signals.request_left_downloader
        )
        return scheduler

    def __len__(self) -> int:
        return self._crawl.store.pending + len(self._again) + len(self._own)

    def open(self, spider: Spider) -> Deferred[None] | None:
        return self._own.open(spider)

    def close(self, reason: str) -> Deferred[None] | None:
        self._waking.cancel()
        self._probe.close()
        closed = self._own.close(reason)
        if self._session.job is not None and self._session.job.failed:
            self._own.discard()  # its filter has seen links that the job has not saved
        return closed

    def has_pending_requests(self) -> bool:
        if self._again:
            return True
        if self._own.has_pending_requests():
            return True
        crawl, now = self._crawl, monotonic()
        return not crawl.finished and not self._health.exhausted(crawl.leased, now)

    def enqueue_request(self, request: Request) -> bool:
        self._scheduling = None
        requests = self._session.requests
        if SAMPLE in request.meta:  # the frontier took or refused it when its page was booked
            return self._take_sample(request.meta[SAMPLE], request)
        lease = request.meta.get(LEASE)
        if lease is not None and self._crawl.is_leased(lease) and lease not in requests.answered:
            return self._take_back(lease, request)
        request.meta.pop(LEASE, None)  # a copy of a request whose sample is done or answered
        url = requests.url_of_sample(request)
        if url is None and requests.is_done(request):
            return requests.drop(request)
        if url is None:
            request.meta[OWN] = True  # and so do its retries and redirects
            return bool(self._own.enqueue_request(request))
        return self._steps.add_seed(url, request)

    def request_scheduled(self, request: Request) -> None:
        """Note a sample whose request is being scheduled: another listener may refuse it."""
        self._drop_refused()
        self._scheduling = request.meta.get(SAMPLE)

    def _drop_refused(self) -> None:
        """Drop the sample that was not scheduled after all, for example because it is offsite."""
        row, self._scheduling = self._scheduling, None
        if row is not None and row != NO_PARENT:
            self._session.requests.refuse(row)

    def next_request(self) -> Request | None:
        self._drop_refused()
        if (own := self._own.next_request()) is not None:
            return own
        if self._health.in_doubt:
            self._probe.start()
            return None
        busy = self._busy_hosts()
        if (request := self._next_again(busy)) is not None:
            return request
        decision = None
        if self._crawl.leased < self._concurrency:
            decision = self._steps.next(self._availability(busy))
        if decision is None:
            self._release_replaced()
            self._waking.plan(monotonic())
            return None
        row = decision.row
        request = self._session.requests.of(row)
        meta = {name: value for name, value in request.meta.items() if name != SAMPLE}
        errback = partial(self._failed, row, request.errback)
        return self._hand_out(row, request.replace(meta=meta | {LEASE: row}, errback=errback))

    def request_left_downloader(self, request: Request, spider: Spider) -> None:
        row = request.meta.get(LEASE, NO_PARENT)
        if seconds := self._slots.waited(row, monotonic()):
            self._allotment.note_page(int(self._crawl.store["host"][row]), seconds)
        self._slots.left(row)

    def _take_sample(self, row: int, request: Request) -> bool:
        """Ask the filter of the project for the request of a new sample, as Scrapy does now."""
        if row == NO_PARENT:
            return False
        if self._repeats(request):
            self._session.requests.refuse(row)
            return False
        return True

    def _take_back(self, row: int, request: Request) -> bool:
        """Queue a redirect or retry of a leased row, if its URL may be fetched.

        A middleware may send the request in another form, for example to a server that renders
        pages: the row keeps its URL.
        """
        self._slots.left(row)
        self._out.pop(row, None)
        url, current = canonicalise(request.url), self._crawl.store.url(row)
        came_from = request.meta.get("redirect_urls", [None])[-1]
        if came_from is None or canonicalise(came_from) != current:
            self._again.append(request)
            return True
        if url is None:
            self._steps.book(row, REDIRECT_NOT_HTTP)
            return False
        if url != current and (refusal := self._refusal(row, url, request)) is not None:
            self._steps.book(row, refusal)
            return False
        is_again = not self._session.follows_all and request.dont_filter
        moves = not self._repeats(request) and url != current and self._steps.redirect(row, url)
        if not moves and not is_again:  # else Scrapy follows it, for example to set a cookie
            self._steps.book(row, REDIRECT_CLOSED)
            return False
        request.meta.pop("download_slot", None)  # the slot of the previous host
        self._again.append(request.replace(url=url))  # `/../` would pass by robots.txt
        return True

    def _refusal(self, row: int, url: str, request: Request) -> Failure | None:
        """Return why a redirect of a row to another URL is not followed, None if it may be.

        The last redirects that are allowed lead to no other site: they would close a URL of it,
        such as http://www.a.test/, that only redirects further.
        """
        store = self._crawl.store
        left = self._max_redirects - request.meta.get("redirect_times", 0)
        kept = min(OF_SITE, self._max_redirects // 3) if self._session.follows_all else 0
        if left < kept and store.domain_of(url) != int(store["domain"][row]):
            return REDIRECT_LIMIT
        if store.is_refused(row, url):
            return REDIRECT_OUT_OF_SCOPE
        return None if self._crawl.owns(url) else self._crawl.redirect_away(row, url)

    def _repeats(self, request: Request) -> bool:
        """Return whether the filter of the project drops a request of its own spider."""
        dupefilter = self._session.requests.dupefilter
        if self._session.follows_all or dupefilter is None:
            return False
        return dupefilter.drops(request)

    def _next_again(self, busy: list[int]) -> Request | None:
        resting = set(self._health.resting(monotonic())) if self._again else set()
        available = Availability(closed=self._session.sites.closed(time()) if self._again else None)
        for _ in range(len(self._again)):
            request = self._again.popleft()
            row = request.meta.get(LEASE)
            if row is None or not self._crawl.is_leased(row):  # its page was booked meanwhile
                request.meta.pop(LEASE, None)
                return request
            host, domain = (self._crawl.store[name][row] for name in ("host", "domain"))
            if host in resting or available.is_closed(np.array([domain]))[0]:
                self._crawl.set_back(row)  # it would hold one of CONCURRENT_REQUESTS meanwhile
                continue
            is_new = not self._crawl.store.hosts.is_known(host)
            if host not in busy and not (is_new and not self._has_room_for_new()):
                return self._hand_out(row, request)
            self._again.append(request)
        return None

    def _release_replaced(self) -> None:
        """Book samples whose request a middleware has replaced by another one, without our meta."""
        if self._session.follows_all or self._session.judge_is_lost:
            return
        engine = self._crawler.engine
        for row, request in list(self._out.items()):
            if not self._crawl.is_leased(row):
                del self._out[row]
            elif not is_under_way(engine, request):
                del self._out[row]
                self._steps.book(row, None)

    def _hand_out(self, row: int, request: Request) -> Request:
        if not self._session.follows_all:
            self._out[row] = request
        self._slots.sent(row, int(self._crawl.store["host"][row]), monotonic())
        return request

    def _busy_hosts(self) -> list[int]:
        """Return the hosts that must not get another request now."""
        now = monotonic()
        failing, busy = self._health.resting(now), self._slots.busy(now)
        return failing if self._concurrency == 1 else [*busy.union(failing)]

    def _availability(self, busy: list[int]) -> Availability:
        """Return which hosts the next choice may take, given the busy ones."""
        now = monotonic()
        free = 1 - self._crawl.leased / self._concurrency
        soon, closed = list[int](), self._session.sites.closed(time())
        if patient := self._patience.has_credit(now, free, waits=self._crawl.waits):
            hosts = set(busy).difference(self._health.resting(now))
            soon = self._slots.soon_free(hosts, now)
            domain = self._crawl.store.hosts.domain
            soon = [host for host in soon if closed is None or not closed[domain(host)]]
        self._crawler.stats.set_value(WAITED, round(self._patience.waited, 1))
        only_known = not self._has_room_for_new()
        full = self._allotment.full_domains(self._health.resting(now), closed)
        slow = self._allotment.full_hosts(busy, now, closed)  # not worth waiting for
        away = np.array([*{*busy, *slow}], dtype=np.int64)
        return Availability(away, soon, only_known, patient, full, closed)

    def _has_room_for_new(self) -> bool:
        return self._allotment.has_room_for_new(monotonic())

    def _slot_of(self, name: str) -> Slot:
        """Return the downloader slot of a host as it is, or as it will be."""
        key, own = self._shared.slot_of(name), self._own_delay_of(name)
        hosts = self._shared.hosts_of(key)
        slot = self._crawler.engine.downloader.slots.get(key)
        if slot is None:
            return Slot(key, hosts, self._host_concurrency, self._delay, own)
        delay = slot.delay * (1 + slot.jitter)
        return Slot(key, hosts, slot.concurrency, delay, own, slot.lastseen)

    def _failed(
        self,
        row: int,
        errback: Callable[[twisted_failure.Failure], Any] | None,
        failure: twisted_failure.Failure,
    ) -> Any:
        """Set back or book a fetch that raised; if it is booked, call the request's own errback.

        The requests of a project's own spider are not set back: Scrapy has retried them.
        """
        request: Request = failure.request  # type: ignore[attr-defined]
        request.errback = errback
        if not self._session.follows_all:
            request.meta.pop(START, None)  # or a copy of it might start at a local file
        self._slots.left(row)  # perhaps never sent: then the host need not rest
        self._out.pop(row, None)
        if isinstance(failure.value, HeldError) and self._crawl.is_leased(row):
            host = int(self._crawl.store["host"][row])
            self._slots.hold(host, monotonic() + failure.value.pause)
            self._crawl.set_back(row)
            return None
        found, ours = failure_of(failure.value), self._session.follows_all
        if found.kind == SHUTDOWN or (ours and self._steps.set_back(row, found, monotonic())):
            return None
        self._steps.book(row, found)
        if errback is not None or not ours:
            return failure if errback is None else errback(failure)  # Scrapy logs its own way
        level = logging.DEBUG if isinstance(failure.value, IgnoreRequest) else logging.INFO
        logger.log(
            level, "Could not fetch %s: %s", self._crawl.store.url(row), failure.getErrorMessage()
        )
        return None


def _hurry_of(settings: BaseSettings) -> float:
    """Return how little the crawl waits for better links: not at all without a page budget."""
    config = Config.of(settings)
    alone = settings.getint("CONCURRENT_REQUESTS") == 1
    hurry = config.learning.hurry
    if alone or not (kind_of(config.policy).reads_cues and config.links.enabled):
        if hurry is not None and hurry < 1:
            logger.warning(
                "hurry has no effect: only TRES with its link model waits for better hosts, and "
                "only with more than one request at a time"
            )
        return 1.0
    has_pages = config.pages is not None and not settings.getfloat("CLOSESPIDER_TIMEOUT")
    return hurry if hurry is not None else PATIENT if has_pages else 1.0
