"""The spider `refresh`: it keeps the pages of a finished crawl fresh within a budget."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path
from time import monotonic, time
from typing import Any, Final, Self, TextIO

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from tres_scrapy.addon import TresAddon
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.option import apply_arguments
from tres_scrapy.config.typed import named
from tres_scrapy.extensions.ending import NO_PAGE
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.language import decoded
from tres_scrapy.page.pdf_page import PDFS
from tres_scrapy.refresh.collection import read_collection
from tres_scrapy.refresh.refresher import RefreshJob
from tres_scrapy.refresh.settings import RefreshConfig
from tres_scrapy.refresh.store import Store
from tres_scrapy.refresh.text_change import page_changes
from tres_scrapy.refresh.verdict import ERROR
from tres_scrapy.refresh.visit import (
    NOT_MODIFIED,
    PageAnswer,
    RefreshRequest,
    VisitItem,
    answer_of,
)
from tres_scrapy.url.message import plainly
from tres_scrapy.url.whole_file import drop_torn_line


class RefreshPipeline:
    """Appends each visit to a JSON lines file and new links to a list of URLs."""

    def __init__(self, path: Path, found: Path | None) -> None:
        self._path, self._found_path = path, found
        self._file: TextIO | None = None
        self._found: TextIO | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = RefreshConfig.of(crawler.settings)
        pipeline = cls(config.beside(config.output, "jsonl"), config.found)
        pipeline.open()
        return pipeline

    def open(self) -> None:
        """Open the files; raise ConfigError if they cannot be written."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            drop_torn_line(self._path)
            self._file = self._path.open("a", encoding="utf-8")
            if self._found_path is not None:
                self._found = self._found_path.open("a", encoding="utf-8")
        except OSError as error:
            name = named("TRES_REFRESH_OUTPUT")
            raise ConfigError(f"{name} cannot be written: {plainly(error)}") from None

    def close_spider(self) -> None:
        for file in (self._file, self._found):
            if file is not None:
                file.close()

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, VisitItem) or self._file is None:
            return item
        if self._found is not None and item.found:
            self._found.write("".join(f"{url}\n" for url in item.found))
            self._found.flush()
        self._file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")
        self._file.flush()
        return item


STORE_FAILED: Final = "store_failed"
SETTINGS: Final[dict[Any, Any]] = {  # the spider handles failures itself
    "ADDONS": {TresAddon: 100},
    "ITEM_PIPELINES": {RefreshPipeline: 900},
    "HTTPERROR_ALLOW_ALL": True,
    "HTTPCACHE_ENABLED": False,  # it would answer with its own copy instead of a 304
    "METAREFRESH_ENABLED": False,
    "RETRY_ENABLED": False,
}

logger = logging.getLogger(__name__)


