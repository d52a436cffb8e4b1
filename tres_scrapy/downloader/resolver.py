"""The name resolver that prevents connections to private addresses."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IResolutionReceiver
from zope.interface import implementer

from tres_scrapy.url.public_address import is_public


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
