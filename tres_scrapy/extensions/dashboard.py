"""The extension that serves the live page of a crawl on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from socket import socket
from typing import Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.extensions.control import Control
from tres_scrapy.extensions.progress import state_of
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.topic_source import topic_folder
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.resource import LivePage, listening
from tres_scrapy.live.state import Monitor
from tres_scrapy.live.view import TICK, PageState, View
from tres_scrapy.report.record_path import ENDS


class Dashboard:
    """Serves the live page on this machine while the spider is open, and logs its address."""

    def __init__(self, crawler: Crawler, config: Config, listener: socket) -> None:
        self._crawler = crawler
        self._config = config
        self._socket = listener
        self._page: LivePage | None = None
        self._state: PageState | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.watch.dashboard is None:
            raise NotConfigured
        dashboard = cls(crawler, config, listening(config.watch))
        crawler.signals.connect(dashboard.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(dashboard.spider_closed, signal=signals.spider_closed)
        return dashboard

    def spider_opened(self, spider: Spider) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        session = CrawlSession.of(self._crawler)
        recorder = self._crawler.get_extension(Recorder)
        if recorder is None:
            return
        control = Control(self._crawler, session)
        answering = self._answering(session, recorder)

        def note(booking: Booking) -> None:
            if booking.judged is not None:
                page = booking.judged.page
                answering.note(page.url, page.title, page.text)

        session.listeners.append(note)
        monitor = Monitor(state_of(session))

        def look() -> Monitor:
            return monitor.take(state_of(session, under_way=control.requests_under_way))

        self._state = PageState(self._config, control, look)
        view = View(recorder.path, answering)
        self._page = LivePage(control, view, self._state, reactor)
        self._page.serve(self._socket)

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._page is None or self._state is None:
            return
        self._state.end(ENDS.get(reason, reason), self._files())
        while not self._state.is_told:
            await asyncio.sleep(TICK)
        self._page.stop()
        self._page.close()

    def _answering(self, session: CrawlSession, recorder: Recorder) -> Answering:
        words = self._config.words
        if self._config.judges > 1:
            return Answering.beside(recorder.path)
        folder = topic_folder(session.output, self._crawler.settings["JOBDIR"])
        effect = "The topic learns it with the next pages; it stays in"
        asked = folder.read_questions
        return Answering(folder.answers, effect, asked, folder.find_pages, others=words.answers)

    def _files(self) -> list[Path]:
        """Return the files that the crawl leaves."""
        session = CrawlSession.of(self._crawler)
        recorder = self._crawler.get_extension(Recorder)
        assert recorder is not None
        found = [session.output] if session.output.is_file() else []
        if self._config.watch.report and session.crawl.pages:
            found.append(recorder.path.with_suffix(".html"))
        return [*found, recorder.path]
