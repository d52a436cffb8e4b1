"""A project's own duplicate filter, applied before a URL enters the frontier."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.settings import Settings
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter
from twisted.internet.defer import Deferred


class OwnDupeFilter:
    """Applies the filter of DUPEFILTER_CLASS to the spider's requests."""

    def __init__(self, dupefilter: BaseDupeFilter, spider: Spider) -> None:
        self._filter = dupefilter
        self._spider = spider

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self | None:
        """Return None for Scrapy's own filters: the frontier itself fetches each URL once."""
        wanted = load_object(crawler.settings["DUPEFILTER_CLASS"])
        plain = type(crawler.request_fingerprinter) is RequestFingerprinter
        if wanted is BaseDupeFilter or (wanted is RFPDupeFilter and plain):
            return None
        assert crawler.spider is not None
        return cls(build_from_crawler(wanted, _without_job(crawler)), crawler.spider)

    def open(self) -> Deferred[None] | None:
        """Open the filter."""
        return self._filter.open()

    def close(self, reason: str) -> Deferred[None] | None:
        """Close the filter."""
        return self._filter.close(reason)

    def remember(self, urls: Iterable[str]) -> None:
        """Mark the URLs of an interrupted crawl as seen."""
        for url in urls:
            self._filter.request_seen(Request(url))

    def drops(self, request: Request) -> bool:
        """Return whether a request is a duplicate; if so, let the filter log it."""
        if request.dont_filter or not self._filter.request_seen(request):
            return False
        self._filter.log(request, self._spider)
        return True


def _without_job(crawler: Crawler) -> Crawler:
    """Return the crawler as if it had no JOBDIR.

    A page that was not booked when the crawl was killed is fetched again. If the filter had saved
    the links of that page in JOBDIR, they would count as seen and be lost.
    """
    alike = copy(crawler)
    alike.settings = Settings({**crawler.settings, "JOBDIR": None})
    return alike
