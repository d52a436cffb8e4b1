"""The downloader middleware that lets no link lead to this machine or its network."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from typing import NoReturn, Self
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, NotConfigured
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.url import add_http_if_no_scheme

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.refusal import FetchRefusedError
from tres_scrapy.downloader.resolver import PublicResolver
from tres_scrapy.url.public_address import is_public, may_be_public

logger = logging.getLogger(__name__)


class PrivateAddressError(FetchRefusedError):
    """Says in one line why a request is not made and what would allow it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "private_address")


class PrivateAddressMiddleware:
    """Refuses each request, redirected and robots.txt included, to what is not the public web.

    That is any scheme but http, https and data, and any host whose name or every address is
    private. A request through a proxy, which resolves names itself, is judged by its URL alone. It
    stands behind HttpProxyMiddleware, so that it knows which requests those are.
    """

    def __init__(self) -> None:
        self._said = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if Config.of(crawler.settings).download.private_addresses:
            raise NotConfigured
        return cls()

    async def process_request(self, request: Request) -> None:
        url = urlparse_cached(request)
        if url.scheme == "data":
            return
        host = url.hostname or ""
        if url.scheme not in {"http", "https"}:
            self._refuse(f"{url.scheme}: leads off the web")
        if not may_be_public(host):
            self._refuse(f"{host} is not on the public internet")
        resolver = PublicResolver.installed()
        if proxy := request.meta.get("proxy"):
            resolver.trust(urlsplit(add_http_if_no_scheme(proxy)).hostname or "")
            return
        addresses = await resolver.addresses(host)
        if not addresses:
            raise CannotResolveHostError(f"no address is known for {host}")
        if not any(is_public(ip_address(address)) for address in addresses):
            self._refuse(f"{host} is {addresses[0]}, which is not on the public internet")

    def _refuse(self, reason: str) -> NoReturn:
        """Raise; the log tells of the first only, for one page may hold a thousand."""
        error = PrivateAddressError(f"{reason}; to allow it, set TRES_PRIVATE_ADDRESSES=1")
        if not self._said:
            self._said = True
            logger.warning("Refused, as others after it will be: %s", error)
        raise error
