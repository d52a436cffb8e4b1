"""What keeps the crawl in JOBDIR, so that it can be killed and gone on with."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from tres_scrapy.config.cap import Cap
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.crawl.policy import Decision
from tres_scrapy.crawl.resumption import Resumable
from tres_scrapy.downloader.request import LEASE, dump_request, load_request
from tres_scrapy.items import RelevantPage
from tres_scrapy.job.job_file import reading
from tres_scrapy.job.journal import Journal
from tres_scrapy.job.recovery import bookings, items, marks, recover, requests
from tres_scrapy.policies.assembly import require_pack
from tres_scrapy.topic.pack import TOPIC_FILE

JOB_FAILED = "job_failed"
_CAP = "max_per_domain"

logger = logging.getLogger(__name__)


class Job:
    """Writes down each lease and each booking before anything comes of it.

    When that fails, the crawl stops: what is written down can be gone on with.
    """

    def __init__(
        self,
        journal: Journal,
        spider: Spider,
        stop: Callable[[str], None],
        cap: Cap | None = None,
    ) -> None:
        self.failed = False
        self._asked = str(cap)  # the MAX of the settings
        self.started = journal.started
        with reading():
            # Items whose export is not certain, by row: they are to be exported again.
            self.unexported = {row: item_of(text) for row, text in items(journal).items()}
        self._journal = journal
        self._spider = spider
        self._keeps_requests = not getattr(spider, "follow_every_link", False)
        self._stop = stop
        self._holds_items = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, crawl: Crawl, stop: Callable[[str], None]) -> Self:
        config = Config.of(crawler.settings)
        if not isinstance(crawl.policy, Resumable):
            raise ConfigError(
                f"JOBDIR: the policy {config.policy!r} cannot be resumed; tres and its variants, "
                "tree_random and random can"
            )
        assert crawler.spider is not None
        journal = Journal.open(Path(crawler.settings["JOBDIR"]), identity_of(config), now())
        job = cls(journal, crawler.spider, stop, config.max_per_domain)
        for signal in (signals.item_scraped, signals.item_dropped, signals.item_error):
            crawler.signals.connect(job.item_left, signal=signal)
        crawler.signals.connect(job.engine_stopped, signal=signals.engine_stopped)
        return job

    def recover(self, crawl: Crawl) -> dict[int, Request]:
        """Bring a new crawl to where the job ends; return the spider's own requests by row."""
        self._recover_cap(crawl)
        with reading():
            kept = requests(self._journal)
            waiting = {row: load_request(text, self._spider) for row, text in kept.items()}
        recover(self._journal, crawl, own=waiting.keys() if self._keeps_requests else None)
        if crawl.pages or crawl.failures:
            logger.info(
                "Going on after %d pages: %d samples in the frontier, %d relevant pages",
                *(crawl.pages, crawl.store.pending, crawl.relevant),
            )
        if crawl.finished:
            logger.info("All %d pages were fetched before: -a pages= asks for more", crawl.pages)
        return waiting

    def marks(self) -> list[bytes]:
        """Return the fingerprints of the pages fetched before, in their order."""
        with reading():
            return marks(self._journal)

    def bookings(self, crawl: Crawl) -> list[Booking]:
        """Return what was booked before, in its order."""
        with reading():
            return bookings(self._journal, crawl)

    def lease(self, crawl: Crawl, decision: Decision) -> bool:
        """Write down that a sample is going to be fetched; False if that failed."""
        return self._write(partial(self._journal.lease, crawl, decision))

    def book(
        self,
        crawl: Crawl,
        booking: Booking,
        mark: bytes | None = None,
        item: RelevantPage | None = None,
        *,
        certain: bool = True,
    ) -> bool:
        """Write down how a leased sample ended; False if that failed.

        One that is not `certain` waits for one that is: until then it stays leased in JOBDIR.
        """
        if not certain:
            self._journal.hold(crawl, booking)
            return True
        text = None if item is None else json.dumps(asdict(item))
        return self._write(partial(self._journal.book, crawl, booking, mark, text))

    def seed(self, crawl: Crawl) -> bool:
        """Write down seeds that have come while the crawl runs; False if that failed."""
        return self._write(partial(self._journal.seed, crawl))

    def note_cap(self, cap: Cap | None) -> bool:
        """Write down that MAX is another until the settings ask for another; False if it failed."""
        changed = json.dumps([self._asked, str(cap)])
        return self._write(partial(self._journal.note, _CAP, changed))

    def keep(self, wanted: Mapping[int, Request]) -> None:
        """Write requests of the spider's own, by row, down with what comes next."""
        if not self._keeps_requests:
            return
        for row, request in wanted.items():
            try:
                self._journal.keep(row, dump_request(request, self._spider))
            except (TypeError, ValueError) as error:
                logger.warning("%s is not kept in JOBDIR and lost in a kill: %s", request, error)

    def item_left(self, item: Any, response: Response | None) -> None:
        """Note that an item has passed the pipelines, wherever it went."""
        if self._holds_items:
            return
        if response is not None:
            row = getattr(response, "meta", {}).get(LEASE)
        else:  # it was to be exported again
            url = getattr(item, "url", None)
            row = next((row for row, kept in self.unexported.items() if kept.url == url), None)
        if row is not None:
            self.exported(row)

    def hold_items(self) -> None:
        """Take no item for exported any more: where they go to cannot be written."""
        self._holds_items = True

    def exported(self, row: int) -> None:
        """Note that the item of a row need not be exported again."""
        self.unexported.pop(row, None)
        self._journal.export(row)

    def engine_stopped(self) -> None:
        try:
            self._journal.close(write=not self.failed)
        except sqlite3.Error as error:
            logger.error("JOBDIR cannot be written: %s", error)

    def _recover_cap(self, crawl: Crawl) -> None:
        """Let the MAX to which it was changed hold, unless the settings ask for another by now."""
        with reading():
            noted = self._journal.noted(_CAP)
            asked, changed = [self._asked] * 2 if noted is None else json.loads(noted)
            cap = Cap.parse(changed)
            if asked != self._asked:
                self._journal.note(_CAP, json.dumps([self._asked, self._asked]))
        if asked == self._asked != changed:
            if cap is not None and cap.first != cap.last and crawl.limit is None:
                raise ConfigError(f"JOBDIR: MAX {cap} falls with the pages done: add -a pages=N")
            crawl.store.ledger.cap = cap
            logger.info("MAX is %s, to which it was changed while the crawl ran", cap)

    def _write(self, write: Callable[[], None]) -> bool:
        if self.failed:
            return False
        try:
            write()
        except sqlite3.Error as error:
            self.failed = True
            logger.error(
                "JOBDIR cannot be written (%s): the crawl stops, and goes on from what is written "
                "when it is started again",
                error,
            )
            self._stop(JOB_FAILED)
        return not self.failed


def item_of(text: str) -> RelevantPage:
    """Return an item from the text that a job has kept of it; ValueError: it cannot be written."""
    fields = json.loads(text)
    json.dumps(fields, ensure_ascii=False).encode()
    return RelevantPage(**fields)


def now() -> str:
    """Return the present time as it stands in names of files."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")


def identity_of(config: Config) -> dict[str, str]:
    """Return what a crawl must have in common with the one that it goes on with."""
    pack = require_pack(config) / TOPIC_FILE
    return {
        "topic": str(config.topic),
        "policy": config.policy,
        "pack": sha256(pack.read_bytes()).hexdigest()[:12],
        "web": "the real one"
        if config.web.kind is None
        else f"{config.web.kind} {config.web.seed}",
    }
