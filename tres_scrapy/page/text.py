"""Parses a page into title, text and outlinks (P 2.2, 3.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.language import detect_language
from tres_scrapy.page.place import NOWHERE, WORD, Layout, Place, Span
from tres_scrapy.page.robots import US, Permission, permission_of
from tres_scrapy.rights.signal import Signal, licences, meta_signals
from tres_scrapy.url.canonical import PLAIN_URL, canonicalise

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from selectolax.lexbor import LexborNode

MAX_TAGS: Final = 20_000  # the parser takes quadratic time on hostile nesting
MAX_ALL_TAGS: Final = 2 * MAX_TAGS  # end tags too
MAX_ATTRIBUTES: Final = 500  # a tag with so many ends the page: it is quadratic in these too
MAX_READ: Final = 20_000_000  # characters of all tags; each "<a" may begin one
# Times the length of the page; of 12,346 pages of the web none has more than 1.2.
MAX_READ_EACH: Final = 10
SHORT: Final = 10_000  # characters; a page counts as this long at least
START_TAG: Final = re.compile("<[a-zA-Z]")
TAG: Final = re.compile("</?[a-zA-Z]")
# All that is looked at becomes a part of the match, so that its length is the work.
VALUE: Final = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"']*+)"""
ATTRIBUTE: Final = rf"[^\s/>][^\s/>=]*+\s*+(?:=\s*+{VALUE})?+[\s/]*+"
# Looks ahead, so that a tag in the text of another is found too: browsers differ from this pattern
# where quotes or comments are not closed.
START: Final = re.compile(
    rf"(?=(<[a-zA-Z][^\s/>]*+[\s/]*+(?:{ATTRIBUTE}){{0,{MAX_ATTRIBUTES - 1}}}+({ATTRIBUTE})?+))"
)


def parse(html: str) -> LexborHTMLParser:
    """Parse HTML, cut off where it has too many tags or attributes for the parser."""
    for tag, most in ((START_TAG, MAX_TAGS), (TAG, MAX_ALL_TAGS)):
        surplus = next(islice(tag.finditer(html), most, None), None)
        html = html if surplus is None else html[: surplus.start()]
    # a lone surrogate has no UTF-8 form
    return LexborHTMLParser(html[: _crowded(html)].encode("utf-8", "replace"))


def _crowded(html: str) -> int | None:
    """Return where the first tag with too many attributes begins, None without one.

    In a flood of tags that never end, each is as long as the rest of the page. After MAX_READ
    characters, or MAX_READ_EACH for each of the page, the page ends too.
    """
    left = min(MAX_READ, MAX_READ_EACH * max(SHORT, len(html)))
    for tag in START.finditer(html):
        start, end = tag.span(1)
        left -= end - start
        if left < 0 or tag[2] is not None:
            return start
    return None


