"""The extension that says how the crawl goes."""

from __future__ import annotations

import logging
from time import monotonic
from typing import Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy.config import Config
from tres_scrapy.extensions.learner import Learner

logger = logging.getLogger(__name__)


class Progress:
    """Logs a line every TRES_PROGRESS_INTERVAL seconds and one at the end; 0 means only that."""

    def __init__(self, crawler: Crawler, interval: float) -> None:
        self._crawler = crawler
        self._interval = interval
        self._started, self._before = monotonic(), 0  # pages of an interrupted crawl
        self._loop: AsyncioLoopingCall | LoopingCall | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, Config.from_settings(crawler.settings).progress_interval)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        self._started = monotonic()
        if (learner := self._crawler.get_extension(Learner)) is not None:
            self._before = learner.crawl.pages
        if self._interval:
            self._loop = loop = create_looping_call(self._log)
            loop.start(self._interval, now=False)

    def spider_closed(self, spider: Spider) -> None:
        if self._loop is not None:
            self._loop.stop()
        self._log(closing=True)

    def _log(self, *, closing: bool = False) -> None:
        learner = self._crawler.get_extension(Learner)
        if learner is None:
            return
        crawl, figures = learner.crawl, learner.crawl.figures()
        rate = (crawl.pages - self._before) / max(monotonic() - self._started, 1e-9)
        of_limit = f"/{crawl.limit}" if crawl.limit is not None else ""
        left = ""
        if crawl.limit is not None and rate and not closing:
            left = f", {(crawl.limit - crawl.pages) / rate:.0f} s left"
        logger.info(
            "%d%s pages, harvest rate %.1f %%, %d relevant domains, frontier %d%s, %.1f pages/s%s",
            crawl.pages,
            of_limit,
            100 * crawl.harvest_rate,
            figures["relevant_domains"],
            figures["frontier_size"],
            f" in {figures['leaves']} leaves ({figures['phase']})" if "leaves" in figures else "",
            rate,
            left,
        )
