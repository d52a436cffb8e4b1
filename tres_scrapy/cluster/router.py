"""Which shard owns a domain, and the links of a page that travel to other shards."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np

from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import ACTION, Path
from tres_scrapy.frontier.host import host_of
from tres_scrapy.links.code import CODES, RaggedArray, silent
from tres_scrapy.url.canonical import canonicalise, registrable_domain

ACTIONS: Final = ACTION.stop - ACTION.start
LARGEST_BATCH: Final = 64 * 2**20  # bytes of an unpacked batch
_LEVEL: Final = 1  # of zlib: higher ones take more time for little


def owner_of(domain: str, shards: int) -> int:
    """Return the shard that owns a registrable domain, the same on every machine."""
    return crc32(domain.encode("utf-8", "surrogatepass")) % shards


class PackedBatch(NamedTuple):
    """A packed batch and the shard that it is for."""

    shard: int
    data: bytes


class Router:
    """Divides the links of each page: own domains stay, the others are packed for their owners."""

    def __init__(self, shard: int, shards: int) -> None:
        self.shard = shard
        self.shards = shards
        self._packed: list[PackedBatch] = []

    def owner(self, url: str) -> int:
        """Return the shard that owns the domain of a URL."""
        return owner_of(registrable_domain(urlsplit(url).hostname or ""), self.shards)

    def owns(self, url: str) -> bool:
        """Return whether this shard owns the domain of a URL."""
        return self.owner(url) == self.shard

    def divide(self, url: str, path: Path, links: Outlinks) -> tuple[Outlinks, Outlinks]:
        """Return the links of a page to own domains, and the others, which are packed.

        `path` ends at the page of `url`. The URLs are canonical; the order of the links stays.
        """
        places: dict[int, list[int]] = {}
        hosts = [host_of(link) for link in links.urls]
        owners = {host: owner_of(registrable_domain(host), self.shards) for host in set(hosts)}
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

    def take(self) -> Sequence[PackedBatch]:
        """Return the batches packed since the last call, oldest first."""
        packed, self._packed = self._packed, []
        return packed

    def _pack(self, shard: int, batch: LinkBatch) -> None:
        self._packed.append(PackedBatch(shard, batch.packed()))


class LinkBatch(NamedTuple):
    """The links of a page to another shard, and what is known of them.

    `url` is the page's and `path` ends at it. With `hops` the link is the target of a redirect, the
    last of so many from shard to shard, and is fetched before others.
    """

    url: str
    path: Path
    links: Outlinks
    hops: int = 0

    def packed(self) -> bytes:
        """Return the batch as bytes."""
        cues = silent(len(self.links.urls)) if self.links.cues is None else self.links.cues
        distance = None if math.isinf(self.path.distance) else self.path.distance
        head = {
            "url": self.url,
            "path": [*map(float, self.path[:1]), self.path.length, self.path.relevant, distance],
            "urls": list(self.links.urls),
            "anchors": list(self.links.anchors),
            "hops": self.hops,
        }
        parts = (
            json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass"),
            np.asarray(self.links.actions, dtype="<f4").tobytes(),
            cues.counts.astype("<u2").tobytes(),
            cues.codes.astype("<u4").tobytes(),
        )
        return zlib.compress(b"\n".join((parts[0], b"".join(parts[1:]))), _LEVEL)

    @classmethod
    def unpacked(cls, data: bytes) -> LinkBatch:
        """Return the batch that was packed; raise ValueError if it is damaged."""
        head, _, rest = _unzipped(data).partition(b"\n")
        try:
            found = json.loads(head.decode("utf-8", "surrogatepass"))
            urls, anchors = found["urls"], found["anchors"]
            path, links = _path(*found["path"]), _links(urls, anchors, rest)
            batch = cls(found["url"], path, links, int(found["hops"]))
            canonical = all(canonicalise(url) == url for url in (batch.url, *urls))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a batch of links is damaged: {error!r}") from None
        if not canonical:
            raise ValueError("a batch of links holds a URL that is not canonical")
        return batch


def _unzipped(data: bytes) -> bytes:
    unzip = zlib.decompressobj()
    try:
        text = unzip.decompress(data, LARGEST_BATCH)
    except zlib.error as error:
        raise ValueError(f"a batch of links is damaged: {error}") from None
    if not unzip.eof or unzip.unused_data:
        raise ValueError("a batch of links is cut off, or too large")
    return text


def _path(reward: float, length: int, relevant: int, distance: int | None) -> Path:
    """Return a path from its numbers; raise ValueError if they are impossible."""
    path = Path(reward, length, relevant, math.inf if distance is None else distance)
    if not (math.isfinite(reward) and 0 <= relevant <= length and path.distance >= 1):
        raise ValueError("the path to its page is impossible")
    return path


def _links(urls: list[str], anchors: list[str], rest: bytes) -> Outlinks:
    """Return links from their texts and from the bytes of their numbers."""
    count = len(urls)
    features, counts = 4 * ACTIONS * count, 2 * count
    actions = np.frombuffer(rest[:features], "<f4").reshape(count, ACTIONS)
    sizes = np.frombuffer(rest[features : features + counts], "<u2").astype(np.int64)
    codes = np.frombuffer(rest[features + counts :], "<u4")
    texts = all(isinstance(text, str) for text in (*urls, *anchors))
    fits = texts and len(anchors) == len(sizes) == count and int(sizes.sum()) == len(codes)
    if not fits or not np.isfinite(actions).all() or (len(codes) and codes.max() >= CODES):
        raise ValueError("the parts of a batch of links do not fit")
    return Outlinks(urls, anchors, actions, RaggedArray(codes, sizes))
