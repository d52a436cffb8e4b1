"""Scrapy's scheduler for the requests that are not samples of the frontier."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final, Self

from queuelib.queue import FifoDiskQueue, LifoDiskQueue
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from tres_scrapy.downloader.request import dump_request, load_request

# Scrapy's names in JOBDIR: requests, which of its queues hold some, and fingerprints.
QUEUE, STATE, SEEN = "requests.queue", "active.json", "requests.seen"


class OwnQueue(Scheduler):
    """Scrapy's scheduler; with `jobdir` it keeps its requests there over a clean stop."""

    @classmethod
    def with_filter(
        cls, crawler: Crawler, dupefilter: BaseDupeFilter, jobdir: str | None = None
    ) -> Self:
        """Return the queue that a crawler's settings ask for, with its duplicate filter."""
        settings = crawler.settings
        return cls(
            dupefilter=dupefilter,
            jobdir=jobdir,
            dqclass=load_object(settings["SCHEDULER_DISK_QUEUE"]),
            mqclass=load_object(settings["SCHEDULER_MEMORY_QUEUE"]),
            logunser=settings.getbool("SCHEDULER_DEBUG"),
            stats=crawler.stats,
            pqclass=load_object(settings["SCHEDULER_PRIORITY_QUEUE"]),
            crawler=crawler,
        )

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the queue; its state is written again when the crawl ends."""
        opened = super().open(spider)
        if self.dqdir is not None:
            Path(self.dqdir, STATE).unlink(missing_ok=True)
        return opened


def discard_unclean(jobdir: str) -> None:
    """Remove what Scrapy's queue and filter left in JOBDIR, unless the last crawl ended cleanly.

    After a kill they do not agree: what the filter has seen, the queue has lost.
    """
    queue = Path(jobdir, QUEUE)
    if not Path(queue, STATE).exists():
        shutil.rmtree(queue, ignore_errors=True)
        Path(jobdir, SEEN).unlink(missing_ok=True)


class _JsonQueue:
    """Keeps requests as JSON in a file: to load a pickle could run code."""

    def __init__(self, crawler: Crawler, key: str) -> None:
        Path(key).parent.mkdir(parents=True, exist_ok=True)
        super().__init__(key)  # type: ignore[call-arg]
        assert crawler.spider is not None
        self._spider = crawler.spider

    @classmethod
    def from_crawler(cls, crawler: Crawler, key: str, *_: Any, **__: Any) -> Self:
        return cls(crawler, key)

    def push(self, request: Request) -> None:
        try:
            text = dump_request(request, self._spider)
        except TypeError as error:
            raise ValueError(str(error)) from None  # Scrapy then keeps it in memory
        super().push(text.encode())  # type: ignore[misc]

    def pop(self) -> Request | None:
        return self._loaded(super().pop())  # type: ignore[misc]

    def peek(self) -> Request | None:
        return self._loaded(super().peek())  # type: ignore[misc]

    def _loaded(self, text: bytes | None) -> Request | None:
        return None if text is None else load_request(text.decode(), self._spider)


class JsonLifoDiskQueue(_JsonQueue, LifoDiskQueue):  # type: ignore[misc]
    """The last request comes first."""


class JsonFifoDiskQueue(_JsonQueue, FifoDiskQueue):  # type: ignore[misc]
    """The first request comes first."""


_IN_PLACE_OF: Final = {
    "scrapy.squeues.PickleLifoDiskQueue": JsonLifoDiskQueue,
    "scrapy.squeues.PickleFifoDiskQueue": JsonFifoDiskQueue,
}


def keep_as_json(settings: BaseSettings) -> None:
    """Replace Scrapy's default queues, which load pickles; queues that a project sets stay."""
    for name in ("SCHEDULER_DISK_QUEUE", "SCHEDULER_START_DISK_QUEUE"):
        ours = _IN_PLACE_OF.get(settings[name])
        if ours is not None and settings.getpriority(name) == SETTINGS_PRIORITIES["default"]:
            settings.set(name, ours, "addon")
