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
from tres_scrapy.url.canonical import canonicalise

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from selectolax.lexbor import LexborNode

MAX_TAGS: Final = 20_000  # the parser takes quadratic time on hostile nesting
MAX_ATTRIBUTES: Final = 500  # of one tag: it is quadratic in these too
MAX_BLOCKS: Final = 1_000  # and in nested blocks, whose text is read again
MIN_TEXT_WORDS: Final = 30
WORD: Final = re.compile(r"[^\W\d_]{2,}")
UNSEEN: Final = "script, style, noscript, template, svg, iframe, object"
BOILERPLATE: Final = (
    "nav, header, footer, aside, dialog, button, select, textarea, [hidden], [role=navigation],"
    "[role=banner], [role=contentinfo], [role=search], [role=dialog]"
)
START_TAG: Final = re.compile("<[a-zA-Z]")
CROWDED_TAG: Final = re.compile(
    r"""<[a-zA-Z][^\s/>]*+
    (?:[\s/]*+ [^\s/>][^\s/>=]*+ (?:\s*+=\s*+ (?:"[^"]*+" | '[^']*+' | [^\s>"']*+))?+)"""
    f"{{{MAX_ATTRIBUTES}}}",
    re.VERBOSE,
)
# Parameters that only scripts in the browser read: they do not change the page.
TRACKING: Final = re.compile(r"(?:utm_[a-z]+|fbclid|gclid|dclid|msclkid)(?:=|$)")
BLOCK: Final = "div, section, ul, ol, dl, table"
BLOCKS: Final = frozenset(BLOCK.split(", "))
MAX_TITLE_LENGTH: Final = 1_000
LEVELS: Final = 5  # most levels from a link up to its block
LINK_SHARE: Final = 0.7  # a block of two or more links with more of its text in links is a menu
LINKS: Final = frozenset({"a", "area"})
CONTEXT_WORDS: Final = 10  # on each side of a link
MAX_DEPTH: Final = 24  # tags of a path, counted from the link
MAX_NAMES: Final = 3  # of a tag in a path: its id and classes
MAX_WORD_LENGTH: Final = 50  # a longer word would be repeated in the context of many links
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
    canonical: str = ""  # the canonical URL on its host that it declares, if any
    paths: tuple[str, ...] = ()  # the tags from the root to each link, requested with the contexts


def tokenise(text: str) -> list[str]:
    """Return the lower-case runs of two or more letters, of any script, in order."""
    return WORD.findall(text.lower())


def read_page(
    html: str,
    url: str,
    limits: ReadingLimits = LIMITS,
    *,
    contexts: bool = False,
    language: bool = True,
    least_words: int = MIN_TEXT_WORDS,
) -> Page:
    """Parse a page once into its title, its text without boilerplate and its first outlinks.

    With `contexts`, read the words around each link too, and the tags from the root to it; without
    `language`, do not detect the language. Keep the boilerplate if the text without it has
    `least_words` words or fewer.
    """
    tree = parse(html[: limits.html])
    title = _text(tree.css_first("title"))[:MAX_TITLE_LENGTH]
    links = _links(tree, url, limits)
    canonical = _canonical(tree, url)
    paths = _paths(tree, url, links) if contexts else ()
    _drop(tree, UNSEEN)
    around = _contexts(tree, url, links) if contexts else ()
    whole = _text(tree.body)
    _drop(tree, BOILERPLATE)
    _drop(tree, BLOCK, _menus(tree, room=limits.html))
    main = _text(tree.body)
    enough = len(main.split(maxsplit=least_words)) > least_words
    text = main if enough else whole
    declared = tree.root.attributes.get("lang") if tree.root is not None else None
    code = detect_language(text, declared or "") if language else ""
    return Page(url, title, text, links, code, around, canonical, paths)


def parse(html: str) -> LexborHTMLParser:
    """Parse HTML, cut off where it has too many tags or attributes for the parser."""
    surplus = next(islice(START_TAG.finditer(html), MAX_TAGS, None), None)
    html = html if surplus is None else html[: surplus.start()]
    surplus = CROWDED_TAG.search(html)
    html = html if surplus is None else html[: surplus.start()]
    # a lone surrogate has no UTF-8 form
    return LexborHTMLParser(html.encode("utf-8", "replace"))


def _drop(tree: LexborHTMLParser, selector: str, only: Container[int] | None = None) -> None:
    for node in reversed(tree.css(selector)):  # inner first: dropping the outer node frees them
        if node.tag != "html" and (only is None or node.mem_id in only):  # the root must stay
            node.decompose()


def _menus(tree: LexborHTMLParser, room: int) -> set[int]:
    """Return the ids of blocks with mostly link text: menus, teasers, tag clouds."""
    blocks: dict[int, tuple[LexborNode, list[int]]] = {}
    for link in tree.css("a[href]"):
        length, node = len(link.text()), link.parent
        room -= length
        if room < 0:  # nested links: each repeats the text of its inner links
            break
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


