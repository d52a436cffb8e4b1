"""The downloader middleware that sends requests through the offline web."""

from __future__ import annotations

from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.extensions.offline_web import OfflineWeb


class OfflineProxyMiddleware:
    """Makes the offline web the proxy of every request, robots.txt included."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        offline_web = crawler.get_extension(OfflineWeb)
        if offline_web is None:
            raise NotConfigured
        return cls(offline_web.proxy)

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = self._proxy
