"""The pages of a crawl about which an answer helps most, and why each is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.classifier import is_of_text
from tres_scrapy.url.message import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.keyword_topic import PageWords

    Numbers = NDArray[np.float64]

BEST: Final = "best"  # of all pages without an answer: yes and no both teach much
EDGE: Final = "at the edge"  # of being relevant
AT_ONCE: Final = {BEST: 2, EDGE: 3}  # questions that are asked together
THRESHOLD: Final = 0.5
ALIKE: Final = 0.5  # least share of common words of two pages that teach the same
LOOKED_AT: Final = 100  # pages of a kind, for each of the questions together


class Question(NamedTuple):
    """A page that is asked about, P(relevant) of it, and why: BEST or EDGE."""

    page: PageWords
    probability: float
    why: str


def questions(
    judge: Callable[[Sequence[PageWords]], Numbers],
    pages: Sequence[PageWords],
    answers: Mapping[str, bool],
    most: int,
) -> list[Question]:
    """Return the pages whose answers help most, five by five; `judge` returns P(relevant).

    None is like another or like an answered page. Five are of different sites, if there are enough.
    """
    left = [page for page in pages if page.url not in answers]
    p = judge(left)
    order = {
        BEST: np.argsort(-p, kind="stable").tolist(),
        EDGE: np.argsort(np.abs(p - THRESHOLD), kind="stable").tolist(),
    }
    choice = _Choice(left, [page for page in pages if page.url in answers])
    wanted = AT_ONCE
    if not any(answers.values()):  # the edge teaches nothing before a page inside is known
        wanted = {BEST: sum(AT_ONCE.values()), EDGE: 0}
    while len(choice.rows) < most and choice.take_five(order, wanted):
        wanted = AT_ONCE
    return [Question(left[row], float(p[row]), why) for row, why in choice.rows.items()][:most]


class _Choice:
    """The rows of pages to ask about, with why; `asked` are pages asked about before."""

    def __init__(self, pages: Sequence[PageWords], asked: Sequence[PageWords]) -> None:
        self.rows: dict[int, str] = {}
        self._pages = pages
        self._words = [_content(page) for page in asked]
        self._known: dict[int, frozenset[str]] = {}  # words of pages looked at

    def take_five(self, order: Mapping[str, Sequence[int]], wanted: Mapping[str, int]) -> bool:
        """Add the next five, so many of each kind; return whether one was unlike all others."""
        sites: set[str] = set()
        before = len(self.rows)
        for why, rows in order.items():
            fresh = [row for row in rows if row not in self.rows][:LOOKED_AT]
            last = len(self.rows) + wanted[why]
            for elsewhere in (True, False):
                for row in fresh:
                    site = urlsplit(self._pages[row].url).netloc
                    if len(self.rows) == last:
                        break
                    if (
                        row not in self.rows
                        and not (elsewhere and site in sites)
                        and self._new(row)
                    ):
                        self.rows[row] = why
                        sites.add(site)
                        self._words.append(self._known[row])
        return len(self.rows) > before

    def _new(self, row: int) -> bool:
        """Return whether a page is unlike all that are asked about."""
        if row not in self._known:
            self._known[row] = _content(self._pages[row])
        own = self._known[row]
        return all(len(own & each) < ALIKE * max(1, len(own | each)) for each in self._words)


def _content(page: PageWords) -> frozenset[str]:
    return frozenset(filter(is_of_text, page.words)) - STOP_WORDS


def change(before: Numbers, after: Numbers) -> str:
    """Return how many pages became relevant and irrelevant, by P(relevant) of the same pages."""
    more = int(((after >= THRESHOLD) & (before < THRESHOLD)).sum())
    fewer = int(((after < THRESHOLD) & (before >= THRESHOLD)).sum())
    return f"{counted(more, 'page')} more, {fewer} fewer"
