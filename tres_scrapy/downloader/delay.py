"""Delays between fetches: hosts of one IP address share one, robots.txt may ask for a longer."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser

from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed_setting
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.page.robots import EVERYONE

logger = logging.getLogger(__name__)


class SharedAddresses:
    """Gives all hosts of an address the downloader slot of the host that was asked first.

    A machine with hundreds of sites would otherwise get a request of each at once. Behind a proxy,
    which resolves names, addresses are not known.
    """

    def __init__(self) -> None:
        self._slots: dict[str, str] = {}  # by host
        self._owners: dict[str, str] = {}  # the first host, by address
        self._hosts: dict[str, list[str]] = {}  # by slot

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not Config.of(crawler.settings).download.address_delay:
            raise NotConfigured
        return cls()

    def note(self, host: str, addresses: Iterable[str]) -> None:
        """Note the addresses of a host; those of a host that is known do not count."""
        known = sorted(addresses)
        if host not in self._slots and known:
            slot = self._slots[host] = self._owners.setdefault(known[0], host)
            self._hosts.setdefault(slot, []).append(host)

    def slot_of(self, host: str) -> str:
        """Return the key of the downloader slot of a host."""
        return self._slots.get(host, host)

    def hosts_of(self, slot: str) -> list[str]:
        """Return the hosts of a slot that are known to share it."""
        return self._hosts.get(slot, [])


class CrawlDelay:
    """Raises the delay of a host's downloader slot to the Crawl-delay of its robots.txt.

    A host that asks for more than TRES_MAX_CRAWL_DELAY is skipped: a waiting request would take up
    one of CONCURRENT_REQUESTS. A project's own spider asks it all the same, with the delays of the
    project.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._asked: dict[str, float] = {}  # seconds, by slot
        settings = crawler.settings
        self._max_delay = Config.of(settings).download.max_crawl_delay

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        extension = cls(crawler)
        crawler.signals.connect(extension.robots_parsed, signal=signals.robots_parsed)
        crawler.signals.connect(extension.response_downloaded, signal=signals.response_downloaded)
        return extension

    def robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        asked = robotparser.crawl_delay(EVERYONE)  # the parser knows the rules for us only
        if not asked:
            return
        if asked > self._max_delay:
            ours = _belongs_here(self._crawler.spider)
            logger.info(
                "%s asks for %g s between fetches, more than %s: %s",
                request.url,
                asked,
                typed_setting("max_crawl_delay", f"{self._max_delay:g}"),
                "host skipped" if ours else "DOWNLOAD_DELAY is used instead",
            )
            if not ours:
                return
            robotparser.allowed = lambda url, user_agent: False  # type: ignore[method-assign]
            return
        downloader = self._crawler.engine.downloader
        key = self._slot_of(request)
        slot = downloader.slots.get(key)
        settings = downloader.per_slot_settings.setdefault(key, {})
        delay = max(asked, settings.get("delay", 0), slot.delay if slot is not None else 0)
        # Scrapy drops an idle slot after a minute and makes a new one from these settings.
        settings["delay"] = self._asked[key] = delay
        if slot is not None:
            slot.delay = delay

    def _slot_of(self, request: Request) -> str:
        shared = self._crawler.get_extension(SharedAddresses)
        key: str = self._crawler.engine.downloader.get_slot_key(request)
        return shared.slot_of(key) if shared is not None else key

    def response_downloaded(self, request: Request) -> None:
        """Undo a delay of AutoThrottle, which runs first, that is shorter than robots.txt asks."""
        key = request.meta.get("download_slot", "")
        slot = self._crawler.engine.downloader.slots.get(key)
        if slot is not None and key in self._asked:
            slot.delay = max(slot.delay, self._asked[key])


def _belongs_here(spider: Spider | None) -> bool:
    """Return whether a spider belongs to this package, or follows links as `tres` does."""
    return follows_links(spider) or type(spider).__module__.startswith("tres_scrapy.")
