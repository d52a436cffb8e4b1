"""The links of one page to the domains of another shard, as they travel to it."""

from __future__ import annotations

import json
import math
import zlib
from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import ACTION, Path
from tres_scrapy.links.code import CODES, RaggedArray, silent
from tres_scrapy.url.canonical import canonicalise

ACTIONS: Final = ACTION.stop - ACTION.start
LARGEST: Final = 64 * 2**20  # bytes of an unpacked parcel
_LEVEL: Final = 1  # of zlib: higher ones take more time for little


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
        """Return the parcel as bytes."""
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
        """Return the parcel that was packed; raise ValueError if it is damaged."""
        head, _, rest = _unzipped(data).partition(b"\n")
        try:
            found = json.loads(head.decode("utf-8", "surrogatepass"))
            urls, anchors = found["urls"], found["anchors"]
            path, links = _path(*found["path"]), _links(urls, anchors, rest)
            parcel = cls(found["url"], path, links, int(found["hops"]))
            canonical = all(canonicalise(url) == url for url in (parcel.url, *urls))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a parcel of links is damaged: {error!r}") from None
        if not canonical:
            raise ValueError("a parcel of links holds a URL that is not canonical")
        return parcel


def _unzipped(data: bytes) -> bytes:
    unzip = zlib.decompressobj()
    try:
        text = unzip.decompress(data, LARGEST)
    except zlib.error as error:
        raise ValueError(f"a parcel of links is damaged: {error}") from None
    if not unzip.eof or unzip.unused_data:
        raise ValueError("a parcel of links is cut off, or too large")
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
        raise ValueError("the parts of a parcel of links do not fit")
    return Outlinks(urls, anchors, actions, RaggedArray(codes, sizes))
