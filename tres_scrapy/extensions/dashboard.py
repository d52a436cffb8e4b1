"""The extension that serves the live page of a crawl on this machine."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from socket import AF_INET, SO_REUSEADDR, SOL_SOCKET, socket
from time import monotonic
from typing import Any, Final, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named, typed
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.crawl.pace import Pace
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.extensions.control import Control
from tres_scrapy.extensions.ending import IN_WORDS
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.topic_source import topic_folder
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.resource import LivePage, site
from tres_scrapy.live.token import HOSTS, PageAccess
from tres_scrapy.live.view import View

WATCHED: Final = 5.0  # seconds since its last question that a page counts as open
FAREWELL: Final = 3.0  # seconds in which an open page asks for the end of the crawl
SENDING: Final = 0.3  # seconds for the answer
ANSWERS: Final = ".answers.txt"  # of the file beside the record

logger = logging.getLogger(__name__)


class Dashboard:
    """Serves the live page on this machine while the spider is open, and logs its address."""

    def __init__(self, crawler: Crawler, config: Config, listening: socket) -> None:
        self._crawler = crawler
        self._config = config
        self._socket = listening
        self._port: Any = None
        self._page: LivePage | None = None
        self._status: CrawlStatus | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.watch.dashboard is None:
            raise NotConfigured
        if not config.watch.record:
            raise ConfigError(
                f"{named('TRES_DASHBOARD')} shows the record of the run: it needs "
                f"{typed('record', True)}"
            )
        dashboard = cls(crawler, config, listening(config.watch.dashboard))
        crawler.signals.connect(dashboard.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(dashboard.spider_closed, signal=signals.spider_closed)
        return dashboard

    def spider_opened(self, spider: Spider) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        session = self._crawler.get_extension(CrawlSession)
        recorder = self._crawler.get_extension(Recorder)
        if session is None or recorder is None:
            return
        access, control = PageAccess(), Control(self._crawler, session)
        answering = self._answering(session, recorder)
        session.listeners.append(partial(_note, answering))
        status = self._status = CrawlStatus(self._config, control, session)
        running: Any = reactor
        self._page = LivePage(access, control, View(recorder.path, answering), status, running)
        logger.info("Live page: %s", access.address(self._socket.getsockname()[1]))
        factory = site(self._page)
        self._port = running.adoptStreamPort(self._socket.fileno(), AF_INET, factory)
        self._socket.close()

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._status is not None:
            await self._status.tell_end(reason, self._files())
        if self._port is not None:
            self._port.stopListening()
        if self._page is not None:
            self._page.close()

    def _answering(self, session: CrawlSession, recorder: Recorder) -> Answering:
        words = self._config.words
        if words.file is None:
            effect = "Noted for a later training, `tres train --answers`, in"
            return Answering(recorder.path.with_suffix(ANSWERS), effect)
        folder = topic_folder(session.output, self._crawler.settings["JOBDIR"])
        effect = "The topic learns it with the next pages; it stays in"
        asked = folder.read_questions
        return Answering(folder.answers, effect, asked, folder.find_pages, others=words.answers)

    def _files(self) -> list[str]:
        """Return the paths that the crawl leaves."""
        session = self._crawler.get_extension(CrawlSession)
        recorder = self._crawler.get_extension(Recorder)
        assert session is not None
        assert recorder is not None
        found = [session.output] if session.output.is_file() else []
        if self._config.watch.report and session.crawl.pages:
            found.append(recorder.path.with_suffix(".html"))
        return [str(path) for path in (*found, recorder.path)]


def _note(answering: Answering, booking: Booking, visit: Visit | None) -> None:
    if visit is not None:
        page = visit.judged.page
        answering.note(page.url, page.title, page.text)


def listening(port: int) -> socket:
    """Listen on a local port, 0 for any free one; raise ConfigError if it is taken.

    Then the crawl ends before it starts.
    """
    listener = socket()
    try:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind((HOSTS[0], port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(f"{named('TRES_DASHBOARD')} {port}: {error.strerror}") from None
    listener.setblocking(False)
    return listener


class CrawlStatus:
    """Collects the numbers at the top of the live page."""

    def __init__(self, config: Config, control: Control, session: CrawlSession) -> None:
        self._control = control
        self._session = session
        self._pace = Pace(session.crawl.pages, monotonic())
        self._started = monotonic()
        self._fixed = {"topic": config.topic, "policy": config.policy}
        self._asked = -WATCHED  # when a page last asked
        self._end: dict[str, Any] | None = None
        self._told = asyncio.Event()

    def __call__(self) -> dict[str, Any]:
        """Return the numbers by name."""
        crawl, now = self._session.crawl, monotonic()
        self._asked = now
        if self._end is not None:
            self._told.set()
        self._pace.note(crawl.pages, now)
        figures, cap = crawl.figures(), crawl.store.ledger.cap
        return self._fixed | {
            "status": self._control.state,
            "offline": self._session.health.in_doubt,
            "end": self._end,
            "pages": crawl.pages,
            "limit": crawl.limit,
            "relevant": crawl.relevant,
            "harvest": crawl.harvest_rate,
            "domains": figures["relevant_domains"],
            "frontier": figures["frontier_size"],
            "leaves": figures.get("leaves"),
            "phase": figures.get("phase"),
            "failures": crawl.failures.total(),
            "under_way": self._control.requests_under_way,
            "rate": self._pace.recent,
            "left": self._pace.left(crawl.limit),
            "elapsed": now - self._started,
            "max": None if cap is None else str(cap),
        }

    async def tell_end(self, reason: str, files: list[str]) -> None:
        """Wait until an open page has asked once more, for why the crawl ended and what it left."""
        self._end = {"reason": IN_WORDS.get(reason, reason), "files": files}
        if monotonic() - self._asked < WATCHED:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), FAREWELL)
                await asyncio.sleep(SENDING)
