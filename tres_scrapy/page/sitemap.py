"""Reads sitemaps (sitemaps.org), RSS and Atom feeds, as pages of links."""

from __future__ import annotations

import re
import zlib
from email.utils import parsedate_to_datetime
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from lxml import etree

from tres_scrapy.page.place import WORDS, Place, tokenise
from tres_scrapy.page.text import LIMITS, Link, Page, bounded, may_be_page, resolve
from tres_scrapy.url.canonical import domain_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tres_scrapy.config.limit import ReadingLimits

INDEX, SITEMAP, FEED = "sitemap index", "sitemap", "feed"  # as the content type of the page
KINDS: Final = {"sitemapindex": INDEX, "urlset": SITEMAP, "rss": FEED, "rdf": FEED, "feed": FEED}
ENTRIES: Final = frozenset({"url", "sitemap", "item", "entry"})
DATES: Final = frozenset({"lastmod", "pubdate", "updated", "published", "date"})
TEXTS: Final = frozenset({"description", "summary"})
MAX_BYTES: Final = 16 << 20  # unpacked; what follows is not read
MAX_ENTRIES: Final = 50_000  # as the protocol allows
MAX_EVENTS: Final = 1_000_000  # starts and ends of elements; what follows is not read
MAX_TEXT: Final = 2_000  # characters read of an element
GZIP: Final = b"\x1f\x8b"
GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
ENTITY: Final = re.compile(rb"<!\s*ENTITY", re.IGNORECASE)
MARKUP: Final = re.compile(r"<[^>]*>")
MONTH: Final = re.compile(r"\d{4}-\d\d")


class SitemapError(ValueError):
    """Raised when a file is not a sitemap or feed, or declares entities."""


class Entry(NamedTuple):
    """An entry as written; `month` is YYYY-MM of its last change, "" if unknown."""

    target: str
    title: str = ""
    month: str = ""
    text: str = ""


def read_sitemap(
    body: bytes,
    url: str,
    limits: ReadingLimits = LIMITS,
    has_keyword: Callable[[str], bool] = lambda url: False,
) -> Page:
    """Return a sitemap or feed as a page whose content type is its kind.

    Of more than `limits.links` URLs those with a keyword come first, then those changed last. A
    sitemap may only name URLs of the same domain. Raise SitemapError if it cannot be read.
    """
    kind, entries = _entries(_unpacked(body))
    own = domain_of(url)
    found: dict[str, Entry] = {}
    for entry in entries:
        target = resolve(url, entry.target) if entry.target else None
        if target is None or (kind != INDEX and not may_be_page(target)):  # sitemaps may be packed
            continue
        if kind == FEED or domain_of(target) == own:
            found.setdefault(target, entry)
    ranked = list(found.items())
    if len(ranked) > limits.links:
        ranked.sort(key=lambda pair: pair[1].month, reverse=True)
        ranked.sort(key=lambda pair: not has_keyword(pair[0]))
    links = bounded(Link(to, entry.title[: limits.anchor]) for to, entry in ranked[: limits.links])
    kept = ranked[: len(links)]
    words = [tokenise(entry.text)[:WORDS] for _, entry in kept]
    changed = [_changed(entry.month) for _, entry in kept]
    around = [(kind, *said, *when) for said, when in zip(words, changed, strict=True)]
    return Page(
        url,
        "",
        "",
        links,
        contexts=tuple(map(" ".join, words)),
        places=tuple(map(Place, around)),
        content_type=kind,
        links_cut=len(ranked) - len(links),
    )


def _changed(month: str) -> tuple[str, ...]:
    return (f"changed {month[:4]}", f"changed {month}") if month else ()


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(GZIP):
        return body[:MAX_BYTES]
    try:
        return zlib.decompressobj(GZIP_OR_ZLIB).decompress(body, MAX_BYTES)
    except zlib.error as error:
        raise SitemapError(f"it cannot be unpacked: {error}") from None


def _entries(text: bytes) -> tuple[str, Iterator[Entry]]:
    """Return the kind of a file and its entries."""
    start = text.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"http://", b"https://")):
        lines = start.decode("utf-8", "replace").split("\n", MAX_ENTRIES)[:MAX_ENTRIES]
        return SITEMAP, (Entry(line.strip()) for line in lines)
    if ENTITY.search(text):
        raise SitemapError("it declares entities")
    events = etree.iterparse(
        BytesIO(start),
        events=("start", "end"),
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        _, root = next(events)
    except (StopIteration, etree.XMLSyntaxError):
        raise SitemapError("it is not XML") from None
    kind = KINDS.get(_name(root))
    if kind is None:
        raise SitemapError("it is neither a sitemap nor a feed")
    return kind, _elements(events)


def _elements(events: Iterator[tuple[str, etree._Element]]) -> Iterator[Entry]:
    count = 0
    try:
        for event, element in islice(events, MAX_EVENTS):
            if event == "end" and _name(element) in ENTRIES:
                yield _entry(element)
                element.clear()
                while (before := element.getprevious()) is not None:  # or they fill the memory
                    before.getparent().remove(before)
                count += 1
                if count == MAX_ENTRIES:
                    return
    except etree.XMLSyntaxError:  # what came before it counts
        return


def _entry(element: etree._Element) -> Entry:
    said: dict[str, str] = {}
    for each in element.iterdescendants():
        name = _name(each)
        text = " ".join((each.text or "")[:MAX_TEXT].split())
        if name == "link" and (each.get("rel") or "alternate") == "alternate":
            said.setdefault("loc", text or each.get("href") or "")
        elif name in DATES:
            said["month"] = max(said.get("month", ""), _month(text))
        elif name in TEXTS:
            said.setdefault("text", MARKUP.sub(" ", text))
        elif text:
            said.setdefault(name, text)
    target = said.get("loc", "")
    return Entry(target, said.get("title", ""), said.get("month", ""), said.get("text", ""))


def _month(text: str) -> str:
    if MONTH.match(text):
        return text[:7]
    try:
        return parsedate_to_datetime(text).strftime("%Y-%m")
    except (ValueError, OverflowError):  # a zone of years
        return ""


def _name(element: etree._Element) -> str:
    tag = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
