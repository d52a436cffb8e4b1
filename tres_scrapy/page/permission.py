"""What a page asks of crawlers: meta robots, X-Robots-Tag."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

EVERY: Final = "robots"  # the name of meta elements for every crawler
US: Final = "tres-scrapy"  # for this one, unless its User-Agent has another name
_CRAWLER: Final = re.compile(r"\s*([\w-]+)\s*:")
# Directives of X-Robots-Tag that look like the name of a crawler
_WITH_VALUE: Final = re.compile(r"\s*(?:unavailable_after|max-[a-z-]+)\s*:", re.IGNORECASE)


class Permission(NamedTuple):
    """Whether a page may be kept, and whether its links may be followed."""

    keep: bool = True
    follow: bool = True


def permission_of(
    meta: Iterable[tuple[str, str]], headers: Iterable[str], crawler: str = US
) -> Permission:
    """Return what a page permits: the strictest of all that is said to every crawler or to us.

    `meta` are the names and contents of its meta elements, `headers` the values of X-Robots-Tag,
    `crawler` is our name.
    """
    names = {EVERY, crawler}
    said: set[str] = set()
    for name, content in meta:
        if name.strip().lower() in names:
            said |= _words(content)
    for value in headers:
        named = None if _WITH_VALUE.match(value) else _CRAWLER.match(value)
        if named is None or named[1].lower() in names:
            said |= _words(value[named.end() :] if named else value)
    return Permission(said.isdisjoint({"noindex", "none"}), said.isdisjoint({"nofollow", "none"}))


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.lower().split(",")}
