"""Delays between fetches: hosts of an IP address share one; each may ask for a longer one."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable
from functools import partial
from time import monotonic
from typing import Final, Self

from scrapy import Request, signals
from scrapy.core.downloader import Slot
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed_setting
from tres_scrapy.downloader.engine import before_end, is_closing
from tres_scrapy.downloader.request import FOR_SAMPLE, LEASE, ROBOTS_TXT, follows_links
from tres_scrapy.page.robots import EVERYONE

MOMENT: Final = 0.1  # seconds for which a sample waits outside the frontier
TURN: Final = 1.0  # seconds after which the next host of an address is tried

logger = logging.getLogger(__name__)


class HeldError(IgnoreRequest):
    """Raised when a sample is to wait in the frontier for its host or for its address."""

    def __init__(self, host: str, pause: float) -> None:
        super().__init__(f"{host} is asked again in {pause:g} s")
        self.host = host
        self.pause = pause  # seconds


class SharedAddresses:
    """Gives all hosts of an address the downloader slot of the host that was asked first.

    A machine with hundreds of sites would otherwise get a request of each at once. Behind a proxy,
    which resolves names, addresses are not known.
    """

    def __init__(self) -> None:
        self._slots: dict[str, str] = {}  # by host
        self._owners: dict[str, str] = {}  # the first host, by address
        self._hosts: dict[str, list[str]] = {}  # by slot

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
    """Keeps the Crawl-delay of each host's robots.txt, whatever slot of the downloader it shares.

    Samples wait in the frontier (`delay_of`, HeldError), other requests in the middleware. A host
    that asks for more than TRES_MAX_CRAWL_DELAY is skipped: a waiting request would take up one of
    CONCURRENT_REQUESTS. A project's own spider asks it all the same, with the project's delays.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._asked: dict[str, float] = {}  # seconds, by host
        self._free_at: dict[str, float] = {}  # by host
        self._max_delay = Config.of(crawler.settings).download.max_crawl_delay

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        extension = cls(crawler)
        crawler.signals.connect(extension.robots_parsed, signal=signals.robots_parsed)
        crawler.signals.connect(extension.response_downloaded, signal=signals.response_downloaded)
        return extension

    def delay_of(self, host: str) -> float:
        """Return the seconds between two requests that a host asks for, 0 if it does not."""
        return self._asked.get(host, 0.0)

    def robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        asked = robotparser.crawl_delay(EVERYONE)  # the parser knows the rules for us only
        if not asked:
            return
        if asked > self._max_delay:
            spider = self._crawler.spider
            ours = follows_links(spider) or type(spider).__module__.startswith("tres_scrapy.")
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
        host = urlparse_cached(request).hostname or ""
        self._asked[host] = max(asked, self.delay_of(host))
        self._free_at[host] = monotonic() + self._asked[host]

    def response_downloaded(self, request: Request) -> None:
        """Count the delay from the moment at which the last request was sent, not handed out."""
        host = urlparse_cached(request).hostname or ""
        slot = self._crawler.engine.downloader.slots.get(request.meta.get("download_slot", ""))
        if host in self._asked and slot is not None:
            until = slot.lastseen + self._asked[host]
            self._free_at[host] = max(until, self._free_at.get(host, 0.0))

    def reserve(self, host: str, *, patience: float) -> float:
        """Return the seconds until a request to a host may be sent, which is then the last one.

        If that is more than `patience` seconds, nothing is reserved.
        """
        now = monotonic()
        pause = max(0.0, self._free_at.get(host, 0.0) - now)
        if pause <= patience and host in self._asked:
            self._free_at[host] = now + pause + self._asked[host]
        return pause


class CrawlDelayMiddleware:
    """Lets requests wait for the Crawl-delay of their host, after robots.txt is known.

    A sample of the frontier that would wait for more than a moment goes back to it, unless it is
    the only request: it would hold its address meanwhile. So does the sample of a host whose
    address, found only now, answers another host: silent hosts of one address wait their turn. All
    others wait here, for as long as they would in the slot of the downloader, to which they count.
    """

    def __init__(self, crawler: Crawler, delay: CrawlDelay) -> None:
        self._crawler = crawler
        self._delay = delay
        self._returns = crawler.settings.getint("CONCURRENT_REQUESTS") != 1

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        delay = crawler.get_extension(CrawlDelay)
        if delay is None:
            raise NotConfigured
        return cls(crawler, delay)

    async def process_request(self, request: Request) -> None:
        host = urlparse_cached(request).hostname or ""
        key = request.meta.get("download_slot", host)
        slot = self._crawler.engine.downloader.slots.get(key)
        is_sample = LEASE in request.meta or request.meta.get(FOR_SAMPLE, False)
        returns = self._returns and is_sample and follows_links(self._crawler.spider)
        if returns and key != host and slot is not None and _is_taken(slot):
            raise HeldError(host, TURN)
        if ROBOTS_TXT in request.meta:
            return
        pause = self._delay.reserve(host, patience=MOMENT if returns else math.inf)
        if returns and pause > MOMENT:
            raise HeldError(host, pause)
        if pause:
            active = set() if slot is None else slot.active  # Scrapy's queue sends to others first
            active.add(request)
            try:
                ends = partial(is_closing, self._crawler.engine)
                await before_end(ends, asyncio.sleep(pause))
            finally:
                active.discard(request)


def _is_taken(slot: Slot) -> bool:
    """Return whether a request to a slot of the downloader would wait for another to end."""
    return bool(slot.free_transfer_slots() <= len(slot.queue))
