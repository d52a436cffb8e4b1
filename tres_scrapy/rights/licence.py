"""The licences that a page names: links with rel=license, Creative Commons, schema.org."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.rights.signal import LICENCE, MAX_SIGNALS, MAX_VALUE, Signal

# A page without a mark names no licence. The words are found fast; most have no mark before them.
WORDS: Final = ("icense", "ICENSE")
COMMONS: Final = "creativecommons.org/"
MARK: Final = re.compile(
    r"""(?:rel|itemprop)\s*=\s*["']?[^"'>]{0,99}license|"license"$""", re.IGNORECASE
)
BEFORE: Final = 200  # characters before the end of a word in which its mark begins
MAX_WORDS: Final = 1_000  # of a page that are looked at
MAX_DATA: Final = 200_000  # characters of JSON-LD that are read
LINKS: Final = (
    '[rel~="license" i], [itemprop~="license"], a[href*="creativecommons.org/licenses/"], '
    'a[href*="creativecommons.org/publicdomain/"]'
)
DATA: Final = 'script[type="application/ld+json" i]'


def licences(tree: LexborHTMLParser, html: str, url: str) -> tuple[Signal, ...]:
    """Return the licences that a page names, each once, with absolute URLs."""
    if not _has_mark(html):
        return ()
    found = dict.fromkeys(islice(_named(tree, url), MAX_SIGNALS))
    return tuple(found)


def _has_mark(html: str) -> bool:
    if COMMONS in html:
        return True
    ends = islice((end for word in WORDS for end in _ends(html, word)), MAX_WORDS)
    return any(MARK.search(html, max(0, end - BEFORE), end + 1) for end in ends)


def _ends(html: str, word: str) -> Iterator[int]:
    """Yield the places after a word."""
    place = html.find(word)
    while place >= 0:
        yield place + len(word)
        place = html.find(word, place + len(word))


def _named(tree: LexborHTMLParser, url: str) -> Iterator[Signal]:
    for node in tree.css(LINKS):
        said = node.attributes
        value = said.get("href") or said.get("content") or node.text(strip=True)
        where = "link" if said.get("itemprop") is None else "microdata"
        if value:
            yield Signal(LICENCE, _absolute(url, value.strip()), where)
    left = MAX_DATA
    for node in tree.css(DATA):
        text = node.text()
        left -= len(text)
        if left < 0:
            return
        if '"license"' in text:
            try:
                data = json.loads(text)
                for value in _licences_in(data):
                    yield Signal(LICENCE, _absolute(url, value), "JSON-LD")
            except (ValueError, RecursionError):
                continue


def _licences_in(data: Any) -> Iterator[str]:
    if isinstance(data, list):
        for each in data:
            yield from _licences_in(each)
    elif isinstance(data, dict):
        for name, value in data.items():
            if name == "license":
                yield from _addresses(value)
            elif isinstance(value, list | dict):
                yield from _licences_in(value)


def _addresses(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        named = (each.get("@id") or each.get("url")) if isinstance(each, dict) else each
        if isinstance(named, str) and named.strip():
            yield named.strip()


def _absolute(url: str, value: str) -> str:
    try:
        return (value if " " in value else urljoin(url, value))[:MAX_VALUE]
    except ValueError:
        return value[:MAX_VALUE]
