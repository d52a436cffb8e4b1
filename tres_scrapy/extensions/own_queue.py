"""What Scrapy itself keeps, in JOBDIR as JSON: a project's requests, their filter, spider.state.

Scrapy's own files hold pickles, which can run code when they are loaded.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any, Final, Self

from queuelib.queue import FifoDiskQueue, LifoDiskQueue
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import NotConfigured
from scrapy.extensions.spiderstate import SpiderState
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.squeues import PickleFifoDiskQueue, PickleLifoDiskQueue
from scrapy.utils.conf import build_component_list
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter
from twisted.internet.defer import Deferred

from tres_scrapy.downloader.request import PROXIES, dump_request, follows_links, load_request
from tres_scrapy.url.whole_file import whole_file

WEB: Final = frozenset({"http", "https"})
# Scrapy's names in JOBDIR: requests, which of its queues hold some, and fingerprints.
QUEUE, STATE, SEEN = "requests.queue", "active.json", "requests.seen"
SPIDER_STATE: Final = "spider.state.json"

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
        is_kept = request.meta.keys().isdisjoint(PROXIES)
        if parts.scheme not in WEB or "@" in parts.netloc or not is_kept:
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


class OwnDupeFilter:
    """Holds the filter of DUPEFILTER_CLASS; `is_default` if it is the one of Scrapy's defaults."""

    def __init__(
        self, dupefilter: BaseDupeFilter, spider: Spider, *, is_default: bool = False
    ) -> None:
        self.filter = dupefilter
        self.is_default = is_default
        self._spider = spider

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        wanted = load_object(crawler.settings["DUPEFILTER_CLASS"])
        is_default = (
            wanted is RFPDupeFilter and type(crawler.request_fingerprinter) is RequestFingerprinter
        )
        assert crawler.spider is not None
        keeps = is_default and not follows_links(crawler.spider)
        if keeps and crawler.settings["JOBDIR"]:
            discard_unclean(crawler.settings["JOBDIR"])
        owner = crawler if keeps else _without_job(crawler)
        return cls(build_from_crawler(wanted, owner), crawler.spider, is_default=is_default)

    def remember(self, urls: Iterable[str]) -> None:
        """Mark the URLs of an interrupted crawl as seen, unless the frontier does so."""
        for url in urls if not self.is_default else ():
            self.filter.request_seen(Request(url))

    def drops(self, request: Request) -> bool:
        """Return whether the project's own filter drops a request; if so, let it log that."""
        if request.dont_filter or not self.filter.request_seen(request):
            return False
        self.log(request)
        return True

    def log(self, request: Request) -> None:
        """Log and count that a request is dropped as a duplicate, as Scrapy does."""
        self.filter.log(request, self._spider)


def _without_job(crawler: Crawler) -> Crawler:
    """Return the crawler as if it had no JOBDIR.

    A page that was not booked when the crawl was killed is fetched again. If the filter had saved
    the links of that page in JOBDIR, they would count as seen and be lost.
    """
    alike = copy(crawler)
    alike.settings = Settings({**crawler.settings, "JOBDIR": None})
    return alike


class JsonSpiderState:
    """Gives the spider the `state` that the last crawl in the same JOBDIR left.

    A value that JSON cannot hold is left out when the crawl ends; the log names its key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        jobdir = crawler.settings["JOBDIR"]
        if not jobdir or _has_scrapys(crawler):
            raise NotConfigured
        extension = cls(Path(jobdir, SPIDER_STATE))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        state: dict[str, Any] = {}
        if self._path.exists():
            try:
                state = dict(json.loads(self._path.read_text(encoding="utf-8")))
            except (OSError, TypeError, ValueError) as error:
                logger.error("spider.state is empty, %s cannot be read: %s", self._path, error)
        spider.state = state  # type: ignore[attr-defined]

    def spider_closed(self, spider: Spider) -> None:
        state = getattr(spider, "state", {})
        kept = {key: value for key, value in state.items() if _is_json(key, value)}
        if lost := [repr(key) for key in state if key not in kept]:
            logger.warning("JSON cannot hold these values of spider.state: %s", ", ".join(lost))
        if kept or self._path.exists():
            with whole_file(self._path) as file:
                file.write(json.dumps(kept).encode())


def _is_json(key: object, value: object) -> bool:
    try:
        return bool(json.loads(json.dumps({key: value})) == {key: value})
    except (TypeError, ValueError):
        return False


def _has_scrapys(crawler: Crawler) -> bool:
    """Return whether the project has turned Scrapy's extension on itself."""
    components = crawler.settings.get_component_priority_dict_with_base("EXTENSIONS")
    return any(load_object(each) is SpiderState for each in build_component_list(components))
