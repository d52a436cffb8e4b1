"""Tells pages from shells, the HTML that is there before the scripts of a page have run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.page.text import UNSEEN, parse, tokenise

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# Of 2,281 real pages, 1 in 2,281 has less words than that, and 1 less links.
FEW_WORDS: Final = 100
FEW_LINKS: Final = 3
FEW_WORDS_BESIDE_A_NOTICE: Final = 300
SCRIPT: Final = (
    "script:not([type]), script[type=''], script[type*=javascript i], script[type=module i]"
)
ROOT: Final = (
    "#root, #app, #main-app, #app-root, #__next, #__nuxt, #___gatsby, #svelte, #q-app, [ng-app],"
    "[ng-version], [data-reactroot], app-root"
)
NOTICE: Final = ("javascript", "enable js", "java script")
# What a page must gain at least for its rendering to have helped, beside half of what it had.
WORDS_GAINED: Final = 30
LINKS_GAINED: Final = 3


class Content(NamedTuple):
    """How much a page holds for the crawler: words that are read, and links."""

    words: int
    links: int

    def is_much_more_than(self, other: Content) -> bool:
        """Return whether a page of this content was worth waiting for, after the other."""
        words, links = self.words - other.words, self.links - other.links
        much_text = words >= max(WORDS_GAINED, other.words / 2)
        return much_text or links >= max(LINKS_GAINED, other.links / 2)


class Shell(NamedTuple):
    """What is known of a page before its scripts have run."""

    content: Content
    is_empty: bool  # too little is there, and there are scripts that may bring the rest


def content_of(html: str) -> Content:
    """Return how much a page holds."""
    return _content(parse(html))


def look_at(html: str) -> Shell:
    """Return what a page holds and whether it waits for its scripts.

    It does if it has scripts, and next to no text, or next to no links, or an empty element where
    applications of the common frameworks put theirs, or little text and a notice to those who run
    no scripts.
    """
    tree = parse(html)
    has_scripts = tree.css_first(SCRIPT) is not None
    notice = any(word in _text(node).lower() for node in tree.css("noscript") for word in NOTICE)
    content = _content(tree)
    few = content.words < FEW_WORDS or content.links < FEW_LINKS
    few = few or (notice and content.words < FEW_WORDS_BESIDE_A_NOTICE)
    return Shell(content, has_scripts and (few or _has_empty_root(tree)))


def _content(tree: LexborHTMLParser) -> Content:
    """Count; what readers do not see is dropped from the tree."""
    links = len({node.attributes["href"] for node in tree.css("a[href]")})
    for node in reversed(tree.css(UNSEEN)):  # the inner one first: the outer one frees it
        node.decompose()
    return Content(len(tokenise(_text(tree.body))), links)


def _has_empty_root(tree: LexborHTMLParser) -> bool:
    return any(not tokenise(_text(node)) for node in tree.css(ROOT))


def _text(node: LexborNode | None) -> str:
    return node.text(separator=" ") if node is not None else ""
