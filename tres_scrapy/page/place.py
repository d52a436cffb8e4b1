"""Where a link stands on its page: the words of its block and the heading above."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborHTMLParser, LexborNode

WORD: Final = re.compile(r"[^\W\d_]{2,}")
_LETTERS: Final = str.maketrans({chr(i): " " for i in range(128) if not chr(i).isalpha()})
MAX_WORD_LENGTH: Final = 50  # a longer word would be repeated in the context of many links
LINKS: Final = frozenset({"a", "area"})
HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "caption", "legend", "summary"})
BLOCKS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        address article aside blockquote body dd details div dl dt fieldset figure footer form
        header li main nav ol p pre section table tbody td th tr ul
        """,
    )
)
WORDS: Final = 20  # of the block, on each side of the link
HEADING_WORDS: Final = 12
MAX_WORK: Final = 100_000  # nested headings take quadratic time


def tokenise(text: str) -> list[str]:
    """Return the lower-case runs of two or more letters, of any script, in order."""
    text = text.lower()
    if text.isascii():  # a third of the time
        return [word for word in text.translate(_LETTERS).split() if len(word) > 1]
    return WORD.findall(text)


class Place(NamedTuple):
    """The words around a link within its block, and the heading above it.

    The block is the closest one that has words beside the link.
    """

    around: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()


NOWHERE: Final = Place()


@dataclass(slots=True)
class Span:
    """The words start to end of a link, those of its block, and the heading above it."""

    start: int
    end: int
    heading: tuple[str, ...]
    block: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Layout:
    """All words of a page, and by the id of its node where each link stands."""

    words: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: LexborHTMLParser) -> Layout:
        """Read a page in one walk."""
        layout = cls()
        words, spans = layout.words, layout.spans
        open_: list[tuple[int, int]] = []  # of each open block: first word, first waiting link
        waiting: list[Span] = []  # links whose block is not known yet
        heading: tuple[str, ...] = ()
        work = 0  # links that were given a heading, more than once if headings are nested
        for node, tag, left in _walk(tree.body):
            if tag == "-text":
                found = tokenise(node.text_content or "")
                words += [word for word in found if len(word) <= MAX_WORD_LENGTH]
            elif tag in LINKS:
                if not left:
                    span = spans[node.mem_id] = Span(len(words), len(words), heading)
                    waiting.append(span)
                else:
                    spans[node.mem_id].end = len(words)
            elif not left:
                open_.append((len(words), len(waiting)))
            else:
                first, links = open_.pop()
                if tag in HEADINGS:
                    heading = tuple(words[first : first + HEADING_WORDS])
                    work += len(waiting) - links
                    for span in waiting[links:] if work <= MAX_WORK else ():
                        span.heading = heading
                else:
                    _enclose(waiting, links, (first, len(words)))
        _enclose(waiting, 0, (0, len(words)))
        return layout

    def place(self, span: Span) -> Place:
        """Return what stands around a link."""
        first, last = span.block
        before = self.words[max(first, span.start - WORDS) : span.start]
        after = self.words[span.end : min(last, span.end + WORDS)]
        return Place((*before, *after), span.heading)

    def context(self, span: Span, count: int) -> str:
        """Return the words before and after a link, `count` on each side, of any block."""
        before = self.words[max(0, span.start - count) : span.start]
        return " ".join(before + self.words[span.end : span.end + count])


def _enclose(waiting: list[Span], first: int, block: tuple[int, int]) -> None:
    """Give a block to the waiting links in it, unless it has no words beside the link."""
    length = block[1] - block[0]
    if not length:  # or nested blocks of empty links would take quadratic time
        return
    kept = []
    for span in waiting[first:]:
        if length > span.end - span.start:
            span.block = block
        else:
            kept.append(span)
    waiting[first:] = kept


def _walk(root: LexborNode | None) -> Iterator[tuple[LexborNode, str, bool]]:
    """Yield the nodes below `root` in document order: texts, and other tags at start and end.

    Only links, headings and blocks are yielded; the flag tells the end from the start.
    """
    wanted = LINKS | HEADINGS | BLOCKS
    waiting = [(root.child if root is not None else None, "", False)]
    while waiting:
        node, tag, left = waiting.pop()
        if left:
            assert node is not None
            yield node, tag, True
            continue
        while node is not None:
            tag = node.tag or ""
            if tag == "-text":
                yield node, tag, False
                node = node.next
                continue
            child = node.child
            if tag in wanted:
                yield node, tag, False
                waiting.append((node.next, "", False))
                waiting.append((node, tag, True))
                node = child
            elif child is not None:
                waiting.append((node.next, "", False))
                node = child
            else:
                node = node.next
