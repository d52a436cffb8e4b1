"""What the crawler reads on a page: title, text and outlinks (P 2.2, 3.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from selectolax.lexbor import LexborHTMLParser
from w3lib.url import safe_url_string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborNode

MAX_URL_LENGTH: Final = 2_000
MAX_HTML_LENGTH: Final = 500_000  # the parser takes quadratic time on hostile nesting
MIN_TEXT_WORDS: Final = 30
WORD: Final = re.compile(r"[^\W\d_]{2,}")
HOST: Final = re.compile(r"([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:]*:[0-9a-f:.]*")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
UNSEEN: Final = "script, style, noscript, template, svg, iframe, object"
BOILERPLATE: Final = "nav, header, footer, aside"
STOP_WORDS: Final = frozenset(
    WORD.findall("""
    about above after again against all also am an and any are as at be because been before being
    below between both but by can cannot could did do does doing don down during each else etc ever
    every few for from further had has have having he her here hers herself him himself his how if
    in into is isn it its itself just ll let may me might more most much must my myself no nor not
    now of off on once one only onto or other our ours ourselves out over own per re same shall she
    should since so some such than that the their theirs them themselves then there these they this
    those though through to too under until up upon us ve very via was wasn we were what when where
    whether which while who whom whose why will with within without won would yet you your yours
    yourself yourselves
    """)
)


class Link(NamedTuple):
    """An outlink: its canonical URL and the text that a reader sees on it."""

    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Page:
    """A fetched page as the reward model and the frontier see it."""

    url: str
    title: str
    text: str
    links: tuple[Link, ...]


def tokenise(text: str) -> list[str]:
    """Return the lower-case runs of two or more letters, of any script, in order."""
    return WORD.findall(text.lower())


def canonicalise(url: str) -> str | None:
    """Return the URL as a browser would ask for it, or None when it cannot be fetched.

    Only what no server sees is made alike: case of scheme and host, default port, fragment, the
    empty path and escapes. The query is left in its order, which servers do see.
    """
    if len(url) > MAX_URL_LENGTH:
        return None
    try:
        parts = urlsplit(safe_url_string(url))
        host, port = parts.hostname or "", parts.port
    except ValueError:  # a bad port, bracket or international name
        return None
    if parts.scheme not in DEFAULT_PORTS or port == 0 or HOST.fullmatch(host) is None:
        return None
    user, at, _ = parts.netloc.rpartition("@")
    place = f"[{host}]" if ":" in host else host
    place += "" if port in {None, DEFAULT_PORTS[parts.scheme]} else f":{port}"
    canonical = urlunsplit((parts.scheme, user + at + place, parts.path or "/", parts.query, ""))
    return canonical if len(canonical) <= MAX_URL_LENGTH else None


def read_page(html: str, url: str, *, max_links: int = 1000) -> Page:
    """Parse a page once into its title, its text without boilerplate and its first outlinks."""
    # a lone surrogate has no UTF-8 form
    tree = LexborHTMLParser(html[:MAX_HTML_LENGTH].encode("utf-8", "replace"))
    title = _text(tree.css_first("title"))
    links = _links(tree, url, max_links)
    for node in tree.css(UNSEEN):
        node.decompose()
    whole = _text(tree.body)
    for node in tree.css(BOILERPLATE):
        node.decompose()
    main = _text(tree.body)
    enough = len(main.split(maxsplit=MIN_TEXT_WORDS)) > MIN_TEXT_WORDS
    return Page(url, title, main if enough else whole, links)


def _text(node: LexborNode | None) -> str:
    return " ".join(node.text(separator=" ").split()) if node is not None else ""


def _links(tree: LexborHTMLParser, url: str, max_links: int) -> tuple[Link, ...]:
    itself = canonicalise(url)
    anchors: dict[str, str] = {}
    for target, anchor in _outlinks(tree, url):
        if target == itself or (target not in anchors and len(anchors) == max_links):
            continue
        anchors[target] = anchors.get(target) or anchor
    return tuple(Link(target, anchor) for target, anchor in anchors.items())


def _outlinks(tree: LexborHTMLParser, url: str) -> Iterator[tuple[str, str]]:
    base = tree.css_first("base[href]")
    root = url if base is None else _join(url, base.attributes["href"])
    known: dict[str, str | None] = {}
    for node in tree.css("a[href], area[href]"):
        href = (node.attributes["href"] or "").strip()
        if href not in known:
            known[href] = canonicalise(_join(root, href))
        if target := known[href]:
            yield target, _anchor(node)


def _join(base: str, href: str | None) -> str:
    try:
        return urljoin(base, href or "")
    except ValueError:
        return ""


def _anchor(node: LexborNode) -> str:
    if text := _text(node):
        return text
    image = node.css_first("img[alt]")
    alt = image.attributes["alt"] if image is not None else None
    return " ".join(
        (alt or node.attributes.get("alt") or node.attributes.get("title") or "").split()
    )
