"""Saves the crawl in JOBDIR, so that it can be killed and resumed; items wait there as JSON."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, ParamSpec, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.typed import typed
from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.crawl.visit import REQUESTS, Visit
from tres_scrapy.downloader.request import LEASE, dump_request, follows_links, load_sample
from tres_scrapy.items import LONGEST, dump_item, load_item
from tres_scrapy.run.identity import identity_of, journal_kind, now
from tres_scrapy.run.job_file import reading
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import interrupted, items, recover, requests
from tres_scrapy.run.run_file import LATE_ITEMS
from tres_scrapy.url.message import plural

JOB_FAILED = "job_failed"
_CAP = "max_per_domain"
LATE, RETRACTED = 0, 1  # places of items that come after their page
_KINDS = LATE_ITEMS, "retracted items"
_ASKED = "sitemaps of "  # before the origin of a host
_REST = "rest of "  # before the name of a host

P = ParamSpec("P")


logger = logging.getLogger(__name__)


class Job:
    """Saves each lease, redirect and booking before the crawl acts on it.

    When saving fails, the crawl stops; it can be resumed from what was saved.
    """

    def __init__(
        self,
        journal: Journal,
        spider: Spider,
        stop: Callable[[str], None],
        cap: Cap | None = None,
    ) -> None:
        self.failed = False
        self._asked = str(cap)  # MAX in the settings
        self.started = journal.started
        self.interrupted = interrupted(journal)  # rows that are fetched again
        with reading():
            kept = [(key, load_item(text)) for key, text in items(journal).items()]
        # Items that may not have been exported: they are exported again.
        self.unexported = [item for _, item in kept]
        # By row, the items that are in the pipelines, with their keys in the journal, if any. Under
        # None those without a response: they are exported again.
        self._leaving: dict[int | None, list[tuple[tuple[int, int] | None, Any]]] = {}
        self._leaving[None] = [*kept]
        self._unkept: set[type] = set()  # classes of items that the log has named
        self.journal = journal
        self._spider = spider
        self._keeps_requests = not follows_links(spider)
        self._stop = stop
        self._holds_items = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, crawl: Crawl, stop: Callable[[str], None]) -> Self:
        config = Config.of(crawler.settings)
        if not crawl.policy.is_resumable:
            raise ConfigError(
                f"JOBDIR: the policy {config.policy!r} cannot be resumed: unset JOBDIR, or use tres"
            )
        assert crawler.spider is not None
        directory = Path(crawler.settings["JOBDIR"])
        journal = journal_kind(config).open(
            directory, identity_of(config), now(), keeps_texts=config.watch.texts
        )
        job = cls(journal, crawler.spider, stop, config.max_per_domain)
        for signal in (signals.item_scraped, signals.item_dropped):
            crawler.signals.connect(job.item_left, signal=signal)
        crawler.signals.connect(job.item_failed, signal=signals.item_error)

        def spider_opened() -> None:  # the file is closed after all others have written to it
            crawler.signals.connect(job.engine_stopped, signal=signals.engine_stopped)

        crawler.signals.connect(spider_opened, signal=signals.spider_opened, weak=False)
        return job

    def requests(self) -> dict[int, Request]:
        """Return the spider's own requests by row."""
        with reading():
            kept = requests(self.journal).items()
            return {row: load_sample(text, self._spider) for row, text in kept}

    def recover(self, crawl: Crawl, own: Container[int]) -> None:
        """Restore the state of the job in a new crawl; `own` has the rows of own requests."""
        self._recover_cap(crawl)
        killers = recover(self.journal, crawl, own=own if self._keeps_requests else None)
        for row in killers:
            logger.warning(
                "%s was under way when the crawl was killed twice: it is not fetched again",
                crawl.store.url(row),
            )
        if crawl.pages or crawl.failures:
            logger.info(
                "Resuming after %d %s: %d %s in the frontier, %d relevant %s",
                crawl.pages,
                plural(crawl.pages, "page"),
                crawl.store.pending,
                plural(crawl.store.pending, "link"),
                crawl.relevant,
                plural(crawl.relevant, "page"),
            )
        if crawl.finished:
            said = "All %d pages were fetched before: raise %s to go on"
            logger.info(said, crawl.pages, typed("pages"))

    def book(self, crawl: Crawl, booking: Booking, items: Sequence[Any] = ()) -> bool:
        """Save the booking of a leased sample with its items; return whether that worked."""
        row, texts = booking.experience.row, list(map(self._text, items))
        if items:
            self._leaving[row] = [
                (None if text is None else (row, place), item)
                for place, (text, item) in enumerate(zip(texts, items, strict=True))
            ]
        return self.write(self.journal.book, crawl, booking, texts)

    def write(self, save: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Call a method of the journal that saves something; return whether that worked.

        If it fails, the crawl stops and nothing more is saved; a bug is raised again.
        """
        if self.failed:
            return False
        try:
            save(*args, **kwargs)
        except Exception as error:  # else links would be saved without the page that was undone
            self.failed = True
            logger.error(
                "JOBDIR cannot be written (%s): the crawl stops; resume it with the same command",
                error,
            )
            self._stop(JOB_FAILED)
            if not isinstance(error, sqlite3.Error):
                raise
        return not self.failed

    def note_cap(self, cap: Cap | None) -> bool:
        """Save a changed MAX, valid until the setting changes; return whether that worked."""
        changed = json.dumps([self._asked, str(cap)])
        return self.write(self.journal.note, _CAP, changed)

    def note_asked(self, origin: str) -> bool:
        """Save that a host was asked for its sitemaps; return whether that worked."""
        return self.write(self.journal.note, f"{_ASKED}{origin}", "1")

    def origins_asked(self) -> list[str]:
        """Return the hosts that were asked for their sitemaps, such as http://a.test."""
        with reading():
            return [*self.journal.noted_after(_ASKED)]

    def note_rest(self, host: str, until: float, kind: str) -> bool:
        """Save until when a host asked for a pause, in seconds since 1970, and how."""
        return self.write(self.journal.note, f"{_REST}{host}", f"{ceil(until)} {kind}")

    def rests(self) -> dict[str, tuple[int, str]]:
        """Return the pauses that hosts asked for, also those that are over, as they were saved."""
        with reading():
            kept = self.journal.noted_after(_REST).items()
            rests = {host: value.split(" ") for host, value in kept}
            return {host: (int(until), kind[:LONGEST]) for host, (until, kind) in rests.items()}

    def note_visit(self, visit: Visit) -> bool:
        """Save how many requests a site has had on a day."""
        return self.write(
            self.journal.note, f"{REQUESTS}{visit.site}", f"{visit.day} {visit.requests}"
        )

    def visits(self) -> list[Visit]:
        """Return the last day of each site on which its requests were counted."""
        with reading():
            kept = self.journal.noted_after(REQUESTS).items()
            return [Visit(site, *map(int, value.split(" "))) for site, value in kept]

    def rows_handed_over(self, kind: int) -> set[int]:
        """Return the rows of pages of which an item of a kind was handed over."""
        with reading():
            return set(json.loads(self.journal.noted(_KINDS[kind]) or "[]"))

    def hand_over(self, kind: int, items: Mapping[int, Any]) -> bool:
        """Save items that come after their page, by row, before they leave; return if that worked.

        Of each kind, LATE or RETRACTED, a page has one.
        """
        rows = sorted(self.rows_handed_over(kind) | items.keys())
        kept = [(row, kind, dump_item(item)) for row, item in items.items()]
        self._leaving.setdefault(None, []).extend(((row, kind), items[row]) for row in items)
        return self.write(self.journal.hand_over, kept, _KINDS[kind], json.dumps(rows))

    def keep(self, wanted: Mapping[int, Request]) -> None:
        """Save the spider's own requests, by row, in the next transaction."""
        if not self._keeps_requests:
            return
        for row, request in wanted.items():
            try:
                self.journal.keep(row, dump_request(request, self._spider))
            except (TypeError, ValueError) as error:
                logger.warning(
                    "%s cannot be saved in JOBDIR, a resumed crawl is without it: %s",
                    request,
                    error,
                )

    def forget(self, rows: Iterable[int]) -> None:
        """Remove the own requests of rows that are never fetched."""
        if self._keeps_requests:
            self.journal.forget(rows)

    def item_left(self, item: Any, response: Response | None) -> None:
        """Record that an item was exported or dropped."""
        key = self._taken(item, response)
        if key is not None and not self._holds_items:
            self.journal.export(*key)

    def item_failed(self, item: Any, response: Response | None) -> None:
        """Leave an item whose pipeline failed in the journal: a resumed crawl exports it again."""
        self._taken(item, response)

    def hold_items(self) -> None:
        """Record no more exports: the output file cannot be written."""
        self._holds_items = True

    def engine_stopped(self) -> None:
        try:
            self.journal.close(write=not self.failed)
        except sqlite3.Error as error:
            logger.error("JOBDIR cannot be written: %s", error)

    def _taken(self, item: Any, response: Response | None) -> tuple[int, int] | None:
        """Remove an item from those in the pipelines; return its key in the journal, if any.

        A pipeline may have replaced it: then take the first item of its page.
        """
        row = None if response is None else getattr(response, "meta", {}).get(LEASE)
        leaving = self._leaving.get(row, [])
        place = next((i for i, (_, each) in enumerate(leaving) if each is item), 0)
        key = leaving.pop(place)[0] if leaving else None
        if not leaving:
            self._leaving.pop(row, None)
        return key

    def _text(self, item: Any) -> str | None:
        """Return an item as JSON, or None if JSON cannot store it."""
        try:
            return dump_item(item)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            if type(item) not in self._unkept:
                self._unkept.add(type(item))
                logger.warning(
                    "Items of the class %s cannot be saved in JOBDIR, a kill may lose some: %s",
                    type(item).__name__,
                    error,
                )
            return None

    def _recover_cap(self, crawl: Crawl) -> None:
        """Restore a MAX changed during the crawl, unless the setting has changed since."""
        with reading():
            noted = self.journal.noted(_CAP)
            asked, changed = [self._asked] * 2 if noted is None else json.loads(noted)
            cap = Cap.parse(changed)
            if asked != self._asked:
                self.journal.note(_CAP, json.dumps([self._asked, self._asked]))
        if asked == self._asked != changed:
            if cap is not None and cap.first != cap.last and crawl.limit is None:
                raise ConfigError(
                    f"JOBDIR: MAX {cap} depends on the pages done: add {typed('pages', 'N')}"
                )
            crawl.change_cap(cap)
            logger.info("MAX is %s, as changed during the crawl", cap)
