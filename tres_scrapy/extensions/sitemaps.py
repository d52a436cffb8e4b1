"""The extension that reads the sitemaps and feeds of hosts that gave a relevant page."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from time import monotonic, time
from typing import Any, Final, Self

import numpy as np
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.downloader.engine import wake
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.admission import Scope
from tres_scrapy.frontier.host import host_of, origin_of
from tres_scrapy.page.sitemap import INDEX
from tres_scrapy.topic.judge import Source
from tres_scrapy.url.canonical import canonicalise, domain_of

FILES: Final = 10  # most sitemaps and feeds of a host
HOSTS: Final = 5  # most hosts of a domain that are asked
AT_ONCE: Final = 4  # hosts
PAUSE: Final = 0.5  # seconds between looks whether a paused crawl goes on, or a rest is over
LONG_PAUSE: Final = 60.0  # the same, until a site opens
OF_PAGES: Final = frozenset({"allow", "max_per_path"})  # rules of the scope
NAMED: Final = 100_000  # hosts whose robots.txt named sitemaps that are remembered
READ, LINKS, FAILED = "sitemaps/read", "sitemaps/links", "sitemaps/failed"  # counts of the crawl

logger = logging.getLogger(__name__)


class Sitemaps:
    """Asks a host for its sitemaps and feeds once it has given a relevant page.

    They do not count as pages, and nothing is learned from them. Their URLs that are new become
    links of that page.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._asked: set[str] = set()  # origins
        self._hosts: Counter[int] = Counter()  # asked, by domain
        self._named: dict[str, list[str]] = {}  # sitemaps by origin
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not Config.of(crawler.settings).sitemap:
            raise NotConfigured
        if not follows_links(crawler.spider):
            raise NotConfigured(
                "sitemap=1 has no effect on a spider that chooses its links: use Scrapy's "
                "SitemapSpider"
            )
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.robots_parsed, signal=signals.robots_parsed)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        session = CrawlSession.of(self._crawler)
        self._session = session
        if session.job is not None:
            self._asked.update(session.job.origins_asked())
            hosts = map(host_of, self._asked)
            self._hosts.update(map(session.crawl.store.ledger.id_of_host, hosts))
        session.listeners.append(self.note)

    def robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        named = map(canonicalise, getattr(getattr(robotparser, "rp", None), "sitemaps", ()))
        own = domain_of(request.url)
        found = [url for url in named if url is not None and domain_of(url) == own]
        if found:
            self._named[origin_of(request.url)] = found[:FILES]
            if len(self._named) > NAMED:
                del self._named[next(iter(self._named))]

    def note(self, booking: Booking) -> None:
        """Ask the host of a relevant page, unless it was asked or its domain is at MAX."""
        if booking.judged is None or not booking.relevant:
            return
        page, crawl, row = booking.judged.page, self._session.crawl, booking.experience.row
        origin, domain = origin_of(page.url), crawl.store["domain"][row]
        at_max = crawl.store.ledger.exhausted(np.array([domain]))[0]
        if origin in self._asked or self._hosts[domain] == HOSTS or at_max:
            return
        self._asked.add(origin)
        self._hosts[domain] += 1
        named = self._named.pop(origin, [f"{origin}/sitemap.xml"])
        urls = [url for url in (*page.feeds, *named) if _may_ask(crawl.store.admission.scope, url)]
        task = asyncio.ensure_future(self._ask(row, origin, urls))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def spider_idle(self, spider: Spider) -> None:
        if self._tasks and not self._session.crawl.finished:
            raise DontCloseSpider

    def spider_closed(self, spider: Spider) -> None:
        for task in self._tasks:
            task.cancel()

    async def _ask(self, row: int, origin: str, urls: list[str]) -> None:
        """Read files one after the other, and those that an index names.

        A host that answers one by asking to be left alone is asked for no more in this run.
        """
        waiting, seen = deque(urls), set[str]()
        while waiting and len(seen) < FILES and not self._session.crawl.finished:
            if self._crawler.engine.paused or self._rests(waiting[0]):
                await asyncio.sleep(PAUSE)
            elif self._session.sites.is_closed(host_of(waiting[0]), time()):
                await asyncio.sleep(LONG_PAUSE)
            elif (url := waiting.popleft()) not in seen:
                seen.add(url)
                async with self._turn:
                    named = await self._read(row, url)
                if named is None and self._rests(url):
                    wake(self._crawler.engine)
                    return
                waiting.extend(named or [])
        if self._session.job is not None and not self._session.crawl.finished:
            self._session.job.note_asked(origin)
        wake(self._crawler.engine)  # it may have been idle

    def _rests(self, url: str) -> bool:
        host = self._session.crawl.store.hosts.find(host_of(url))
        return host in self._session.health.resting(monotonic())

    async def _read(self, row: int, url: str) -> list[str] | None:
        """Add the links of a file to the frontier; return the sitemaps it names, if it was read."""
        counts = self._session.crawl.counts
        try:
            response: Any = await self._crawler.engine.download_async(
                Request(url, callback=NO_CALLBACK)
            )
            if response.status != 200:
                raise ValueError(f"HTTP {response.status}")
            source = Source(response.body, response.url, is_sitemap=True)
            judged = await asyncio.wrap_future(self._session.judge.submit(source))
            if judged.is_broken:
                raise ValueError("it is not a sitemap")
        except Exception as error:
            counts[FAILED] += 1
            logger.debug("Could not read the sitemap %s: %s", url, error)
            return None
        counts[READ] += 1
        # of any file: the judge's process sends each text once
        self._session.crawl.store.names.learn(judged.names)
        if judged.page.content_type == INDEX:
            return [link.url for link in judged.page.links]
        new = self._session.steps.add_unlinked(row, judged)
        counts[LINKS] += new
        logger.info("Links in the sitemap %s that are new: %d", url, new)
        return []


def _may_ask(scope: Scope | None, url: str) -> bool:
    """Return whether a sitemap or feed may be fetched: rules that only pages match do not count."""
    refusal = None if scope is None else scope.refusal(url)
    return refusal is None or refusal.rule in OF_PAGES