MAX_BLOCKS: Final = 1_000  # nested blocks are quadratic: their text is read again
MIN_TEXT_WORDS: Final = 30
UNSEEN: Final = "script, style, noscript, template, svg, iframe, object"
BOILERPLATE: Final = (
    "nav, header, footer, aside, dialog, button, select, textarea, [hidden], [role=navigation],"
    "[role=banner], [role=contentinfo], [role=search], [role=dialog]"
)
LINKS: Final = "a[href], area[href]"
FOLLOWED: Final = "a[href]:not([rel~=nofollow i]), area[href]:not([rel~=nofollow i])"
REFRESH: Final = 'meta[http-equiv="refresh" i][content]:not(noscript *)'
REFRESH_TARGET: Final = re.compile(
    r"""[\s\d.]*+[;,]?\s*+url\s*+=\s*+(?:"([^"]++)|'([^']++)|([^"'].*+))""",
    re.IGNORECASE,
)
NO_TARGET: Final = "data:,"  # is no link
# A browser nests links only by way of other elements, such as a table or an object.
NESTED: Final = "a[href] a[href]"
NO_BASE: Final = "data:", "javascript:"
# Parameters that only scripts in the browser read: they do not change the page.
TRACKING: Final = re.compile(r"(?:utm_[a-z]+|fbclid|gclid|dclid|msclkid)(?:=|$)")
# Ends of the names of files that are not pages: pictures, sound, films, archives, programs, styles
# and fonts.
NO_PAGES: Final = frozenset(
    re.findall(
        r"\w+",
        """
        avif bmp gif heic ico jpeg jpg png psd svg tif tiff webp
        aac flac m4a mp3 oga ogg opus wav wma
        3gp avi flv m4v mkv mov mp4 mpeg mpg ogv webm wmv
        7z bz2 gz iso rar tar tgz xz zip zst
        apk bin deb dmg exe jar msi rpm
        css eot otf ttf woff woff2
        """,
    )
)
PLAIN_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9/._~-]*(\?[A-Za-z0-9/._~=&+-]+)?")
BLOCK: Final = "div, section, ul, ol, dl, table"
BLOCKS: Final = frozenset(BLOCK.split(", "))
MAX_TITLE_LENGTH: Final = 1_000
HTML: Final = "text/html"
FEED: Final = (
    'link[rel~=alternate i][type="application/rss+xml" i][href],'
    'link[rel~=alternate i][type="application/atom+xml" i][href]'
)
MAX_FEEDS: Final = 2
LEVELS: Final = 5  # most levels from a link up to its block
LINK_SHARE: Final = 0.7  # a block of two or more links with more of its text in links is a menu
CONTEXT_WORDS: Final = 10  # on each side of a link
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


LIMITS: Final = ReadingLimits()
MAX_TEXT: Final = 64 * 1024  # characters of the URLs and anchor texts of a page


class Link(NamedTuple):
    """An outlink: its canonical URL and its visible text."""

    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Page:
    """A fetched page as the reward model and the frontier see it."""

    url: str
    title: str
    text: str
    links: tuple[Link, ...]
    language: str = ""  # ISO 639-1, "" if unknown
    contexts: tuple[str, ...] = ()  # the words around each link, if requested
    places: tuple[Place, ...] = ()  # where each link stands, if requested
    canonical: str = ""  # the canonical URL on its host that it declares, if any
    may_be_kept: bool = True  # unless the page says noindex, and that is obeyed
    content_type: str = HTML
    feeds: tuple[str, ...] = ()  # RSS and Atom feeds that it names
    rights: tuple[Signal, ...] = ()  # what it and its site say about its use
    links_cut: int = 0  # links that were left out: they are too many or too long


def read_page(
    html: str,
    url: str,
    limits: ReadingLimits = LIMITS,
    *,
    contexts: bool = False,
    places: bool = False,
    language: bool = True,
    least_words: int = MIN_TEXT_WORDS,
    robots: Sequence[str] = (),
    crawler: str = US,
    declared: str = "",
) -> Page:
    """Parse a page once into its title, its text without boilerplate and its first outlinks.

    With `contexts`, read the words around each link too; with `places`, where it stands. Without
    `language`, do not detect the language. Keep the boilerplate if the text without it has
    `least_words` words or fewer. `robots` are the values of the header X-Robots-Tag, `crawler` is
    the name by which a page may address us. `declared` is the language that the server declares: it
    counts where the page itself declares none.
    """
    tree = parse(html[: limits.html])
    meta = _meta(tree)
    permission = permission_of(meta, robots, crawler) if limits.obey else Permission()
    rights = meta_signals(meta, crawler) + licences(tree, html, url)
    wanted = FOLLOWED if limits.obey else LINKS
    title = _text(tree.css_first("title"))[:MAX_TITLE_LENGTH]
    nested = {node.mem_id for node in tree.css(NESTED)}
    base = _base(tree, url)
    found = list(_outlinks(tree, base, wanted)) if permission.follow else []
    links, number = _links(found, url, limits, nested)
    nodes = [(target, node.mem_id) for target, node in found]
    canonical = _canonical(tree, url, base)
    feeds = _feeds(tree, base) if permission.follow else ()
    _drop(tree, UNSEEN)
    around: tuple[str, ...] = ()
    standing: tuple[Place, ...] = ()
    if contexts or places:
        layout, spans = _placed(tree, nodes, links)
        if contexts:
            around = tuple(layout.context(each, CONTEXT_WORDS) if each else "" for each in spans)
        if places:
            standing = tuple(layout.place(each) if each else NOWHERE for each in spans)
    whole = _text(tree.body)
    _drop(tree, BOILERPLATE)
    _drop(tree, BLOCK, _menus(tree, nested))
    main = _text(tree.body)
    enough = len(main.split(maxsplit=least_words)) > least_words
    text = main if enough else whole
    own = tree.root.attributes.get("lang") if tree.root is not None else None
    code = detect_language(text, own or declared) if language else ""
    rest = (code, around, standing, canonical, permission.keep)
    cut = number - len(links)
    return Page(url, title, text, links, *rest, feeds=feeds, links_cut=cut, rights=rights)


