"""Reads pages of results: the links to records, the text of each record, and the next page.

A site is first asked for random words that no record holds. The links on those pages, and their
places in the document, are the template of the site.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tres_scrapy.page.place import MAX_WORD_LENGTH, WORD
from tres_scrapy.page.text import STOP_WORDS, parse
from tres_scrapy.surface.acquired import Token
from tres_scrapy.surface.search_box import MOST_HTML
from tres_scrapy.url.canonical import canonicalise

MOST_LINKS: Final = 1_000
MOST_WORDS: Final = 400  # of a record on the page of results
NEXT: Final = re.compile(
    r"^\W*(?:next|older|more results|weiter|suivant|siguiente)\b|^[\s>»\u203a→]+$", re.I
)
UNREAD: Final = frozenset({"script", "style", "noscript", "template"})


@dataclass(frozen=True, slots=True)
class Hit:
    """A record on a page of results: its URL, the text of its link, and its keywords."""

    url: str
    anchor: str
    tokens: tuple[Token, ...]


class _Link(NamedTuple):
    url: str
    place: str
    node: LexborNode


class ResultReader:
    """Learns which links are records from the answers of the search box at `action`."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._template: dict[str, set[str]] = {}  # links of the template by place
        self._turning: set[str] = set()  # places whose links differ on each page
        self._seen: dict[str, set[str]] = defaultdict(set)  # URLs in each place, over all answers
        self._shown: dict[str, int] = defaultdict(int)

    def learn_empty(self, html: str, url: str) -> None:
        """Learn the template from an answer without results."""
        shown: dict[str, set[str]] = defaultdict(set)
        for link in self._links(parse(html[:MOST_HTML]), url):
            shown[link.place].add(link.url)
        for place, urls in shown.items():
            if self._template.setdefault(place, urls) != urls:
                self._turning.add(place)

    def read(self, html: str, url: str) -> list[Hit]:
        """Return the records of a page of results in their order."""
        known = set[str]().union(*self._template.values())
        links = [
            link
            for link in self._links(parse(html[:MOST_HTML]), url)
            if link.url not in known and link.place not in self._turning
        ]
        # an answer without results may show popular records in the place of records
        fresh = [link for link in links if link.place not in self._template]
        groups: dict[str, dict[str, _Link]] = defaultdict(dict)
        for link in fresh or links:
            groups[link.place].setdefault(link.url, link)
        for place, group in groups.items():
            self._seen[place].update(group)
            self._shown[place] += len(group)
        if not groups:
            return []
        best = max(groups, key=lambda place: self._worth(groups[place], place))
        chosen = list(groups[best].values())
        nodes = {link.node.mem_id for link in chosen}
        return [_hit(link, nodes) for link in chosen]

    def next_page(self, html: str, url: str) -> str | None:
        """Return the URL of the next page of results, None on the last."""
        tree = parse(html[:MOST_HTML])
        marked = tree.css_first("link[rel~=next i][href], a[rel~=next i][href]")
        if marked is not None:
            return canonicalise(urljoin(url, marked.attributes["href"] or ""))
        for node in tree.css("a[href]")[:MOST_LINKS]:
            target = canonicalise(urljoin(url, node.attributes["href"] or ""))
            if target is None or target == url or not self._is_search(target):
                continue
            label = node.attributes.get("aria-label") or node.text(strip=True)
            if NEXT.search(label) or _follows(url, target):
                return target
        return None

    def _worth(self, group: dict[str, _Link], place: str) -> tuple[float, float]:
        """Return how likely a place holds the links to records.

        Records differ over all answers, while links to authors or categories repeat.
        """
        anchors = sum(len(link.node.text(strip=True)) for link in group.values())
        return len(self._seen[place]) * len(self._seen[place]) / self._shown[place], anchors

    def _links(self, tree: LexborHTMLParser, url: str) -> Iterator[_Link]:
        """Yield the links of a page within the site, except those to the search box."""
        site = urlsplit(url).hostname
        for node in tree.css("a[href]")[:MOST_LINKS]:
            target = canonicalise(urljoin(url, (node.attributes["href"] or "").strip()))
            if target is None or urlsplit(target).hostname != site or self._is_search(target):
                continue
            yield _Link(target, _place(node), node)

    def _is_search(self, url: str) -> bool:
        parts = urlsplit(url)
        address = f"{parts.netloc}{parts.path}"
        # with the words in the path, everything below is the search box too
        return address == self._action or (
            self._action.endswith("/") and self._action.count("/") > 1
            and address.startswith(self._action)
        )  # fmt: skip


def _name(node: LexborNode) -> str:
    classes = sorted((node.attributes.get("class") or "").split())
    return ".".join([node.tag or "", *classes[:2]])


def _place(node: LexborNode) -> str:
    """Return the path of node names from the body to a link."""
    names, parent = [_name(node)], node.parent
    while parent is not None and parent.tag not in {"body", "html"} and len(names) < 12:
        names.append(_name(parent))
        parent = parent.parent
    return ">".join(reversed(names))


def _follows(url: str, target: str) -> bool:
    """Return whether a target is the same query with one larger number."""
    now, then = (dict(parse_qsl(urlsplit(u).query)) for u in (url, target))
    moved = [name for name in then if then[name] != now.get(name)]
    if (
        len(moved) != 1
        or not now.keys() <= then.keys()
        or urlsplit(url).path != urlsplit(target).path
    ):
        return False
    before, after = now.get(moved[0], "1"), then[moved[0]]
    return before.isdecimal() and after.isdecimal() and 0 < int(after) - int(before) <= 100


def _hit(link: _Link, nodes: set[int]) -> Hit:
    """Return a record with the text of the largest block that holds its link and no other's."""
    block, parent = link.node, link.node.parent
    while parent is not None and parent.tag not in {"body", "html"}:
        if any(node.mem_id in nodes - {link.node.mem_id} for node in parent.css("a[href]")):
            break
        block, parent = parent, parent.parent
    anchor = " ".join(link.node.text(separator=" ").split())
    return Hit(link.url, anchor, tuple(_tokens(block))[:MOST_WORDS])


def _tokens(block: LexborNode) -> Iterator[Token]:
    for node in block.traverse(include_text=True):
        if node.tag != "-text" or node.parent is None or node.parent.tag in UNREAD:
            continue
        place = ">".join(_name(around) for around in (node.parent.parent, node.parent) if around)
        for word in WORD.findall(node.text_content or ""):
            lower = word.lower()
            if lower not in STOP_WORDS and len(lower) <= MAX_WORD_LENGTH:
                yield Token(lower, place, _depth(node, block), _kind(word))


def _depth(node: LexborNode, block: LexborNode) -> int:
    depth, parent = 0, node.parent
    while parent is not None and parent.mem_id != block.mem_id:
        depth, parent = depth + 1, parent.parent
    return depth


def _kind(word: str) -> str:
    """Return the script and case of a word, which mark names without a part of speech."""
    script = "latin" if word[0].isascii() or "\u00c0" <= word[0] <= "\u024f" else "other"
    case = "upper" if word.isupper() else "title" if word[0].isupper() else "lower"
    return f"{script} {case}"
