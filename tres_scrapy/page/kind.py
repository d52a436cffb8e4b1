"""What kind of page it is: a PDF, a soft 404, or empty until its scripts have run."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import UNSEEN, Page, parse

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


MARK: Final = b"%PDF-"
MARK_WITHIN: Final = 1_024  # bytes: other readers look for the mark within them too
# A list of tags, a contact page or a picture may have ten words, but then it has links.
HARDLY_A_WORD: Final = 5
FEW_WORDS: Final = 15  # with fewer than FEW_LINKS
FEW_LINKS: Final = 3
FEW_WORDS_AROUND: Final = 100  # an empty main element, or a text such as "Loading"
FEW_WORDS_BESIDE_A_NOTICE: Final = 300
SCRIPT: Final = (
    "script:not([type]), script[type=''], script[type*=javascript i], script[type=module i]"
)
ROOT: Final = (
    "#root, #app, #main-app, #app-root, #__next, #__nuxt, #___gatsby, #svelte, #q-app, [ng-app],"
    "[ng-version], [data-reactroot], app-root"
)
MAIN: Final = "main, [role=main]"
MEDIA: Final = "img, picture, video, audio, canvas, form, input"
LOADING: Final = re.compile(r"\bloading\b|\bplease wait\b", re.IGNORECASE)
NOTICE: Final = re.compile(r"java ?script|enable js", re.IGNORECASE)
OF_A_PART: Final = re.compile(r"comment|form\b", re.IGNORECASE)  # the rest of the page is there
# Rendering helped if a page gained at least so much, and half of what it had before.
WORDS_GAINED: Final = 30
LINKS_GAINED: Final = 3
_LONG = 150  # words; a longer page has other content
_NUMBER = re.compile(r"\b404\b")
_MISSING = re.compile(
    r"\b(?:error|page)\W+404\b|\b404\W+(?:error|page|not)\b|\bnot\s+found\b"
    r"|\b(?:no\s+longer|does\s*n[o'\u2019]t|cannot\s+be)\s+(?:exists?|available|found)\b",
    re.IGNORECASE,
)


class Content(NamedTuple):
    """How much a page holds: visible words, and links."""

    words: int
    links: int

    def is_much_more_than(self, other: Content) -> bool:
        """Return whether this is so much more than `other` that rendering helped."""
        words, links = self.words - other.words, self.links - other.links
        much_text = words >= max(WORDS_GAINED, other.words / 2)
        return much_text or links >= max(LINKS_GAINED, other.links / 2)


class ClientRendered(NamedTuple):
    """A page before its scripts have run."""

    content: Content
    is_empty: bool  # little content, and scripts that may add the rest


def content_of(html: str) -> Content:
    """Return the content of a page."""
    return _content(parse(html))


def needs_scripts(html: str, words: int) -> bool:
    """Return whether a page in which so many words were found needs its scripts."""
    return words < FEW_WORDS_BESIDE_A_NOTICE and look_at(html).is_empty


def look_at(html: str) -> ClientRendered:
    """Return the content of a page and whether it needs its scripts.

    It does if it has scripts and one of these: hardly a word; few words and few links; little text
    that says "Loading", or around an empty main element; little text with a notice to enable
    JavaScript for the whole page; an empty root element of a common framework.
    """
    tree = parse(html)
    has_scripts = tree.css_first(SCRIPT) is not None
    notice = any(map(_is_notice, tree.css("noscript")))
    content = _content(tree)
    words, links = content
    is_empty = (
        words < (HARDLY_A_WORD if links >= FEW_LINKS else FEW_WORDS)
        or (words < FEW_WORDS_AROUND and _awaits_its_main_part(tree))
        or (words < FEW_WORDS_BESIDE_A_NOTICE and notice)
        or _is_any_empty(tree, ROOT)
    )
    return ClientRendered(content, has_scripts and is_empty)


def _content(tree: LexborHTMLParser) -> Content:
    """Count words and links; remove invisible elements from the tree."""
    links = len({node.attributes["href"] for node in tree.css("a[href]")})
    for node in reversed(tree.css(UNSEEN)):  # inner nodes first: an outer one frees them
        node.decompose()
    return Content(len(tokenise(_text(tree.body))), links)


def _is_notice(node: LexborNode) -> bool:
    text = _text(node)
    return NOTICE.search(text) is not None and OF_A_PART.search(text) is None


def _awaits_its_main_part(tree: LexborHTMLParser) -> bool:
    return LOADING.search(_text(tree.body)) is not None or _is_any_empty(tree, MAIN, but=MEDIA)


def _is_any_empty(tree: LexborHTMLParser, elements: str, but: str = "") -> bool:
    """Return whether one of these elements has no word, and no element of `but`."""
    empty = (node for node in tree.css(elements) if not tokenise(_text(node)))
    return any(not (but and node.css(but)) for node in empty)


def _text(node: LexborNode | None) -> str:
    return node.text(separator=" ") if node is not None else ""


def is_pdf(body: bytes) -> bool:
    """Return whether a body is a PDF, whatever its media type says."""
    start = body[:MARK_WITHIN].removeprefix(BOM_UTF8).lstrip()
    return MARK in start and not start.startswith(b"<")


def is_soft_404(page: Page) -> bool:
    """Return whether a short page reports a missing page in its title or first words."""
    told = _NUMBER.search(page.title) or _MISSING.search(f"{page.title} {page.text[:200]}")
    return told is not None and len(tokenise(page.text)) < _LONG
