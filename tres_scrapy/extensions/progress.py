"""The extension that logs the progress of the crawl."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from time import monotonic
from typing import Final, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from tqdm import tqdm
from twisted.internet.task import LoopingCall

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.pace import Pace
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.terminal import TerminalLine
from tres_scrapy.settings import USER_AGENT
from tres_scrapy.url.message import plural

_REDRAW: Final = 1.0  # seconds

logger = logging.getLogger(__name__)


class Progress:
    """Logs a line every TRES_PROGRESS_INTERVAL seconds, if not 0, and one at the end.

    In a terminal, a single line redrawn every second replaces those log lines. A
    shard has none: its crawl draws one for all.
    """

    def __init__(self, crawler: Crawler, interval: float, *, live: bool) -> None:
        self._crawler = crawler
        self._interval = interval
        self._pace = Pace(0, monotonic())
        self._live = live
        self._line: TerminalLine | None = None
        self._loops: list[AsyncioLoopingCall | LoopingCall] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        live = sys.stderr.isatty() and not config.shard.count
        extension = cls(crawler, config.watch.progress_interval, live=live)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        session = self._crawler.get_extension(CrawlSession)
        if session is None:
            return
        self._pace = Pace(session.crawl.pages, monotonic())
        settings = self._crawler.settings
        if settings["USER_AGENT"] == USER_AGENT and Config.of(settings).web.kind is None:
            logger.warning(
                "USER_AGENT has no contact: set your own, so that the owners of sites can reach "
                "you, for example -s USER_AGENT='my-crawler (+https://example.org/crawl)'"
            )
        intervals = []
        if self._live:  # not earlier: Scrapy opens its log more than once
            self._line = TerminalLine(sys.stderr)
            intervals.append((self._draw, _REDRAW))
        if self._interval and not (self._line and self._line.shares_log):
            intervals.append((self._log, self._interval))
        for call, interval in intervals:
            self._loops.append(create_looping_call(call, session.crawl))
            self._loops[-1].start(interval, now=False)

    def spider_closed(self, spider: Spider) -> None:
        for loop in self._loops:
            loop.stop()
        if self._line is not None:
            self._line.close()
        if (session := self._crawler.get_extension(CrawlSession)) is not None:
            self._log(session.crawl, closing=True)

    def _log(self, crawl: Crawl, *, closing: bool = False) -> None:
        figures = crawl.figures()
        self._pace.note(crawl.pages, monotonic())
        of_limit = f"/{crawl.limit}" if crawl.limit is not None else ""
        left = None if closing else self._pace.left(crawl.limit)
        pace = self._pace.overall if closing else self._pace.recent
        since = " since this start" if closing and self._pace.is_resumed else ""
        state = "" if closing else self._state()
        logger.info(
            "%d%s pages, harvest rate %.1f %%, %d %s, frontier %d%s, %s%s",
            crawl.pages,
            of_limit,
            100 * crawl.harvest_rate,
            figures["relevant_domains"],
            plural(float(figures["relevant_domains"]), "relevant domain"),
            figures["frontier_size"],
            f"{_leaves(figures)} ({figures['phase']})" if "leaves" in figures else "",
            state or f"{pace:.1f} pages/s{since}",
            "" if left is None or state else f", {left:.0f} s left",
        )
        if closing and (waited := crawl.patience.waited) >= 1:
            logger.info(
                "Request slots were left idle for %.0f s in all%s, for better hosts (hurry)",
                waited,
                since,
            )

    def _draw(self, crawl: Crawl) -> None:
        self._pace.note(crawl.pages, monotonic())
        if self._line is not None:
            self._line.show(self._state(), *described(crawl, self._pace))

    def _state(self) -> str:
        """Return why no requests are sent, "" if they are."""
        engine, session = self._crawler.engine, self._crawler.get_extension(CrawlSession)
        if engine is not None and engine.paused:
            return "paused"
        return "network gone" if session is not None and session.health.in_doubt else ""


def described(crawl: Crawl, pace: Pace) -> list[str]:
    """Return the progress of a crawl as short texts, the most important first."""
    figures, left = crawl.figures(), pace.left(crawl.limit)
    of_limit = "" if crawl.limit is None else f"/{crawl.limit:,}"
    return [
        f"{crawl.pages:,}{of_limit} pages",
        "" if left is None else f"{tqdm.format_interval(left)} left",
        f"harvest {100 * crawl.harvest_rate:.1f} %",
        f"domains {figures['relevant_domains']:,}",
        f"{pace.recent:.1f} pages/s",
        f"frontier {figures['frontier_size']:,}{_leaves(figures)}",
        "waits for better hosts" if crawl.patience.waiting else "",
    ]


def _leaves(figures: Mapping[str, float | str]) -> str:
    count = figures.get("leaves")
    return "" if count is None else f" in {count:,} {plural(float(count), 'leaf')}"
