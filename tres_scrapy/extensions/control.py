"""Control a running crawl: pause, resume, stop, add a seed, change MAX."""

from __future__ import annotations

import numpy as np
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import parted, seeds
from tres_scrapy.crawl.share import Shares, members
from tres_scrapy.downloader.engine import requests_under_way, wake
from tres_scrapy.downloader.request import SAMPLE
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.host import host_of
from tres_scrapy.live.steering import (
    ENDING,
    PAUSED,
    RUNNING,
    ControlError,
    Steering,
    require_public,
)
from tres_scrapy.run.forgotten import DISTRUSTED, Forgotten


class Control(Steering):
    """Steers a crawl in this process; call it in the reactor's thread."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session
        self._ending = False

    @property
    def state(self) -> str:
        """RUNNING, PAUSED or ENDING."""
        if self._ending or not self._crawler.crawling:
            return ENDING
        return PAUSED if self._crawler.engine.paused else RUNNING

    @property
    def cap(self) -> Cap | None:
        """MAX, None without one."""
        return self._session.crawl.store.ledger.cap

    @property
    def requests_under_way(self) -> int:
        """The number of requests that have no answer yet, or whose answer is being read."""
        return requests_under_way(self._crawler.engine)

    def _pause(self) -> None:
        self._crawler.engine.pause()

    def _resume(self) -> None:
        self._crawler.engine.unpause()
        wake(self._crawler.engine)

    def _stop(self) -> None:
        self._ending = True
        deferred_from_coro(self._crawler.stop_async())

    def _add_seeds(self, text: str) -> str:
        """Add seeds; if some of several URLs are refused, the others are added."""
        spider = self._crawler.spider
        assert spider is not None
        if type(spider).parse is Spider.parse:
            raise ControlError(f"The spider {spider.name!r} has no parse() for the page of a seed")
        added, refused = [], []
        for word in dict.fromkeys(parted(text)):
            try:
                added.append(self._add_seed(word))
            except ControlError as error:
                refused.append(str(error))
        if not added:
            raise ControlError("; ".join(refused))
        job = self._session.job
        if job is not None and not job.write(job.journal.save, self._session.crawl):
            raise ControlError("JOBDIR cannot be written: the crawl stops")
        return ", ".join(added) + (f". Not added: {'; '.join(refused)}" if refused else "")

    def _change_cap(self, cap: Cap | None) -> str:
        """Set MAX; dropped samples that fit it return."""
        crawl, job = self._session.crawl, self._session.job
        if cap is not None and cap.first != cap.last and crawl.limit is None:
            raise ControlError(f"MAX {cap} depends on the share of pages done: pages must be set")
        own = None if self._session.follows_all else self._session.requests
        rows = crawl.change_cap(cap, own)
        if job is not None and not job.note_cap(cap):
            raise ControlError("JOBDIR cannot be written: the crawl stops")
        wake(self._crawler.engine)
        return f"; back in the frontier: {len(rows):,} links" if len(rows) else ""

    def _distrust(self, site: str) -> str:
        """Close the URLs of a site and of its body; JOBDIR keeps that."""
        crawl, job = self._session.crawl, self._session.job
        if not crawl.store.ledger.pages_of(site):
            raise ControlError(
                f"No page of {site!r} was fetched: give a registrable domain, such as example.org"
            )
        sites = members(Shares(crawl).doors(), site)
        crawl.store.distrust(sites)
        known = Forgotten(sites=frozenset(crawl.store.distrusted)).written()
        if job is not None and not job.write(job.journal.note, DISTRUSTED, known):
            raise ControlError("JOBDIR cannot be written: the crawl stops")
        return f" and {len(sites) - 1:,} sites found only through it" if len(sites) > 1 else ""

    def _add_seed(self, text: str) -> str:
        """Add one seed and return its URL; raise ControlError if it cannot be fetched."""
        try:
            (url,) = seeds(text)
        except ValueError as error:
            raise ControlError(f"A seed {error}") from None
        crawl = self._session.crawl
        if crawl.finished:
            raise ControlError(f"All pages asked for are fetched: {crawl.limit:,}")
        host = host_of(url)
        if not Config.of(self._crawler.settings).download.private_addresses:
            require_public(host)
        if crawl.store.closure.is_closed(url):
            raise ControlError(f"{url} has been fetched or is being fetched")
        domain = crawl.store.domain_of(url)
        if crawl.store.ledger.exhausted(np.array([domain]))[0]:
            name = crawl.store.ledger.names[domain]
            raise ControlError(
                f"{name} has reached MAX or fails too often: no more of its pages are fetched"
            )
        if crawl.store.is_given_up(url):
            raise ControlError(f"{host} is given up: it failed too often")
        request = Request(url)
        self._crawler.engine.crawl(request)
        if SAMPLE not in request.meta:
            raise ControlError(f"{url} was not added: the frontier is full")
        return url
