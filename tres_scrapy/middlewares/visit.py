"""Counts the requests to each site, and sends none for a page while the site is closed."""

from __future__ import annotations

from time import time
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.crawl.visit import Visits
from tres_scrapy.downloader.delay import HeldError
from tres_scrapy.downloader.request import FOR_SAMPLE, LEASE
from tres_scrapy.extensions.session import CrawlSession


class VisitMiddleware:
    """The last middleware before a request is sent: what a cache answers is no visit.

    A sample whose site is closed goes back to the frontier, also if it waits for robots.txt. The
    frontier offers no such sample, unless its robots.txt was the last request of the day. Other
    requests are counted only.
    """

    def __init__(self, session: CrawlSession, visits: Visits) -> None:
        self._session = session
        self._visits = visits

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = crawler.get_extension(CrawlSession)
        if session is None or session.visits is None:
            raise NotConfigured
        return cls(session, session.visits)

    def process_request(self, request: Request) -> None:
        host = urlparse_cached(request).hostname or ""
        is_sample = LEASE in request.meta or request.meta.get(FOR_SAMPLE, False)
        if is_sample and self._session.follows_all and self._visits.is_closed(host, time()):
            raise HeldError(host, 0.0)  # until its site opens
        self._session.note_visit(host)
