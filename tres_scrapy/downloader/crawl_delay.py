"""The extension that obeys the Crawl-delay of robots.txt, which Scrapy ignores."""

from __future__ import annotations

import logging
from typing import Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import robotstxt
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import ProtegoRobotParser, RobotParser

from tres_scrapy.config.config import Config

logger = logging.getLogger(__name__)


class CrawlDelay:
    """Raises the delay of a host's downloader slot to the Crawl-delay of its robots.txt.

    A host that asks for more than TRES_MAX_CRAWL_DELAY is skipped: a waiting request would take up
    one of CONCURRENT_REQUESTS. A robots.txt that cannot be fetched is logged in one line, without
    a traceback, because many hosts are dead.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._asked: dict[str, float] = {}  # seconds, by slot
        settings = crawler.settings
        self._max_delay = Config.of(settings).download.max_crawl_delay
        self._user_agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        extension = cls(crawler)
        crawler.signals.connect(extension.robots_parsed, signal=signals.robots_parsed)
        crawler.signals.connect(extension.response_downloaded, signal=signals.response_downloaded)
        robotstxt.logger.addFilter(_without_traceback)
        return extension

    def robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        if not isinstance(robotparser, ProtegoRobotParser):
            return  # Scrapy's other parsers ignore Crawl-delay
        asked = robotparser.rp.crawl_delay(self._user_agent)
        if not asked:
            return
        if asked > self._max_delay:
            logger.info(
                "%s asks for %g s between fetches, more than TRES_MAX_CRAWL_DELAY: host skipped",
                *(request.url, asked),
            )
            robotparser.allowed = lambda url, user_agent: False  # type: ignore[method-assign]
            return
        downloader = self._crawler.engine.downloader
        key = downloader.get_slot_key(request)
        slot = downloader.slots.get(key)
        settings = downloader.per_slot_settings.setdefault(key, {})
        delay = max(asked, settings.get("delay", 0), slot.delay if slot is not None else 0)
        # Scrapy drops an idle slot after a minute and makes a new one from these settings.
        settings["delay"] = self._asked[key] = delay
        if slot is not None:
            slot.delay = delay

    def response_downloaded(self, request: Request) -> None:
        """Undo a delay of AutoThrottle, which runs first, that is shorter than robots.txt asks."""
        key = request.meta.get("download_slot", "")
        slot = self._crawler.engine.downloader.slots.get(key)
        if slot is not None and key in self._asked:
            slot.delay = max(slot.delay, self._asked[key])


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = None
    return True
