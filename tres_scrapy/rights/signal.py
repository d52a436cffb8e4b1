"""What a page and its headers say about its use: signals, reserved uses, licences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

SEARCH, AI_INPUT, AI_TRAIN = USES = ("search", "ai-input", "ai-train")
CONTENT_SIGNAL, CONTENT_USAGE = "Content-Signal", "Content-Usage"
TDM_RESERVATION, TDM_POLICY = "tdm-reservation", "tdm-policy"
LICENCE = "license"
NONE: Final = "none"  # the signal of a page without signals; `where` says what was read
UNAVAILABLE: Final = "unavailable_after"
MAX_VALUE: Final = 300  # characters kept of a value
MAX_SIGNALS: Final = 30  # of a page, from each place
AI: Final = frozenset({AI_INPUT, AI_TRAIN})
NOTHING: Final[frozenset[str]] = frozenset()
# Directives of meta robots and X-Robots-Tag, and the uses that each reserves.
DIRECTIVES: Final[Mapping[str, frozenset[str]]] = {
    "noai": AI,
    "noimageai": NOTHING,  # for images, which are not in the output
    "noarchive": AI,
    "nosnippet": frozenset({AI_INPUT}),
    "noindex": frozenset({SEARCH}),
}
_LABELS: Final = {"search": SEARCH, "train-ai": AI_TRAIN}  # of Content-Usage
# A dictionary of RFC 9651: members `key=value;parameters`, of which only tokens matter here.
_KEY: Final = r"[a-z*][a-z0-9_.*-]*+"
_ITEM: Final = (
    r"""(?:"(?:[ !#-\[\]-~]|\\["\\])*+"|:[A-Za-z0-9+/=]*+:|\?[01]|@-?\d{1,15}|"""
    r"""-?\d{1,15}(?:\.\d{1,3})?|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*+)"""
)
_PARAMETERS: Final = rf"(?:; *{_KEY}(?:={_ITEM})?)*+"
_LIST: Final = rf"\( *(?:{_ITEM}{_PARAMETERS}(?: +|(?=\))))*+\)"
_MEMBER: Final = re.compile(rf"({_KEY})(?:=({_ITEM}|{_LIST}))?{_PARAMETERS}[ \t]*+(?:,[ \t]*+|$)")
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


class Signal(NamedTuple):
    """What was said about the use of a page: where it stood, and when it was read (ISO 8601)."""

    signal: str
    value: str
    where: str
    when: str = ""


def reserved_uses(signals: Iterable[Signal], now: datetime | None = None) -> frozenset[str]:
    """Return the uses that any of the signals reserves: what one allows lifts no other."""
    now = now or datetime.now(UTC)
    found = (_RULES.get(each.signal.lower(), _directive)(each, now) for each in signals)
    return frozenset().union(*found)


def preferences(text: str) -> dict[str, str]:
    """Return the values `y` and `n` of a Content-Usage by label; none if it cannot be parsed."""
    found: dict[str, str] = {}
    text, place = text.strip(" \t"), 0
    while place < len(text):
        member = _MEMBER.match(text, place)
        if member is None:
            return {}
        found[member[1]] = member[2] or ""
        place = member.end()
    if text.endswith(","):
        return {}
    return {label: value for label, value in found.items() if value in {"y", "n"}}


def as_items(signals: Iterable[Signal]) -> list[dict[str, str]]:
    """Return signals as the item of a page and the file of a run hold them."""
    return [each._asdict() for each in signals]


def _content_signal(signal: Signal, now: datetime) -> frozenset[str]:
    said = (part.partition("=") for part in signal.value.lower().split(","))
    denied = frozenset(name.strip() for name, _, value in said if value.strip() == "no")
    return denied.intersection(USES)


def _content_usage(signal: Signal, now: datetime) -> frozenset[str]:
    said = preferences(signal.value)
    return frozenset(use for label, use in _LABELS.items() if said.get(label) == "n")


def _reservation(signal: Signal, now: datetime) -> frozenset[str]:
    return AI if signal.value.strip() == "1" else NOTHING


def _unavailable(signal: Signal, now: datetime) -> frozenset[str]:
    """Reserve a page from a date on; a date that cannot be read counts as past."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            until = read(signal.value.strip())
        except (ValueError, OverflowError):
            continue
        until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
        return frozenset(USES) if until <= now else NOTHING
    return frozenset(USES)


def _directive(signal: Signal, now: datetime) -> frozenset[str]:
    return DIRECTIVES.get(signal.signal, NOTHING)


_RULES: Final[Mapping[str, Callable[[Signal, datetime], frozenset[str]]]] = {
    CONTENT_SIGNAL.lower(): _content_signal,
    CONTENT_USAGE.lower(): _content_usage,
    TDM_RESERVATION: _reservation,
    UNAVAILABLE: _unavailable,
}


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
