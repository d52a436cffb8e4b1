"""The SSRF guard: a middleware and a name resolver keep the crawl out of private networks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final, NoReturn, Self
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, NotConfigured
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.url import add_http_if_no_scheme
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IResolutionReceiver
from zope.interface import implementer

from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed_setting
from tres_scrapy.downloader.delay import SharedAddresses
from tres_scrapy.downloader.engine import before_end, is_closing
from tres_scrapy.downloader.refusal import FetchRefusedError
from tres_scrapy.url.public_address import is_public, may_be_public

HTTP: Final = frozenset({"http", "https"})

logger = logging.getLogger(__name__)


@implementer(IHostnameResolver)
class PublicResolver:
    """Resolves names and drops private addresses (SSRF guard).

    Twisted calls it for each connection, for names and for addresses in any notation. So Twisted
    connects to the address checked here, even if the name server changes its answer. Trusted
    hosts, the user's own proxies, keep all their addresses.
    """

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver
        self._trusted: set[str] = set()

    @classmethod
    def installed(cls) -> PublicResolver:
        """Return the PublicResolver of the running reactor; install one first if needed."""
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        pluggable: Any = reactor
        if not isinstance(pluggable.nameResolver, cls):
            pluggable.installNameResolver(cls(pluggable.nameResolver))
        resolver: PublicResolver = pluggable.nameResolver
        return resolver

    def trust(self, host: str) -> None:
        """Allow private addresses for a host from now on."""
        self._trusted.add(host.lower())

    async def addresses(self, host: str) -> list[str]:
        """Return all addresses of a host, private ones too; empty if it cannot be resolved."""
        found = _Addresses()
        self._resolver.resolveHostName(found, host)
        return await maybe_deferred_to_future(found.complete)

    def resolveHostName(self, receiver: Any, name: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
        """Resolve a name; Twisted's interface."""
        if name.lower() not in self._trusted:
            receiver = _PublicOnly(receiver)
        return self._resolver.resolveHostName(receiver, name, *args, **kwargs)


@implementer(IResolutionReceiver)
class _PublicOnly:
    """Passes on only the public addresses of a host."""

    def __init__(self, receiver: Any) -> None:
        self._receiver = receiver
        self.resolutionBegan = receiver.resolutionBegan
        self.resolutionComplete = receiver.resolutionComplete

    def addressResolved(self, address: Any) -> None:  # noqa: N802 - Twisted's name
        if is_public(ip_address(address.host)):
            self._receiver.addressResolved(address)


@implementer(IResolutionReceiver)
class _Addresses:
    """Collects the addresses of a host."""

    def __init__(self) -> None:
        self.complete: Deferred[list[str]] = Deferred()
        self._found: list[str] = []

    def resolutionBegan(self, resolution: Any) -> None:  # noqa: N802 - Twisted's names
        pass

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        self._found.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        self.complete.callback(self._found)


def _is_start(request: Request) -> bool:
    """Return whether a spider starts with a request: no link and no redirect led to it."""
    meta = request.meta
    return (
        bool(meta.get("is_start_request")) and not meta.get("depth") and "redirect_urls" not in meta
    )


class PrivateAddressMiddleware:
    """Refuses each request outside the public web, redirects and robots.txt included.

    Refused are schemes other than http, https and data, private host names, and hosts whose
    addresses are all private. A spider may start at any scheme that Scrapy knows, such as file. If
    a request goes through a proxy, which resolves names itself, only its URL is checked. Runs after
    HttpProxyMiddleware, to know which requests those are. Hosts of one address get one downloader
    slot.
    """

    def __init__(
        self, shared: SharedAddresses | None = None, ends: Callable[[], bool] = lambda: False
    ) -> None:
        self._shared = shared
        self._ends = ends
        self._has_warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if Config.of(crawler.settings).download.private_addresses:
            raise NotConfigured
        shared = crawler.get_extension(SharedAddresses)
        return cls(shared, lambda: is_closing(crawler.engine))

    async def process_request(self, request: Request) -> None:
        url = urlparse_cached(request)
        if url.scheme == "data" or (url.scheme not in HTTP and _is_start(request)):
            return
        host = url.hostname or ""
        if url.scheme not in HTTP:
            self._refuse(f"the scheme {url.scheme!r} is not http or https")
        if not may_be_public(host):
            self._refuse(f"{host} is not on the public internet")
        resolver = PublicResolver.installed()
        if proxy := request.meta.get("proxy"):
            resolver.trust(urlsplit(add_http_if_no_scheme(proxy)).hostname or "")
            return
        addresses = await before_end(self._ends, resolver.addresses(host))
        if not addresses:
            raise CannotResolveHostError(f"no address found for {host}")
        if not any(is_public(ip_address(address)) for address in addresses):
            self._refuse(f"{host} is {addresses[0]}, which is not on the public internet")
        if self._shared is not None:
            self._shared.note(host, addresses)
            request.meta.setdefault("download_slot", self._shared.slot_of(host))

    def _refuse(self, reason: str) -> NoReturn:
        """Raise an error; log only the first, because one page may hold a thousand such links."""
        allowed = typed_setting("private_addresses", True)
        error = FetchRefusedError(f"{reason}; to allow it, add {allowed}", "private_address")
        if not self._has_warned:
            self._has_warned = True
            logger.warning("Request refused: %s (later refusals are not logged)", error)
        raise error
