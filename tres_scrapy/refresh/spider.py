"""The spider `refresh`: keeps the pages of a finished crawl fresh within a budget of requests."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from time import monotonic, time
from typing import Any, Final, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from tres_scrapy.addon import CLOSED, OFFLINE
from tres_scrapy.config.config import Config
from tres_scrapy.downloader.crawl_delay import Robots
from tres_scrapy.downloader.private_address import PrivateAddressMiddleware
from tres_scrapy.downloader.robots import wait_for_robots
from tres_scrapy.extensions.learner import NO_PAGE
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.middlewares.credential import CredentialMiddleware
from tres_scrapy.middlewares.offline_proxy import OfflineProxyMiddleware
from tres_scrapy.refresh.collection import read_collection
from tres_scrapy.refresh.collection_file import Store
from tres_scrapy.refresh.errand import Answer, Errand, Report, report_of
from tres_scrapy.refresh.keeper import ERROR, Keeper
from tres_scrapy.refresh.main_text import copy_of_bytes, read
from tres_scrapy.refresh.pipeline import RefreshPipeline, written
from tres_scrapy.refresh.settings import RefreshConfig, apply_refresh_arguments

STORE_FAILED: Final = "store_failed"
LONGEST_SLEEP: Final = 0.5  # seconds, so that a stop is soon noticed
# No frontier leads this spider, and its failures are its own to judge.
SETTINGS: Final[dict[str, Any]] = {
    "ADDONS": {},
    "ITEM_PIPELINES": {RefreshPipeline: 900},
    "HTTPERROR_ALLOW_ALL": True,
    "HTTPCACHE_ENABLED": False,  # it would answer a 304 with its own copy
    "METAREFRESH_ENABLED": False,
    "RETRY_ENABLED": False,
    **CLOSED,
}
COMPONENTS: Final[dict[str, dict[type, int]]] = {
    "DOWNLOADER_MIDDLEWARES": {
        OfflineProxyMiddleware: 10,
        CredentialMiddleware: 755,
        PrivateAddressMiddleware: 760,
    },
    "EXTENSIONS": {OfflineWeb: 100, Robots: 130},
}

logger = logging.getLogger(__name__)


class RefreshSpider(Spider):
    """Asks for the pages that its keeper chooses, and yields what each visit has found."""

    name = "refresh"
    config: RefreshConfig
    keeper: Keeper

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        super().update_settings(settings)
        for name, value in SETTINGS.items():
            settings.set(name, value, "spider")
        for name, components in COMPONENTS.items():
            settings.set(name, settings.getdict(name) | components, "spider")
        wait_for_robots(settings)
        base = "DOWNLOADER_MIDDLEWARES_BASE"
        settings.set(base, settings.getdict(base), "spider")

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        job = {name: value for name, value in kwargs.items() if name.startswith("_")}
        apply_refresh_arguments(
            crawler.settings, {name: kwargs[name] for name in kwargs.keys() - job.keys()}
        )
        config = RefreshConfig.from_settings(crawler.settings)
        config.require_collection()
        if Config.from_settings(crawler.settings).web is not None:
            for name, value in OFFLINE.items():
                crawler.settings.set(name, value, "project")
        spider = super().from_crawler(crawler, *args, **job)
        spider.config = config
        spider._open(crawler)
        return spider

    def _open(self, crawler: Crawler) -> None:
        config, settings = self.config, crawler.settings
        shared = Config.from_settings(settings)
        known = list(read_collection(config.require_collection()))
        self._options = config.options(len(known), shared)
        self._reading, self._interval = shared.reading, shared.progress_interval
        self._store = Store(config.beside(config.store, "sqlite"))
        self.keeper = Keeper(self._store, self._options, known, time())
        self._limit = settings.getint("CONCURRENT_REQUESTS")
        self._host_limit = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._out: dict[int, int] = {}  # host by visit
        self._answered = asyncio.Event()
        self._said = monotonic()
        for signal in (signals.item_scraped, signals.item_dropped, signals.item_error):
            crawler.signals.connect(self._delivered, signal=signal)
        crawler.signals.connect(self._idle, signal=signals.spider_idle)

    async def start(self) -> AsyncIterator[Any]:
        for report in self._undelivered():
            yield report
        self.keeper.start(self._now())
        self._say_start()
        while not self._over():
            errand = self._next()
            if errand is not None:
                yield self._request(errand)
                continue
            self._say_progress()
            self._answered.clear()
            try:
                await asyncio.wait_for(self._answered.wait(), self._sleep())
            except TimeoutError:
                continue

    def _undelivered(self) -> list[Report]:
        """Return the items that a killed run has booked and its file does not have."""
        reports = [report_of(text) for _, text in self._store.outbox()]
        have = written(self.config.beside(self.config.output, "jsonl")) if reports else set()
        for report in reports:
            if (report.url, report.fetched_at) in have:
                self._store.delivered(report.visit)
        return [report for report in reports if (report.url, report.fetched_at) not in have]

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Book an answer and yield its item."""
        reading = copy = None
        if response.status == 200 and isinstance(response, HtmlResponse):
            reading = read(response.text, response.url, self._reading)
            copy = reading.copy
        elif response.status == 200:
            copy = copy_of_bytes(response.body)
        answer = Answer(
            response.status,
            "" if copy or response.status == 304 else f"HTTP {response.status}",
            response.url,
            reading,
            copy,
            _text(response.headers.get("ETag")),
            _text(response.headers.get("Last-Modified")),
        )
        return self._book(kwargs["errand"], answer)

    def fail(self, failure: Failure) -> Any:
        """Book a request without an answer; one that robots.txt forbids costs nothing."""
        errand: Errand = failure.request.cb_kwargs["errand"]  # type: ignore[attr-defined]
        if isinstance(failure.value, IgnoreRequest):
            logger.info("%s is left alone: %s", errand.url, failure.getErrorMessage())
            self._out.pop(errand.visit, None)
            self.keeper.take_back(errand, self._now())
            self._answered.set()
            return None
        return self._book(errand, Answer(None, type(failure.value).__name__))

    def closed(self, reason: str) -> None:
        """Say what was found, write the report, and leave a run that was interrupted open."""
        now = self._now()
        finished = reason in {"finished", NO_PAGE} and not self.config.watch
        if reason != STORE_FAILED:
            self.keeper.end(now, finished=finished)
            path = self.config.beside(self.config.report, "html")
            from tres_scrapy.refresh.refresh_report import write_report  # noqa: PLC0415 - slow to import

            write_report(path, self.keeper, now)
            logger.info("%s; the report is %s", self._figures(), path)
        self._store.close()

    def _now(self) -> float:
        """Return the time, or what it would be if each request so far had taken its share."""
        run = self.keeper.run
        if not self.config.stepped or run.horizon is None:
            return time()
        return run.started + self.keeper.sent * run.horizon / run.budget

    def _over(self) -> bool:
        """Tell whether the run is at its end; with `watch` it begins anew."""
        keeper, now = self.keeper, self._now()
        # Without a horizon nothing is waited for: what may not be asked now is left to another run.
        longest = 0.0 if keeper.run.horizon is None else float("inf")
        ready = keeper.ready_in(now)
        if not keeper.spent(now) and (ready == 0 or ready < longest):
            return False
        if keeper.out or not self.config.watch:
            return not keeper.out
        if keeper.wait_for_end(now) <= 0:
            keeper.end(now, finished=True)
            self.keeper = Keeper(self._store, self._options, (), now)
        return False

    def _next(self) -> Errand | None:
        if len(self._out) >= self._limit:
            return None
        try:
            errand = self.keeper.next(self._now(), self._busy())
        except sqlite3.Error as error:
            self._stop(error)
            return None
        if errand is not None:
            self._out[errand.visit] = int(self.keeper.host_of[errand.place])
        return errand

    def _request(self, errand: Errand) -> Request:
        headers = {"If-None-Match": errand.etag, "If-Modified-Since": errand.modified}
        return Request(
            errand.url,
            headers={name: value for name, value in headers.items() if value is not None},
            callback=self.parse,
            errback=self.fail,
            cb_kwargs={"errand": errand},
            dont_filter=True,
        )

    def _book(self, errand: Errand, answer: Answer) -> Report | None:
        self._out.pop(errand.visit, None)
        self._answered.set()
        try:
            report = self.keeper.book(errand, answer, self._now())
        except sqlite3.Error as error:
            self._stop(error)
            return None
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(f"refresh/{report.change}")
        if answer.status == 304:
            self.crawler.stats.inc_value("refresh/not_modified")
        return report

    def _busy(self) -> list[int]:
        """Return the hosts that cannot be sent one more request now."""
        counts = Counter(self._out.values())
        busy = {host for host, count in counts.items() if count >= self._host_limit}
        places = {name: place for place, name in enumerate(self.keeper.host_names)}
        now = monotonic()
        for name, slot in self.crawler.engine.downloader.slots.items():
            if name in places and now < slot.lastseen + slot.delay * (1 + slot.jitter):
                busy.add(places[name])
        return sorted(busy)

    def _sleep(self) -> float:
        """Return how long nothing is to be done unless an answer comes."""
        wait = self.keeper.wait(self._now())
        return min(max(wait, 0.01), LONGEST_SLEEP)

    def _stop(self, error: sqlite3.Error) -> None:
        logger.error(
            "The store cannot be written (%s): the run stops, and can be gone on with", error
        )
        deferred_from_coro(self.crawler.engine.close_spider_async(reason=STORE_FAILED))

    def _delivered(self, item: Any) -> None:
        if isinstance(item, Report):
            self._store.delivered(item.visit)

    def _idle(self) -> None:
        counts = self.keeper.counts
        if counts and set(counts) == {ERROR}:
            raise CloseSpider(NO_PAGE)

    def _say_start(self) -> None:
        keeper = self.keeper
        logger.info(
            "%d pages (%d new), %d of %d requests left%s, policy %s%s",
            len(keeper.rows),
            keeper.added,
            keeper.run.budget - keeper.sent,
            keeper.run.budget,
            f" in {keeper.wait_for_end(self._now()):.0f} s" if keeper.run.horizon else "",
            keeper.options.policy,
            ", going on with the run before" if keeper.resumed else "",
        )

    def _say_progress(self) -> None:
        if self._interval and monotonic() - self._said >= self._interval:
            self._said = monotonic()
            logger.info("%s", self._figures())

    def _figures(self) -> str:
        keeper = self.keeper
        found = ", ".join(f"{count} {name}" for name, count in sorted(keeper.counts.items()))
        return f"{keeper.sent} of {keeper.run.budget} requests: {found or 'no answer yet'}"


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
