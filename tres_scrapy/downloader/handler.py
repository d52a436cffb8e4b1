"""The download handler: no endless headers, and delays that count from the sending of a request."""

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

MAX_HEADER_LENGTH: Final = 256 * 1024  # bytes, what browsers take of all header lines together


class BoundedParser(http11._LenientHTTPClientParser):
    """Gives up a response whose header lines are longer than MAX_HEADER_LENGTH together."""

    received = 0  # bytes; the parser becomes one of this class after it is made

    def lineReceived(self, line: bytes) -> None:  # noqa: N802 - Twisted's
        self.received += len(line)
        if self.received > MAX_HEADER_LENGTH:
            raise ValueError(f"more than {MAX_HEADER_LENGTH} bytes of headers")
        super().lineReceived(line)


class _BoundedProtocol(http11._LenientHTTP11ClientProtocol):
    def request(self, request: Request) -> Deferred[IResponse]:
        response = super().request(request)
        self._parser.__class__ = BoundedParser  # as its base class does: Twisted names the class
        return response


class _BoundedFactory(http11._LenientHTTP11ClientFactory):
    def buildProtocol(self, addr: IAddress | None) -> _BoundedProtocol:  # noqa: N802 - Twisted's
        return _BoundedProtocol(self._quiescentCallback)  # type: ignore[no-untyped-call]


class BoundedHandler(http11.HTTP11DownloadHandler):
    """Scrapy's own handler, with that parser in its connection pool.

    Scrapy itself would keep all headers until the timeout, and counts a host's delay from when it
    took the request from its queue. It sends it after other work, such as the next choices.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pool._factory = _BoundedFactory

    async def download_request(self, request: ScrapyRequest) -> Response:
        slots = self._crawler.engine.downloader.slots
        if (slot := slots.get(request.meta.get("download_slot", ""))) is not None:
            slot.lastseen = monotonic()
        return await super().download_request(request)
