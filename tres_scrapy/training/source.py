"""A document before it is parsed, or the reason why it could not be read (P 3.1)."""

from __future__ import annotations

import lzma
import zlib
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tres_scrapy.page.encoding import UTF_8, declared_encoding, decoded, is_utf_8
from tres_scrapy.url.message import printable

# `html` or `text`; `place`: file and position; `title`, `url` and `host` if known
Record: TypeAlias = dict[str, Any]


MAX_BYTES: Final = 8 * 1024 * 1024  # of a page, as in the crawl
# errors of truncated or damaged compressed files
BROKEN: Final = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that could not be read: its file and position, and the reason."""

    place: str
    reason: str

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.reason}")


def decode(data: bytes, content_type: str | None = None) -> str:
    """Decode by byte order mark, HTTP header or meta element, else as UTF-8, else as cp1252."""
    encoding = declared_encoding(data, content_type) or _guess(data)
    return decoded(data, encoding, len(data))


def _guess(data: bytes) -> str:
    return UTF_8 if is_utf_8(data, is_cut=len(data) >= MAX_BYTES) else "cp1252"
