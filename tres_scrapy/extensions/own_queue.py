"""Scrapy's scheduler for the requests that are not samples of the frontier."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any, Final, Self

from queuelib.queue import FifoDiskQueue, LifoDiskQueue
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.squeues import PickleFifoDiskQueue, PickleLifoDiskQueue
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from tres_scrapy.downloader.request import PROXIES, dump_request, load_request

WEB: Final = frozenset({"http", "https"})
# Scrapy's names in JOBDIR: requests, which of its queues hold some, and fingerprints.
QUEUE, STATE, SEEN = "requests.queue", "active.json", "requests.seen"

logger = logging.getLogger(__name__)


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
        self.discard()
        return opened

    def discard(self) -> None:
        """Let the next crawl in the same JOBDIR begin without what is kept now."""
        if self.dqdir is not None:
            Path(self.dqdir, STATE).unlink(missing_ok=True)


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
        parts = urlparse_cached(request)
        if parts.scheme not in WEB or "@" in parts.netloc or not _is_kept(request):
            raise ValueError(f"{request} stays in memory: the file would not hold all of it")
        try:
            text = dump_request(request, self._spider)
        except TypeError as error:
            raise ValueError(str(error)) from None  # Scrapy then keeps it in memory
        super().push(text.encode())  # type: ignore[misc]

    def pop(self) -> Request | None:
        while (text := super().pop()) is not None:  # type: ignore[misc]
            if (request := self._loaded(text)) is not None:
                return request
        return None

    def peek(self) -> Request | None:
        text = super().peek()  # type: ignore[misc]
        return None if text is None else self._loaded(text)

    def _loaded(self, text: bytes) -> Request | None:
        try:
            return load_request(text.decode(), self._spider)
        except ValueError as error:
            logger.error("A request in JOBDIR is left out: %s", error)
            return None


def _is_kept(request: Request) -> bool:
    return request.meta.keys().isdisjoint(PROXIES)


class JsonLifoDiskQueue(_JsonQueue, LifoDiskQueue):  # type: ignore[misc]
    """The last request comes first."""


class JsonFifoDiskQueue(_JsonQueue, FifoDiskQueue):  # type: ignore[misc]
    """The first request comes first."""


_IN_PLACE_OF: Final = {
    PickleLifoDiskQueue: JsonLifoDiskQueue,
    PickleFifoDiskQueue: JsonFifoDiskQueue,
}


def keep_as_json(settings: BaseSettings) -> None:
    """Replace Scrapy's two queues in files that load pickles."""
    for name in ("SCHEDULER_DISK_QUEUE", "SCHEDULER_START_DISK_QUEUE"):
        ours = _IN_PLACE_OF.get(load_object(settings[name])) if settings[name] else None
        if ours is not None:
            asked = settings.getpriority(name) or 0
            settings.set(name, ours, max(asked, SETTINGS_PRIORITIES["addon"]))
