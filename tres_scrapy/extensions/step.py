"""The steps of a crawl that Scrapy asks for: each is saved in JOBDIR before Scrapy acts on it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, time
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.agent.policy import Decision
from tres_scrapy.crawl.crawl import POSTPONED, Booking, Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.host import Health, Rest
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.downloader.request import LEASE, ROBOTS_TXT
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.own_request import OwnRequests
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.ledger import Availability
from tres_scrapy.topic.judge import Judge
from tres_scrapy.topic.pack import Judged

EVERY: Final = 1.0  # seconds between two updates of the stats

Listener = Callable[[Booking], None]

logger = logging.getLogger(__name__)


class Steps:
    """Takes the steps of a crawl, and saves each if there is a `job`.

    With CONCURRENT_REQUESTS=1 the random seed determines their order. The `listeners` of the moment
    receive each booking that is saved.
    """

    def __init__(
        self,
        crawl: Crawl,
        judge: Judge,
        health: Health,
        requests: OwnRequests,
        job: Job | None,
        *,
        listeners: Sequence[Listener],
        is_offline: bool = False,
    ) -> None:
        self._listeners = listeners
        self._crawl = crawl
        self._judge = judge
        self._health = health
        self._requests = requests
        self._job = job
        self._is_offline = is_offline
        self._resume_rests()

    def next(self, available: Availability) -> Decision | None:
        """Lease the sample to fetch next; return None if none can be fetched now."""
        if self._job is None:
            return self._crawl.next(available)
        decision = None if self._job.failed else self._crawl.next(available)
        is_saved = decision and self._job.write(self._job.journal.lease, self._crawl, decision)
        return decision if is_saved else None

    def redirect(self, row: int, url: str) -> bool:
        """Redirect a leased row; return False if its new URL must not be fetched."""
        job = self._job
        moved = self._crawl.redirect(row, url)
        return moved and (job is None or job.write(job.journal.redirect, self._crawl, row))

    def add_seed(self, url: str, request: Request) -> bool:
        """Add a seed with its request to the frontier; return False if its URL is closed.

        A shard takes the seeds on its own domains only.
        """
        if not self._crawl.owns(url):
            return False
        row = self._requests.seeds.pop(url, None)  # it was there before the crawl was interrupted
        if row is None:
            if self._requests.repeats(url, request):
                return False
            if self._requests.is_link(url, request) or self._crawl.store.closure.is_closed(url):
                return self._requests.drop(request)
            rows = self._crawl.add_seeds(self._described([url], [""]), request.priority)
            if not len(rows):
                return False
            row = int(rows[0])
        self._requests.keep({row: request})
        return True

    def add_answers(self, parent: int, urls: Sequence[str], anchors: Sequence[str]) -> None:
        """Add links found by the search box of a seed's site to the frontier."""
        self._crawl.add_outlinks(parent, self._described(urls, anchors))

    def add_unlinked(self, parent: int, judged: Judged) -> int:
        """Add the new links of a sitemap or feed to the frontier; return how many.

        `parent` is the row of the page that led to it; the store has learned the judge's names.
        """
        store, links = self._crawl.store, judged.page.links
        places = [i for i, link in enumerate(links) if not store.closure.knows(link.url)]
        urls, anchors = [links[i].url for i in places], [links[i].anchor for i in places]
        actions, cues = judged.actions[places], judged.cues.take(places)
        rows = self._crawl.add_unlinked(parent, Outlinks(urls, anchors, actions, cues))
        if self._job is not None:
            self._job.write(self._job.journal.save, self._crawl)
        return len(rows)

    def book(
        self,
        row: int,
        result: Judged | Failure | None,
        links: Outlinks = NO_LINKS,
        own: Mapping[str, Request] | None = None,
        items: Sequence[Any] = (),
    ) -> bool:
        """Book a leased row with the outlinks to follow and its items, and learn from it.

        `result` is as in `Crawl.book`, `own` are the spider's own requests for the outlinks, by
        URL. Return False if the booking could not be saved in JOBDIR: then discard the page's items
        and requests. A row that is not leased is booked already.
        """
        if not self._crawl.is_leased(row):
            return True
        booking = self._crawl.book(row, result, links)
        if isinstance(result, Failure) and result.ends_in_rest and self._health.heeds_wall(row):
            host = int(self._crawl.store["host"][row])
            self._health.note_failure(host, result, monotonic(), row)
        self._health.note_booking(row)
        self._crawl.bring_forward(self._requests.note_booking(booking, own or {}))
        booked = self._job is None or self._job.book(self._crawl, booking, items)
        for listener in self._listeners if booked else ():
            try:
                listener(booking)
            except Exception:
                logger.exception("Bug in what follows a page; the page is kept")
        return booked

    def set_back(self, row: int, failure: Failure, now: float) -> bool:
        """Put the host of a leased row to rest; return whether the row waits for its host.

        It does not if the failure is the link's own, or if the host is given up.
        """
        offline = self._is_offline and failure.is_status  # these pages never answer otherwise
        if not self._crawl.is_leased(row) or offline or self._health.blames(row, failure):
            return False
        host = int(self._crawl.store["host"][row])
        last = self._health.set_back(row, host)
        self._crawl.set_back(row, last=last)
        if last and self._job is not None and not self._crawl.store.is_held(row):
            self._job.write(self._job.journal.set_back, row)
        self._crawl.count(POSTPONED + failure.kind)
        return self._rest(host, failure, now, row)

    def note_answer(self, response: Response, request: Request) -> None:
        """Note that a host has answered, be it with its robots.txt; what waits for it is next.

        It rests if it asks for that in answer to a sitemap or the like, which no sample waits for.
        """
        url = urlparse_cached(request)
        host = self._crawl.store.hosts.find(url.hostname or "")
        if (failure := failure_of(HttpError(response))).passes:
            aside = not (request.meta.keys() & {LEASE, ROBOTS_TXT} or self._is_offline)
            if host is not None and failure.retry_after and aside and self._requests.follows_all:
                self._rest(host, failure, monotonic())
        else:
            self._health.note_answer(host, f"{url.scheme}://{url.netloc}")
            if host is not None and LEASE in request.meta:
                self._crawl.bring_forward(self._health.note_page(host))

    def _described(self, urls: Sequence[str], anchors: Sequence[str]) -> Outlinks:
        return Outlinks(urls, anchors, self._judge.action_features(urls, anchors))

    def _rest(self, host: int, failure: Failure, now: float, row: int | None = None) -> bool:
        """Put a host to rest; return False if it or the row is given up instead."""
        rests = self._health.rests
        rest = self._health.note_failure(host, failure, now, row)
        name = self._crawl.store.hosts.names[host]
        if rest is None and host in self._health.given_up:
            logger.warning(
                "Gave up %s (%s): a resumed crawl tries it once more", name, failure.kind
            )
            if self._job is not None:
                self._job.write(self._job.journal.save, self._crawl)  # no booking may follow
        elif rest is not None and self._health.rests > rests:
            logger.info("%s rests for %.0f s (%s)", name, rest.until - now, failure.kind)
        if rest is not None and failure.retry_after and self._job is not None:
            self._job.note_rest(name, time() + rest.until - now, failure.kind)
        return rest is not None

    def _resume_rests(self) -> None:
        """Let hosts rest that asked an earlier run for it, until then."""
        steady = monotonic() - time()
        for name, (until, kind) in self._job.rests().items() if self._job is not None else ():
            host = self._crawl.store.hosts.find(name)
            if host is not None and until > time():
                self._health.rest(host, Rest(1, until + steady, kind), monotonic())


class CrawlStats:
    """Sets the figures of a crawl as Scrapy's stats: at its start and end, and with its pages."""

    def __init__(self, crawler: Crawler, crawl: Crawl, health: Health) -> None:
        self._stats = crawler.stats
        self._crawl = crawl
        self._health = health
        self._next = 0.0
        # those of a resumed crawl, which may have nothing left to fetch
        crawler.signals.connect(self.show, signal=signals.spider_opened)
        crawler.signals.connect(self.show, signal=signals.spider_closed)

    def show(self) -> None:
        """Set the stats."""
        self._next = monotonic() + EVERY
        for name, value in self._crawl.figures().items():
            self._stats.set_value(f"tres/{name}", value)
        self._stats.set_value("tres/rests", self._health.rests)
        self._stats.set_value("tres/outages", self._health.outages)

    def note(self, booking: Booking) -> None:
        """Set the stats, at most once a second."""
        if monotonic() >= self._next:
            self.show()