def _meta(tree: LexborHTMLParser) -> list[tuple[str, str]]:
    """Return name and content of the meta elements."""
    meta = (node.attributes for node in tree.css("meta[name][content]"))
    return [(each["name"] or "", each["content"] or "") for each in meta]


def _drop(tree: LexborHTMLParser, selector: str, only: Container[int] | None = None) -> None:
    for node in reversed(tree.css(selector)):  # inner first: dropping the outer node frees them
        if node.tag != "html" and (only is None or node.mem_id in only):  # the root must stay
            node.decompose()


def _menus(tree: LexborHTMLParser, nested: Container[int]) -> set[int]:
    """Return the ids of blocks with mostly link text: menus, teasers, tag clouds.

    The text of a nested link is part of the outer one.
    """
    blocks: dict[int, tuple[LexborNode, list[int]]] = {}
    for link in tree.css("a[href]"):
        if link.mem_id in nested:
            continue
        length, node = len(link.text()), link.parent
        for _ in range(LEVELS):
            if node is None:
                break
            if node.tag in BLOCKS:
                blocks.setdefault(node.mem_id, (node, []))[1].append(length)
            node = node.parent
    several = (block for block in blocks.values() if len(block[1]) > 1)
    return {
        node.mem_id
        for node, lengths in islice(several, MAX_BLOCKS)
        if sum(lengths) > LINK_SHARE * len(node.text())
    }


def _text(node: LexborNode | None) -> str:
    return " ".join(node.text(separator=" ").split()) if node is not None else ""


def _links(
    found: Iterable[tuple[str, LexborNode]],
    url: str,
    limits: ReadingLimits,
    nested: Container[int],
) -> tuple[tuple[Link, ...], int]:
    """Return the first links of a page, and the number of its links.

    Those `nested` in another have no text of their own.
    """
    itself = canonicalise(url)
    anchors: dict[str, str] = {}
    more: set[str] = set()
    for target, node in found:
        if target == itself:
            continue
        if target not in anchors and len(anchors) == limits.links:
            more.add(target)
            continue
        text = anchors.get(target, "")
        if not text and node.mem_id not in nested:
            text = _anchor(node)[: limits.anchor]
        anchors[target] = text
    links = bounded(Link(target, anchor) for target, anchor in anchors.items())
    return links, len(anchors) + len(more)


def bounded(links: Iterable[Link]) -> tuple[Link, ...]:
    """Return the first links, whose URLs and texts together have MAX_TEXT characters at most."""
    room, kept = MAX_TEXT, []
    for link in links:
        room -= len(link.url) + len(link.anchor)
        if room < 0:
            break
        kept.append(link)
    return tuple(kept)


