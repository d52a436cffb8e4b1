"""The text of a fetched page as the judge read it, packed for the file of a run."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple, Self

from tres_scrapy.page.text import Page
from tres_scrapy.rights.signal import Signal

LEVEL: Final = 4  # 2.6 kB for a page of sites.warc.gz, in 0.09 ms; level 6 saves 1 % for 0.02 ms
LARGEST: Final = 50_000_000  # bytes of an unpacked text: no page that was read has more


class StoredText(NamedTuple):
    """Title and main text of a page, the texts of its links, mostly menus, and its rights."""

    title: str = ""
    text: str = ""
    links: tuple[str, ...] = ()
    rights: tuple[Signal, ...] = ()

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """Return a packed text; raise ValueError if it is damaged."""
        stream = zlib.decompressobj()
        try:
            title, text, links = json.loads(stream.decompress(data, LARGEST))
        except zlib.error as error:
            raise ValueError(str(error)) from None
        return cls(str(title), str(text), tuple(map(str, links)))


def packed(page: Page) -> bytes:
    """Return title, main text and link texts of a page as compressed JSON."""
    found = page.title, page.text, [link.anchor for link in page.links]
    return zlib.compress(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"), LEVEL)


def rights_in(rows: Iterable[tuple[str]]) -> tuple[Signal, ...]:
    """Return the signals in rows of the table `rights`."""
    return tuple(Signal(*map(str, each)) for (value,) in rows for each in json.loads(value))


def mark_of(data: bytes) -> int:
    """Return a hash of a packed text, as a 64-bit integer with a sign."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), signed=True)
