"""What meta elements and headers of a page say about its use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from tres_scrapy.rights.signal import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DIRECTIVES,
    MAX_SIGNALS,
    MAX_VALUE,
    TDM_POLICY,
    TDM_RESERVATION,
    UNAVAILABLE,
    Signal,
)

EVERY: Final = "robots"  # the name of meta elements for every crawler
ROBOTS_HEADER: Final = "X-Robots-Tag"
HEADERS: Final = (ROBOTS_HEADER, CONTENT_SIGNAL, CONTENT_USAGE, TDM_RESERVATION, TDM_POLICY)
_CRAWLER: Final = re.compile(r"\s*([\w-]+)\s*:")
# Directives of X-Robots-Tag that look like the name of a crawler
_WITH_VALUE: Final = re.compile(r"\s*(?:unavailable_after|max-[a-z-]+)\s*:", re.IGNORECASE)
_DATE: Final = re.compile(
    rf"{UNAVAILABLE}\s*:\s*(.*?)\s*(?:,\s*(?=(?:no|max-|all|index|follow|unav)[a-z-]*\s*(?:[,:]|$))|$)",
    re.IGNORECASE,
)


def said_to_us(value: str, crawler: str) -> str:
    """Return the directives in a value of X-Robots-Tag, "" if they are for another crawler."""
    named = None if _WITH_VALUE.match(value) else _CRAWLER.match(value)
    if named is None:
        return value
    return value[named.end() :] if named[1].lower() in {EVERY, crawler} else ""


def meta_signals(meta: Iterable[tuple[str, str]], crawler: str) -> tuple[Signal, ...]:
    """Return the signals of the meta elements of a page, given by name and content."""
    found = (
        signal
        for name, content in meta
        for signal in _of_meta(name.strip().lower(), content[:MAX_VALUE], crawler)
    )
    return tuple(islice(found, MAX_SIGNALS))


def _of_meta(name: str, content: str, crawler: str) -> Iterator[Signal]:
    if name in {EVERY, crawler}:
        yield from _directives(content, f"meta {name}")
    elif name in {TDM_RESERVATION, TDM_POLICY}:
        yield Signal(name, content.strip(), f"meta {name}")


def header_signals(headers: Iterable[tuple[str, str]], crawler: str) -> tuple[Signal, ...]:
    """Return the signals of an answer's HEADERS, given by name and value, each value alone.

    Several Content-Usage headers are one dictionary (RFC 9651), so they must be joined before.
    """
    found: list[Signal] = []
    for name, value in headers:
        said, where = value.strip()[:MAX_VALUE], f"header {name}"
        if name == ROBOTS_HEADER:
            found += _directives(said_to_us(said, crawler), where)
        else:
            found.append(Signal(name, said, where))
    return tuple(found[:MAX_SIGNALS])


def _directives(text: str, where: str) -> Iterator[Signal]:
    if (date := _DATE.search(text)) is not None:
        yield Signal(UNAVAILABLE, date[1], where)
        text = f"{text[: date.start()]},{text[date.end() :]}"
    for word in dict.fromkeys(part.strip().lower() for part in text.split(",")):
        if (name := "noindex" if word == "none" else word) in DIRECTIVES:
            yield Signal(name, "", where)
