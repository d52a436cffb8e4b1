"""The download handler: limits response headers and counts delays from when a request is sent."""

from __future__ import annotations

from time import monotonic
from typing import Final

from scrapy import Request as ScrapyRequest
from scrapy.core.downloader.handlers import http11
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.web._newclient import Request
from twisted.web.iweb import IResponse

from tres_scrapy.downloader.request import ROBOTS_TXT

MAX_HEADER_LENGTH: Final = 256 * 1024  # bytes of all header lines, the limit of browsers


class BoundedParser(http11._LenientHTTPClientParser):
    """Aborts a response whose header lines exceed MAX_HEADER_LENGTH in all."""

    received = 0  # bytes; a class attribute: __init__ runs before the class is set

    def lineReceived(self, line: bytes) -> None:  # noqa: N802 - Twisted's
        self.received += len(line)
        if self.received > MAX_HEADER_LENGTH:
            raise ValueError(f"more than {MAX_HEADER_LENGTH} bytes of headers")
        super().lineReceived(line)


class _BoundedProtocol(http11._LenientHTTP11ClientProtocol):
    def request(self, request: Request) -> Deferred[IResponse]:
        response = super().request(request)
        self._parser.__class__ = BoundedParser  # as the base class does: Twisted fixes the class
        return response


class _BoundedFactory(http11._LenientHTTP11ClientFactory):
    def buildProtocol(self, addr: IAddress | None) -> _BoundedProtocol:  # noqa: N802 - Twisted's
        return _BoundedProtocol(self._quiescentCallback)  # type: ignore[no-untyped-call]


class BoundedHandler(http11.HTTP11DownloadHandler):
    """Scrapy's own handler, with a BoundedParser in its connection pool.

    Scrapy would collect headers without limit until the timeout. It also counts a host's delay
    from when a request leaves the queue, but sends the request later, after other work. It refuses
    a robots.txt by its Content-Length.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pool._factory = _BoundedFactory

    async def download_request(self, request: ScrapyRequest) -> Response:
        self._restart_delay(request)
        if ROBOTS_TXT not in request.meta:
            return await super().download_request(request)
        # RobotsMiddleware stops reading it; a Content-Length above the limit would end it unread
        try:
            request.meta["download_maxsize"] = 0
            return await super().download_request(request)
        finally:
            del request.meta["download_maxsize"]  # it also limits the body once unpacked

    def _restart_delay(self, request: ScrapyRequest) -> None:
        """Count the delay of a host from now."""
        slots = self._crawler.engine.downloader.slots
        if (slot := slots.get(request.meta.get("download_slot", ""))) is not None:
            slot.lastseen = monotonic()
