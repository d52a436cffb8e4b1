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

from tres_scrapy.downloader.request import follows_links
from tres_scrapy.extensions.own_queue import discard_unclean


class OwnDupeFilter:
    """Holds the filter of DUPEFILTER_CLASS; `is_default` if it is the one of Scrapy's defaults."""

    def __init__(
        self, dupefilter: BaseDupeFilter, spider: Spider, *, is_default: bool = False
    ) -> None:
        self.filter = dupefilter
        self.is_default = is_default
        self._spider = spider

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        wanted = load_object(crawler.settings["DUPEFILTER_CLASS"])
        is_default = (
            wanted is RFPDupeFilter and type(crawler.request_fingerprinter) is RequestFingerprinter
        )
        assert crawler.spider is not None
        keeps = is_default and not follows_links(crawler.spider)
        if keeps and crawler.settings["JOBDIR"]:
            discard_unclean(crawler.settings["JOBDIR"])
        owner = crawler if keeps else _without_job(crawler)
        return cls(build_from_crawler(wanted, owner), crawler.spider, is_default=is_default)

    def remember(self, urls: Iterable[str]) -> None:
        """Mark the URLs of an interrupted crawl as seen, unless the frontier does so."""
        for url in urls if not self.is_default else ():
            self.filter.request_seen(Request(url))

    def drops(self, request: Request) -> bool:
        """Return whether the project's own filter drops a request; if so, let it log that."""
        if request.dont_filter or not self.filter.request_seen(request):
            return False
        self.log(request)
        return True

    def log(self, request: Request) -> None:
        """Log and count that a request is dropped as a duplicate, as Scrapy does."""
        self.filter.log(request, self._spider)


def _without_job(crawler: Crawler) -> Crawler:
    """Return the crawler as if it had no JOBDIR.

    A page that was not booked when the crawl was killed is fetched again. If the filter had saved
    the links of that page in JOBDIR, they would count as seen and be lost.
    """
    alike = copy(crawler)
    alike.settings = Settings({**crawler.settings, "JOBDIR": None})
    return alike
