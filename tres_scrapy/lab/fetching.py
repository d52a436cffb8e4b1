"""Fetches what a crawl has leased from an offline web, and books the outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.crawl.failure import (
    REDIRECT_CLOSED,
    REDIRECT_LIMIT,
    REDIRECT_NOT_HTTP,
    ROBOTS,
    Failure,
)
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.crawl.reward import Verdicts
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.lab.library import Fetched
from tres_scrapy.lab.webs.count import Count
from tres_scrapy.settings import REDIRECT_MAX_TIMES
from tres_scrapy.url.canonical import canonicalise

if TYPE_CHECKING:
    from tres_scrapy.lab.simulation import World


class Fetching:
    """Fetches for one crawl as Scrapy and the adapters do, and counts in `count` what comes.

    `found` holds the number of fetches after which each relevant page was found. `verdicts` knows
    the pages so far, to find copies.
    """

    def __init__(self, world: World, config: Config, crawl: Crawl, count: Count) -> None:
        self.found: list[int] = []
        self._world = world
        self._config = config
        self._crawl = crawl
        self._count = count
        self._kind = POLICIES[config.policy]
        self.verdicts = Verdicts(world.pack.threshold, detect_copies=config.detect_copies)

    def fetch(self, row: int) -> Booking:
        """Fetch the URL of a leased row, follow redirects, and book the outcome."""
        url = self._crawl.store.url(row)
        for hops in range(REDIRECT_MAX_TIMES + 1):
            if not self._world.allows(url, self._config.download.max_crawl_delay):
                return self._crawl.book_failure(row, ROBOTS)
            fetched = self._world.library.fetch(url, self._kind)
            self._add(url, fetched)
            if fetched.location is None:
                return self._book(row, fetched)
            if hops == REDIRECT_MAX_TIMES:
                break
            target = canonicalise(urljoin(url, fetched.location))
            if target is not None and not self._crawl.owns(target):
                return self._crawl.redirect_away(row, target)
            if failure := self._redirect(row, url, target):
                return self._crawl.book_failure(row, failure)
            assert target is not None
            url = target
        return self._crawl.book_failure(row, REDIRECT_LIMIT)

    def _add(self, url: str, fetched: Fetched) -> None:
        relevant = self._count.relevant
        self._count.add(url, fetched.answer)
        if self._count.relevant > relevant:
            self.found.append(self._count.fetches)

    def _redirect(self, row: int, source: str, target: str | None) -> Failure | None:
        """Make a row stand for the target of a redirect; return a Failure if it cannot."""
        if target is None:
            return REDIRECT_NOT_HTTP
        current = self._crawl.store.url(row)
        if target == current:
            return REDIRECT_CLOSED if canonicalise(source) == current else None
        return None if self._crawl.redirect(row, target) else REDIRECT_CLOSED

    def _book(self, row: int, fetched: Fetched) -> Booking:
        lease = self._crawl.lease_of(row)
        assert lease is not None
        verdict = fetched.failure or self.verdicts.of(
            fetched.probability,
            fetched.mark,
            is_missing=fetched.is_missing,
            is_hidden=fetched.is_hidden,
            is_query=lease.decision.is_query,
        )
        if isinstance(verdict, Failure):
            return self._crawl.book_failure(row, verdict)
        links = Outlinks(fetched.urls, fetched.anchors, fetched.actions, fetched.cues)
        return self._crawl.book_page(row, verdict.relevant, links, text=fetched.text)