class RefreshSpider(Spider):
    """Requests the pages that its job chooses and yields an item for each visit."""

    name = "refresh"
    has_frontier = False
    custom_settings = SETTINGS
    config: RefreshConfig
    job: RefreshJob

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        rest = apply_arguments(crawler.settings, kwargs, RefreshConfig.arguments())
        config = RefreshConfig.of(crawler.settings)
        config.require_collection()
        spider = super().from_crawler(crawler, *args, **rest)
        spider.config = config
        spider._open(crawler)
        return spider

    def _open(self, crawler: Crawler) -> None:
        config, shared = self.config, Config.of(crawler.settings)
        known = list(read_collection(config.require_collection()))
        self._reading = shared.reading
        self.job = RefreshJob(
            Store(config.beside(config.store, "sqlite")),
            config.options(len(known), shared),
            known,
            watch=config.watch,
        )
        self._answered = asyncio.Event()
        self._said = monotonic()
        for signal in (signals.item_scraped, signals.item_dropped, signals.item_error):
            crawler.signals.connect(self._delivered, signal=signal)
        crawler.signals.connect(self._idle, signal=signals.spider_idle)

    async def start(self) -> AsyncIterator[Any]:
        for item in self.job.undelivered(self.config.beside(self.config.output, "jsonl")):
            yield item
        self.job.refresher.run.start(time())
        logger.info("%s", self.job.plan())
        while not self.job.over():
            request = self._next()
            if request is not None:
                yield self._request(request)
                continue
            self._log_progress()
            self._answered.clear()
            try:
                await asyncio.wait_for(self._answered.wait(), self.job.sleep())
            except TimeoutError:
                continue

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Record an answer and yield its item."""
        content: str | bytes = response.body
        if isinstance(response, HtmlResponse) and not is_pdf(response.body):
            content = decoded(response.body, response.encoding, self._reading.html)
        validators = (_text(response, "ETag"), _text(response, "Last-Modified"))
        answer = answer_of(response.status, response.url, content, validators, self._reading)
        return self._book(kwargs["request"], answer)

    def fail(self, failure: Failure) -> Any:
        """Record a failure; a request that robots.txt forbids costs no budget."""
        request: RefreshRequest = failure.request.cb_kwargs["request"]  # type: ignore[attr-defined]
        if isinstance(failure.value, IgnoreRequest):
            logger.info("%s skipped: %s", request.url, failure.getErrorMessage())
            self.job.refresher.take_back(request, time())
            self._answered.set()
            return None
        return self._book(request, PageAnswer(None, type(failure.value).__name__))

    def closed(self, reason: str) -> None:
        """Log the figures and write the report; a run that was interrupted stays open."""
        now, run = time(), self.job.refresher.run
        PDFS.close()
        if reason != STORE_FAILED:
            if reason in {"finished", NO_PAGE} and not self.config.watch:
                self.job.store.end_run(run.id, now)
            path = self.config.beside(None, "html")
            from tres_scrapy.refresh.report import write_report  # noqa: PLC0415 - slow to import

            output = self.config.beside(self.config.output, "jsonl")
            changes = page_changes(output, self.config.require_collection(), run.started)
            write_report(path, self.job.refresher, now, changes)
            logger.info("%s; the report is %s", self.job.figures(), path)
        self.job.store.close()

    def _next(self) -> RefreshRequest | None:
        limits = ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
        try:
            return self.job.next(self._resting(), *map(self.settings.getint, limits))
        except sqlite3.Error as error:
            self._stop(error)
            return None

    def _request(self, request: RefreshRequest) -> Request:
        headers = {"If-None-Match": request.etag, "If-Modified-Since": request.modified}
        return Request(
            request.url,
            headers={name: value for name, value in headers.items() if value is not None},
            callback=self.parse,
            errback=self.fail,
            cb_kwargs={"request": request},
            dont_filter=True,
        )

    def _book(self, request: RefreshRequest, answer: PageAnswer) -> VisitItem | None:
        self._answered.set()
        try:
            item = self.job.refresher.book(request, answer, time())
        except sqlite3.Error as error:
            self._stop(error)
            return None
        self.crawler.stats.inc_value(f"refresh/{item.change}")
        if answer.status == NOT_MODIFIED:
            self.crawler.stats.inc_value("refresh/not_modified")
        return item

    def _resting(self) -> Iterator[str]:
        """Yield the hosts whose download delay is not over."""
        now = monotonic()
        for name, slot in self.crawler.engine.downloader.slots.items():
            if now < slot.lastseen + slot.delay * (1 + slot.jitter):
                yield name

    def _stop(self, error: sqlite3.Error) -> None:
        logger.error(
            "The store cannot be written (%s). The run stops; the same command resumes it.", error
        )
        deferred_from_coro(self.crawler.engine.close_spider_async(reason=STORE_FAILED))

    def _delivered(self, item: Any) -> None:
        if isinstance(item, VisitItem):
            self.job.store.delivered(item.visit)

    def _idle(self) -> None:
        if set(self.job.refresher.counts) == {ERROR}:
            raise CloseSpider(NO_PAGE)

    def _log_progress(self) -> None:
        every = self.settings.getfloat("LOGSTATS_INTERVAL")
        if every and monotonic() - self._said >= every:
            self._said = monotonic()
            logger.info("%s", self.job.figures())


def _text(response: Response, header: str) -> str | None:
    value = response.headers.get(header)
    return None if value is None else value.decode("latin-1")
