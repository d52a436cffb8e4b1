"""Detects shells: HTML that stays almost empty until the scripts of the page have run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.page.parse import parse
from tres_scrapy.page.text import UNSEEN, tokenise

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# Of 2,281 real pages, one has fewer words than this, and one fewer links.
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
# Rendering helped if a page gained at least so much, and half of what it had before.
WORDS_GAINED: Final = 30
LINKS_GAINED: Final = 3


class Content(NamedTuple):
    """How much a page holds: visible words, and links."""

    words: int
    links: int

    def is_much_more_than(self, other: Content) -> bool:
        """Return whether this is so much more than `other` that rendering helped."""
        words, links = self.words - other.words, self.links - other.links
        much_text = words >= max(WORDS_GAINED, other.words / 2)
        return much_text or links >= max(LINKS_GAINED, other.links / 2)


class Shell(NamedTuple):
    """A page before its scripts have run."""

    content: Content
    is_empty: bool  # little content, and scripts that may add the rest


def content_of(html: str) -> Content:
    """Return the content of a page."""
    return _content(parse(html))


def needs_scripts(html: str, words: int, links: int) -> bool:
    """Return whether a page in which few words and links were found needs its scripts."""
    few = words < FEW_WORDS_BESIDE_A_NOTICE or links < FEW_LINKS
    return few and look_at(html).is_empty


def look_at(html: str) -> Shell:
    """Return the content of a page and whether it needs its scripts.

    It does if it has scripts and one of these: few words, few links, an empty root element of a
    common framework, or little text with a notice to enable JavaScript.
    """
    tree = parse(html)
    has_scripts = tree.css_first(SCRIPT) is not None
    notice = any(word in _text(node).lower() for node in tree.css("noscript") for word in NOTICE)
    content = _content(tree)
    few = content.words < FEW_WORDS or content.links < FEW_LINKS
    few = few or (notice and content.words < FEW_WORDS_BESIDE_A_NOTICE)
    return Shell(content, has_scripts and (few or _has_empty_root(tree)))


def _content(tree: LexborHTMLParser) -> Content:
    """Count words and links; remove invisible elements from the tree."""
    links = len({node.attributes["href"] for node in tree.css("a[href]")})
    for node in reversed(tree.css(UNSEEN)):  # inner nodes first: an outer one frees them
        node.decompose()
    return Content(len(tokenise(_text(tree.body))), links)


def _has_empty_root(tree: LexborHTMLParser) -> bool:
    return any(not tokenise(_text(node)) for node in tree.css(ROOT))


def _text(node: LexborNode | None) -> str:
    return node.text(separator=" ") if node is not None else ""
