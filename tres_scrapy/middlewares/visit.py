"""Counts the requests to each site, and sends none for a page while the site is closed."""

from __future__ import annotations

from time import time
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.downloader.delay import HeldError
from tres_scrapy.downloader.request import FOR_SAMPLE, LEASE
from tres_scrapy.extensions.session import CrawlSession


class VisitMiddleware:
    """The last middleware before a request is sent: what a cache answers is no visit.

    A sample whose site is closed goes back to the frontier, also if it waits for robots.txt. The
    frontier offers no such sample, unless its robots.txt was the last request of the day. Other
    requests are counted only.
    """

    def __init__(self, session: CrawlSession) -> None:
        self._sites, self._job = session.sites, session.job
        self._holds = session.follows_all  # else a project's own spider sends what it likes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = CrawlSession.of(crawler)
        if not session.sites.is_limited:
            raise NotConfigured
        return cls(session)

    def process_request(self, request: Request) -> None:
        host = urlparse_cached(request).hostname or ""
        is_sample = LEASE in request.meta or request.meta.get(FOR_SAMPLE, False)
        if is_sample and self._holds and self._sites.is_closed(host, time()):
            raise HeldError(host, 0.0)  # until its site opens
        visit = self._sites.note(host, time())  # saved before the request is sent
        if visit is not None and self._job is not None:
            self._job.note_visit(visit)
