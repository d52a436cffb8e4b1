"""The extension that writes the file of a run."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import Final, ParamSpec, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings, default_settings
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy import settings as own_settings
from tres_scrapy.config.config import Config
from tres_scrapy.config.option import Kept
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.crawl.share import SMALL, Holder
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.report.record_path import record_path
from tres_scrapy.report.share import sentence
from tres_scrapy.run.run_file import FINAL, HealthPoint, RecordError
from tres_scrapy.run.writer import Writer, resident_memory
from tres_scrapy.url.message import below, plainly

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

P = ParamSpec("P")

logger = logging.getLogger(__name__)


class Recorder:
    """Writes the file of the run: settings, curve and snapshots, and each page without JOBDIR.

    With JOBDIR the crawl stops if the file cannot be written, for it could not be resumed. Without,
    one line is logged and the crawl continues.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._writer: Writer | None = None
        self._job: Job | None = None
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        self.path = Path()
        self._reason, self._facts = "", dict[str, str]()
        self._final: dict[str, str] = {}  # what the last model has made of the output
        self._warned = set[str]()  # about sites that gave most of the last pages
        self._begun = self._next_health = time()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if not config.watch.record and not crawler.settings["JOBDIR"]:
            raise NotConfigured
        recorder = cls(crawler, config)
        crawler.signals.connect(recorder.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(recorder.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(recorder.engine_stopped, signal=signals.engine_stopped)
        return recorder

    def spider_opened(self, spider: Spider) -> None:
        session = CrawlSession.of(self._crawler)
        settings, config, started = self._crawler.settings, self._config, session.started
        output, self._job = session.output, session.job
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
        used = settings_of(config, settings)
        if self._job is not None:
            self._compare(self._job.journal.noted("output"), output)
            self._writer = Writer(self._job.journal, session.crawl, time())
            self._save(self._writer.begin, meta, used, time())
        else:
            try:
                self._writer = Writer.open(
                    self.path,
                    session.crawl,
                    meta,
                    used,
                    time(),
                    keeps_texts=config.watch.texts,
                )
            except (OSError, RecordError, sqlite3.Error) as error:
                logger.error("%s: the crawl continues without a record", plainly(error))
                return
            session.listeners.append(self.booked)
        self._loop = create_looping_call(self.flush)
        self._loop.start(EVERY, now=False)

    def _compare(self, first: str | None, output: Path) -> None:
        """Warn if a resumed crawl writes to another output than at first."""
        if first is not None and Path(first) != output.resolve():
            logger.warning(
                "%s gets only pages that are found from now on: `tres export --run %s` also writes "
                "those in %s",
                *(output, self.path, first),
            )

    def booked(self, booking: Booking) -> None:
        """Add a booking to the file of a crawl without JOBDIR."""
        if self._writer is not None:
            self._save(self._writer.note, booking)

    @property
    def is_complete(self) -> bool:
        """Whether the file has all pages booked before the spider closed, with their texts."""
        return self._writer is not None and self._config.watch.texts

    def spider_closed(self, spider: Spider, reason: str) -> None:
        self.flush()  # others read the file when the engine has stopped
        self._reason = reason
        session = CrawlSession.of(self._crawler)
        ending = session.ending
        self._facts = {"left": ending.left(), "gone": ending.given_up()}
        self._facts["reach"] = str(session.crawl.outlook.at_end() or "")
        self._facts |= {"reserved": reserved} if (reserved := ending.reserved()) else {}

    def engine_stopped(self) -> None:
        if self._loop is not None:
            self._loop.stop()
        if self._writer is None:
            return
        self._note_health(None)  # the other processes have ended
        if self._writer is None:  # that has failed
            return
        labels = below(self._crawler.stats.get_stats(), WEB)
        facts = self._facts | ({"labels": json.dumps(labels)} if labels.get("pages") else {})
        facts |= self._final
        end = self._writer.close if self._job is None else self._writer.finish
        session = CrawlSession.of(self._crawler)
        pages, is_own = session.crawl.pages, not session.follows_all
        steps = self._writer.journal.steps
        writer = self._writer
        if not self._save(end, time(), self._reason, **facts):
            return
        self._warn(writer.holder)
        if self._job is None and (not steps or (is_own and not pages)):
            self.path.unlink()  # an empty file would only mislead
        elif self._config.watch.record and self._config.watch.report and pages:
            self._report()

    def note(self, name: str, value: str) -> None:
        """Write a value under a name into the file of a crawl without JOBDIR."""
        if self._writer is not None:
            self._save(self._writer.journal.note, name, value)

    def note_final(self, value: str) -> None:
        """Keep what the last model of a topic has made of the output, to be written at the end."""
        self._final = {FINAL: value}

    def _save(self, save: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Call what writes to the file; return whether that worked."""
        if self._job is not None:
            return self._job.write(save, *args, **kwargs)
        try:
            save(*args, **kwargs)
        except sqlite3.Error as error:
            logger.error(
                "The record %s cannot be written (%s): the crawl continues", self.path, error
            )
            assert self._writer is not None
            self._writer.journal.database.close()
            self._writer = None
            return False
        return True

    def _report(self) -> None:
        # Imported here because the templates are slow to import.
        from tres_scrapy.report.crawl_report import report_beside  # noqa: PLC0415

        try:
            logger.info("The report of the crawl is %s", report_beside(self.path))
        except (OSError, RecordError) as error:
            logger.error("The report of %s cannot be written: %s", self.path, error)

    def flush(self) -> None:
        """Write what was booked, so that others can read it."""
        if self._writer is None or not self._save(self._writer.flush, time()):
            return
        self._warn(self._writer.holder)
        if time() >= self._next_health:
            self._note_health(resident_memory())

    def _warn(self, holder: Holder | None) -> None:
        """Warn once about each site or body that gives most pages, unless that was asked for."""
        if holder is None or holder.reason:
            return
        about = SMALL if holder.doubt == SMALL else holder.site
        if about not in self._warned:
            self._warned.add(about)
            logger.warning("%s", sentence(holder))

    def _note_health(self, memory: int | None) -> None:
        now, found = time(), dict[str, int]()
        for name, value in self._crawler.stats.get_stats().items():
            if name.startswith(ANSWERS):
                kind = name.rpartition("/")[2].rpartition(".")[2]
                found[kind] = found.get(kind, 0) + value
        if self._writer is not None:
            self._save(self._writer.note_health, HealthPoint(now, memory, found))
        self._next_health = now + max(HEALTH, (now - self._begun) / NOTES)


def changed_of(config: Config, settings: BaseSettings) -> list[str]:
    """Return the names of the settings whose values are not the defaults of TRES."""
    defaults = vars(default_settings) | vars(own_settings)
    found = {name for name in SCRAPY if str(settings[name]) != str(defaults.get(name))}
    kept = [each.options for each in settings.values() if isinstance(each, Kept)]
    for options in (config, *kept):
        found |= dict(options.values().items() - type(options)().values().items()).keys()
    return sorted(found)


def settings_of(config: Config, settings: BaseSettings) -> dict[str, str]:
    """Return the settings that are set, as text."""
    values = {name: settings.get(name) for name in SCRAPY} | config.values()
    for kept in settings.values():
        if isinstance(kept, Kept):  # those of the spider's own program
            values |= kept.options.values()
    if values["TRES_DASHBOARD"] == 0:
        values["TRES_DASHBOARD"] = 1  # as it is given: any free port
    return {name: _text(value) for name, value in values.items() if value not in (None, (), "")}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if type(value) is tuple else str(value)
