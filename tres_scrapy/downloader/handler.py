"""The download handler: limits response headers, counts delays from sending, signs requests."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
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

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.engine import before_end, is_closing
from tres_scrapy.downloader.identity import Identity
from tres_scrapy.downloader.request import ROBOTS_TXT, follows_links

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
    def __init__(self, identity: Identity | None, quiescent: Callable[..., None]) -> None:
        super().__init__(quiescent)  # type: ignore[no-untyped-call]
        self._identity = identity

    def request(self, request: Request) -> Deferred[IResponse]:
        if self._identity is not None:
            request = signed(request, self._identity)
        response = super().request(request)
        self._parser.__class__ = BoundedParser  # as the base class does: Twisted fixes the class
        return response


class _BoundedFactory(http11._LenientHTTP11ClientFactory):
    def __init__(
        self, identity: Identity | None, quiescent: Callable[..., None], metadata: str
    ) -> None:
        super().__init__(quiescent, metadata)  # type: ignore[no-untyped-call]
        self._identity = identity

    def buildProtocol(self, addr: IAddress | None) -> _BoundedProtocol:  # noqa: N802 - Twisted's
        return _BoundedProtocol(self._identity, self._quiescentCallback)


def signed(request: Request, identity: Identity) -> Request:
    """Return a signed copy of a request, on its way to the wire.

    So what is signed is what is sent, to the host of this hop, and Twisted's second attempt at a
    request is signed again. Scrapy's request, which may be stored, stays unsigned.
    """
    again = copy(request)
    again.headers = request.headers.copy()
    host = request.headers.getRawHeaders(b"host")[0]
    for name, value in identity.sign_request(host.decode("latin-1")).items():
        again.headers.addRawHeader(name, value)
    return again


class BoundedHandler(http11.HTTP11DownloadHandler):
    """Scrapy's own handler, with a BoundedParser in its connection pool, and signatures.

    Scrapy would collect headers without limit until the timeout. It also counts a host's delay
    from when a request leaves the queue, but sends the request later, after other work. It refuses
    a robots.txt by its Content-Length. A crawl that ends does not wait for long.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        path = Config.of(crawler.settings).download.identity
        identity = None if path is None else Identity.read(path)
        self._pool._factory = partial(_BoundedFactory, identity)  # type: ignore[assignment]

    async def download_request(self, request: ScrapyRequest) -> Response:
        self._restart_delay(request)
        fetched = self._fetch(request)
        if not follows_links(self._crawler.spider):
            return await fetched
        return await before_end(partial(is_closing, self._crawler.engine), fetched)

    async def _fetch(self, request: ScrapyRequest) -> Response:
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
