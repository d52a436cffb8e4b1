"""Which shard of a crawl owns a domain, and the links that go to the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

from tres_scrapy.cluster.link_batch import LinkBatch
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import Path
from tres_scrapy.frontier.ledger import host_of
from tres_scrapy.url.domain import registrable_domain


def owner_of(domain: str, shards: int) -> int:
    """Return the shard that owns a registrable domain, the same on every machine."""
    return crc32(domain.encode("utf-8", "surrogatepass")) % shards


class Packed(NamedTuple):
    """A packed parcel and the shard that it is for."""

    shard: int
    data: bytes


class Router:
    """Divides the links of each page: own domains stay, the others are packed for their owners."""

    def __init__(self, shard: int, shards: int, *, psl_private: bool = True) -> None:
        self.shard = shard
        self.shards = shards
        self._psl_private = psl_private
        self._packed: list[Packed] = []

    def owner(self, url: str) -> int:
        """Return the shard that owns the domain of a URL."""
        return self._owner_of(urlsplit(url).hostname or "")

    def owns(self, url: str) -> bool:
        """Return whether this shard owns the domain of a URL."""
        return self.owner(url) == self.shard

    def divide(self, url: str, path: Path, links: Outlinks) -> tuple[Outlinks, Outlinks]:
        """Return the links of a page to own domains, and the others, which are packed.

        `path` ends at the page of `url`. The URLs are canonical; the order of the links stays.
        """
        places: dict[int, list[int]] = {}
        hosts = [host_of(link) for link in links.urls]
        owners = {host: self._owner_of(host) for host in set(hosts)}
        for place, host in enumerate(hosts):
            places.setdefault(owners[host], []).append(place)
        for shard, some in places.items():
            if shard != self.shard:
                self._pack(shard, LinkBatch(url, path, links.take(some)))
        own = places.pop(self.shard, [])
        return links.take(own), links.take([place for some in places.values() for place in some])

    def send(self, url: str, target: Outlinks, path: Path, hops: int = 1) -> None:
        """Pack the target of a redirect, which its owner fetches before other links."""
        self._pack(self.owner(target.urls[0]), LinkBatch(url, path, target, hops))

    def take(self) -> Sequence[Packed]:
        """Return the parcels packed since the last call, oldest first."""
        packed, self._packed = self._packed, []
        return packed

    def _owner_of(self, host: str) -> int:
        return owner_of(registrable_domain(host, private=self._psl_private), self.shards)

    def _pack(self, shard: int, parcel: LinkBatch) -> None:
        self._packed.append(Packed(shard, parcel.packed()))