def _placed(
    tree: LexborHTMLParser, nodes: Iterable[tuple[str, int]], links: tuple[Link, ...]
) -> tuple[Layout, list[Span | None]]:
    """Return where each link stands: at its first occurrence with a text, or its first.

    `nodes` are URLs and ids of their nodes, some of which may have been dropped.
    """
    layout = Layout.of(tree)
    spans: dict[str, Span] = {}
    for target, node in nodes:
        before = spans.get(target)
        if (before is None or before.start == before.end) and node in layout.spans:
            spans[target] = layout.spans[node]
    return layout, [spans.get(link.url) for link in links]


def _base(tree: LexborHTMLParser, url: str) -> str:
    """Return the URL that relative links begin from; browsers ignore a base that is broken."""
    node = tree.css_first("base[href]")
    named = "" if node is None else _join(url, node.attributes["href"])
    return url if not named or named.lower().startswith(NO_BASE) else named


def _outlinks(tree: LexborHTMLParser, base: str, wanted: str) -> Iterator[tuple[str, LexborNode]]:
    known: dict[str, str | None] = {}  # canonical URLs by what the page writes
    origin = base[: base.index("/", len("https://"))] if PLAIN_URL.fullmatch(base) else ""
    for node in tree.css(f"{wanted}, {REFRESH}"):
        href = _href(node)
        if href not in known:
            target = _clean(_absolute(base, origin, href))
            known[href] = target if target and may_be_page(target) else None
        if target := known[href]:
            yield target, node


def _href(node: LexborNode) -> str:
    """Return what a link, or a meta refresh, writes of its target."""
    if node.tag != "meta":
        return (node.attributes["href"] or "").strip()
    said = REFRESH_TARGET.match(node.attributes["content"] or "")
    return NO_TARGET if said is None else said[said.lastindex or 0].strip()


def resolve(base: str, href: str) -> str | None:
    """Return the canonical URL of a link without tracking parameters, None if it is not http(s)."""
    return _clean(_join(base, href))


def may_be_page(url: str) -> bool:
    """Return whether the name of a canonical URL does not end like that of a picture, say."""
    return url.partition("?")[0].rpartition(".")[2].lower() not in NO_PAGES


def _clean(url: str) -> str | None:
    target = canonicalise(url)
    return target and _untracked(target)


def _absolute(base: str, origin: str, href: str) -> str:
    """Return an absolute URL, in a tenth of the time of `urljoin` for most links."""
    if PLAIN_URL.fullmatch(href):
        return href
    if origin and PLAIN_PATH.fullmatch(href) and "/." not in href:
        return origin + href
    return _join(base, href)


def _untracked(url: str) -> str:
    place, _, query = url.partition("?")
    kept = "&".join(part for part in query.split("&") if not TRACKING.match(part))
    return f"{place}?{kept}" if kept else place


def _canonical(tree: LexborHTMLParser, url: str, base: str) -> str:
    node = tree.css_first("link[rel~=canonical i][href]")
    named = canonicalise(_join(base, node.attributes["href"])) if node is not None else None
    return named if named is not None and _site(named) == _site(url) else ""


def _feeds(tree: LexborHTMLParser, base: str) -> tuple[str, ...]:
    found = (resolve(base, node.attributes["href"] or "") for node in tree.css(FEED))
    return tuple(islice((each for each in found if each and "comments" not in each), MAX_FEEDS))


def _site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _join(base: str, href: str | None) -> str:
    try:
        return urljoin(base, href or "")
    except ValueError:
        return ""


def _anchor(node: LexborNode) -> str:
    image = None
    if node.tag == "a":  # an area is empty
        if text := _text(node):
            return text
        image = node.css_first("img[alt]")
    alt = image.attributes["alt"] if image is not None else None
    named = alt or node.attributes.get("alt") or node.attributes.get("title") or ""
    return " ".join(named.split())