def _links(tree: LexborHTMLParser, url: str, limits: ReadingLimits) -> tuple[Link, ...]:
    itself = canonicalise(url)
    anchors: dict[str, str] = {}
    for target, node in _outlinks(tree, url):
        if target == itself or (target not in anchors and len(anchors) == limits.links):
            continue
        anchors[target] = anchors.get(target) or _anchor(node)[: limits.anchor]
    return tuple(Link(target, anchor) for target, anchor in anchors.items())


def _contexts(tree: LexborHTMLParser, url: str, links: tuple[Link, ...]) -> tuple[str, ...]:
    """Return the words before and after each link, at its first occurrence with a text."""
    words, spans = _spans(tree)
    places: dict[str, tuple[int, int]] = {}
    for target, node in _outlinks(tree, url):
        start, end = places.get(target, (0, 0))
        if start == end and node.mem_id in spans:
            places[target] = spans[node.mem_id]
    contexts = dict.fromkeys((link.url for link in links), "")
    for target in contexts.keys() & places.keys():
        start, end = places[target]
        before = words[max(0, start - CONTEXT_WORDS) : start]
        contexts[target] = " ".join(before + words[end : end + CONTEXT_WORDS])
    return tuple(contexts.values())


def _paths(tree: LexborHTMLParser, url: str, links: tuple[Link, ...]) -> tuple[str, ...]:
    """Return the tags from the root to the first occurrence of each link, separated by spaces.

    Each tag has its id and classes, as in `html body div#main.wide ul.menu li a`.
    """
    first: dict[str, LexborNode] = {}
    for target, node in _outlinks(tree, url):
        first.setdefault(target, node)
    steps: dict[int, str] = {}  # of a node, by its id
    return tuple(_path(first[link.url], steps) for link in links)


def _path(link: LexborNode, steps: dict[int, str]) -> str:
    path: list[str] = []
    node: LexborNode | None = link
    while node is not None and node.tag != "-document" and len(path) < MAX_DEPTH:
        if node.mem_id not in steps:
            steps[node.mem_id] = _step(node)
        path.append(steps[node.mem_id])
        node = node.parent
    return " ".join(reversed(path))


def _step(node: LexborNode) -> str:
    attributes = node.attributes
    identity = (attributes.get("id") or "").split()
    classes = (attributes.get("class") or "").split()
    names = [f"#{identity[0]}"] if identity else []
    names = [*names, *(f".{name}" for name in classes)][:MAX_NAMES]
    return "".join([node.tag or "", *(name[:MAX_WORD_LENGTH] for name in names)])


def _spans(tree: LexborHTMLParser) -> tuple[list[str], dict[int, tuple[int, int]]]:
    """Return the words of a page and, by link id, the range of words inside the link."""
    words: list[str] = []
    spans: dict[int, tuple[int, int]] = {}
    for node in _walk(tree.body):
        if node.tag == "-text":
            found = tokenise(node.text_content or "")
            words += [word for word in found if len(word) <= MAX_WORD_LENGTH]
        elif node.tag in LINKS:
            start, _ = spans.get(node.mem_id, (len(words), 0))
            spans[node.mem_id] = start, len(words)
    return words, spans


def _walk(root: LexborNode | None) -> Iterator[LexborNode]:
    """Yield the nodes below `root` in document order, each link at its start and at its end."""
    waiting = [(root.child if root is not None else None, False)]
    while waiting:
        node, left = waiting.pop()
        if node is None:
            continue
        yield node
        if not left:
            waiting.append((node.next, False))
            if node.tag in LINKS:
                waiting.append((node, True))
            waiting.append((node.child, False))


def _outlinks(tree: LexborHTMLParser, url: str) -> Iterator[tuple[str, LexborNode]]:
    base = tree.css_first("base[href]")
    root = url if base is None else _join(url, base.attributes["href"])
    known: dict[str, str | None] = {}
    for node in tree.css("a[href], area[href]"):
        href = (node.attributes["href"] or "").strip()
        if href not in known:
            target = canonicalise(_join(root, href))
            known[href] = target and _untracked(target)
        if target := known[href]:
            yield target, node


def _untracked(url: str) -> str:
    place, mark, query = url.partition("?")
    kept = [part for part in query.split("&") if not TRACKING.match(part)]
    return place + mark + "&".join(kept) if kept else place


def _canonical(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("link[rel~=canonical i][href]")
    named = canonicalise(_join(url, node.attributes["href"])) if node is not None else None
    return named if named is not None and _site(named) == _site(url) else ""


def _site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


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
    named = alt or node.attributes.get("alt") or node.attributes.get("title") or ""
    return " ".join(named.split())
