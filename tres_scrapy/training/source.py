"""A document before it is parsed, or the reason why it could not be read (P 3.1)."""

from __future__ import annotations

import lzma
import zlib
from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from w3lib.encoding import html_to_unicode

from tres_scrapy.page.file import printable

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
    try:
        return html_to_unicode(content_type, data, auto_detect_fun=_guess)[1]
    except (LookupError, UnicodeError):  # not a text codec, such as hex or punycode
        return data.decode(_guess(data), "replace")


def _guess(data: bytes) -> str:
    try:
        # a page cut at MAX_BYTES may end within a character
        getincrementaldecoder("utf-8")().decode(data, final=len(data) < MAX_BYTES)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
