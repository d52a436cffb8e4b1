"""The extension that writes the record of a crawl."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import Final, Self
from urllib.parse import urlsplit

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings, default_settings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy import settings as own_settings
from tres_scrapy.config.config import Config
from tres_scrapy.config.option import Kept
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import IN_JOB, HealthPoint, RecordError, open_to_write
from tres_scrapy.report.record_path import record_path
from tres_scrapy.report.record_writer import RecordEntry, Writer
from tres_scrapy.run.recovery import bookings
from tres_scrapy.url.message import plainly

EVERY: Final = 1.0  # seconds between two transactions
HEALTH: Final = 10.0  # least seconds between two notes of memory and answers,
NOTES: Final = 200  # and how many of them there are at most in the life of a process, about
ANSWERS: Final = ("downloader/response_status_count/", "downloader/exception_type_count/")
WEB: Final = "tres/web/"  # figures by the true labels of an offline web
# Scrapy's settings that the record holds
SCRAPY: Final = (
    "USER_AGENT",
    "ROBOTSTXT_OBEY",
    "CONCURRENT_REQUESTS",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_TIMEOUT",
    "DOWNLOAD_MAXSIZE",
    "RETRY_TIMES",
    "JOBDIR",
)

logger = logging.getLogger(__name__)


class Recorder:
    """Records each page and why it was chosen, in one transaction a second.

    If the record cannot be written, one line is logged and the crawl continues.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._writer: Writer | None = None
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        self.path = Path()
        self._reason, self._facts = "", dict[str, str]()
        self._begun = self._next_health = time()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if not config.watch.record:
            raise NotConfigured
        if crawler.settings["JOBDIR"]:
            try:
                open_to_write(Path(crawler.settings["JOBDIR"], IN_JOB)).close()
            except RecordError as error:
                raise NotConfigured(f"{error}; the crawl runs without a record") from None
        recorder = cls(crawler, config)
        crawler.signals.connect(recorder.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(recorder.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(recorder.engine_stopped, signal=signals.engine_stopped)
        return recorder

    def spider_opened(self, spider: Spider) -> None:
        session = self._crawler.get_extension(CrawlSession)
        if session is None:
            return
        settings, config, started = self._crawler.settings, self._config, session.started
        output = session.output
        self.path = record_path(output, settings["JOBDIR"], started, str(config.topic))
        meta = {
            "topic": str(config.topic),
            "policy": config.policy,
            "spider": spider.name,
            "started": started,
            "output": str(output.resolve()),
            "scope": json.dumps(asdict(config.scope)),
            "changed": json.dumps(changed_of(config, settings)),
        }
        try:
            used = settings_of(config, settings)
            self._writer = Writer.open(self.path, session.crawl, meta, used, time())
            if session.job is not None:
                self._writer.fill(bookings(session.job.journal, session.crawl), time())
        except (OSError, RecordError, sqlite3.Error) as error:
            logger.error("%s: the crawl continues without a record", plainly(error))
            return
        session.listeners.append(self.booked)
        self._loop = create_looping_call(self._flush)
        self._loop.start(EVERY, now=False)

    @property
    def _stats(self) -> StatsCollector:
        assert self._crawler.stats is not None
        return self._crawler.stats

    def booked(self, booking: Booking) -> None:
        """Add a booking to the record."""
        if self._writer is None:
            return
        entry = RecordEntry(booking, time())
        if (judged := booking.judged) is not None:
            entry = entry._replace(
                title=judged.page.title,
                text=judged.page.text,
                probability=judged.probability,
                is_copy=judged.is_copy,
                scores=judged.scores,
            )
            if judged.is_foreign:
                remark = f"refused by languages: it is in {judged.page.language}"
                entry = entry._replace(remark=remark)
        self._writer.note(entry)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        self._reason = reason
        if (session := self._crawler.get_extension(CrawlSession)) is not None:
            ending = session.ending
            self._facts = {"left": ending.left(), "gone": ending.given_up()}

    def engine_stopped(self) -> None:
        if self._loop is not None:
            self._loop.stop()
        writer, self._writer = self._writer, None
        if writer is None:
            return
        session = CrawlSession.of(self._crawler)
        try:
            self._note_health(writer, None)  # the other processes have ended
            web = {
                name.removeprefix(WEB): value
                for name, value in self._stats.get_stats().items()
                if name.startswith(WEB)
            }
            facts = self._facts | ({"web": json.dumps(web)} if web.get("pages") else {})
            writer.close(time(), self._reason, **facts)
            pages, is_own = session.crawl.pages, not session.follows_all
            if not writer.steps or (is_own and not pages):
                self.path.unlink()  # an empty file would only mislead
            elif self._config.watch.report and pages:
                self._report()
        except (OSError, RecordError, sqlite3.Error) as error:
            logger.error("The record %s cannot be written: %s", self.path, plainly(error))

    def _report(self) -> None:
        # Imported here because the templates are slow to import.
        from tres_scrapy.report.crawl_report import SUFFIX, write_report  # noqa: PLC0415

        page = self.path.with_suffix(SUFFIX)
        try:
            with Record(self.path) as record:
                write_report(record, page)
        except OSError as error:
            logger.error("The report %s cannot be written: %s", page, error)
        else:
            logger.info("The report of the crawl is %s", page)

    def _flush(self) -> None:
        if self._writer is None:
            return
        try:
            self._writer.flush(time())
            if time() >= self._next_health:
                self._note_health(self._writer, resident_memory())
        except sqlite3.Error as error:
            logger.error(
                "The record %s cannot be written (%s): the crawl continues", self.path, error
            )
            self._writer.abandon()
            self._writer = None

    def _note_health(self, writer: Writer, memory: int | None) -> None:
        now, found = time(), dict[str, int]()
        for name, value in self._stats.get_stats().items():
            if name.startswith(ANSWERS):
                kind = name.rpartition("/")[2].rpartition(".")[2]
                found[kind] = found.get(kind, 0) + value
        writer.note_health(HealthPoint(now, memory, found))
        self._next_health = now + max(HEALTH, (now - self._begun) / NOTES)


def changed_of(config: Config, settings: BaseSettings) -> list[str]:
    """Return the names of the settings whose values are not the defaults of TRES."""
    used = {name: (str(settings[name]), str(_default(name))) for name in SCRAPY}
    found = {name for name, (value, default) in used.items() if value != default}
    kept = [each.options for each in settings.values() if isinstance(each, Kept)]
    for options in (config, *kept):
        found |= dict(options.values().items() - type(options)().values().items()).keys()
    return sorted(found)


def _default(name: str) -> object:
    return getattr(own_settings, name, getattr(default_settings, name, None))


def settings_of(config: Config, settings: BaseSettings) -> dict[str, str]:
    """Return the settings that are set, as text, without keys and passwords."""
    values = {name: settings.get(name) for name in SCRAPY} | config.values()
    for kept in settings.values():
        if isinstance(kept, Kept):  # those of the spider's own program
            values |= kept.options.values()
    if values["TRES_SEARCH_URL"] is not None:
        parts = urlsplit(values["TRES_SEARCH_URL"])
        place = parts.netloc.rpartition("@")[2]
        values["TRES_SEARCH_URL"] = f"{parts.scheme}://{place}{parts.path}"
    return {name: _text(value) for name, value in values.items() if value not in (None, (), "")}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def resident_memory() -> int | None:
    """Return the bytes that this process and its children hold, None where /proc is missing.

    Memory that processes share counts once for each.
    """
    waiting, found = [os.getpid()], 0
    while waiting:
        process = Path("/proc", str(waiting.pop()))
        try:
            found += int((process / "statm").read_text().split()[1])
            for file in (process / "task").glob("*/children"):
                waiting += map(int, file.read_text().split())
        except OSError:  # it has just ended
            continue
    return found * os.sysconf("SC_PAGE_SIZE") or None
