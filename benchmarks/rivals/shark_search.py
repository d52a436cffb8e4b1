"""Shark-Search: links inherit relevance from the pages before them (Hersovici et al., 1998).

The score of a link is INHERITED times what it inherits, and the rest by its anchor text and the
words around it. A link inherits DECAY times the similarity of its page with the query. If the page
has no word of the query, the link inherits DECAY times what the page itself inherited. Similarity
is the cosine of the counts of words. Departures:

- A branch is never given up: the paper stops a few links behind the last relevant page. Here
  inheritance fades, so such links come last.
- A plural counts as its singular; the paper does not say how it compares words.
- The three constants are our choice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rivals.baseline import QueuePolicy
from rivals.inputs import KeywordInputs
from tres_scrapy.agent.policy import NO_TEXT, Experience, PageText
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.url.message import TresError

DECAY: Final = 0.5  # delta in the paper: what is left of relevance, one link further
ANCHOR: Final = 0.8  # beta: the weight of the anchor text; the words around it have the rest
INHERITED: Final = 0.5  # gamma: the weight of what is inherited


class SharkSearchPolicy(QueuePolicy):
    """Fetches the link with the highest potential score."""

    reads_text = True

    def __init__(self, store: SampleStore, setup: KeywordInputs) -> None:
        super().__init__(store)
        self._query = Query(setup.keywords)
        self._scores = Table(np.dtype([("inherited", "f8")]))  # by row; 0 for a seed

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Give the outlinks their inherited score and add them to the queue."""
        self._scores.grow(len(self.store))
        similarity = self._query.similarity(page.text)
        relevance = similarity or self._scores["inherited"][experience.row]
        self._scores["inherited"][outlinks] = DECAY * relevance
        super().expand(experience, outlinks, page)

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float64]:
        """Return the potential scores."""
        self._scores.grow(len(self.store))
        near = [self._neighbourhood(row, page) for row in rows.tolist()]
        inherited: NDArray[np.float64] = self._scores["inherited"][rows]
        return INHERITED * inherited + (1 - INHERITED) * np.array(near, dtype=np.float64)

    def _neighbourhood(self, row: int, page: PageText) -> float:
        """Return the score of the words in a link and around it; 1 counts as around a hit."""
        anchor = self._query.similarity(self.store.anchors[row])
        around = page.contexts.get(self.store.url(row), "")
        context = 1.0 if anchor else self._query.similarity(around)
        return ANCHOR * anchor + (1 - ANCHOR) * context


class Query:
    """The words that a crawl looks for; raise TresError if there is none."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._words = {_singular(word) for phrase in phrases for word in tokenise(phrase)}
        if not self._words:
            raise TresError("policy 'shark_search' needs keywords: train the pack with some")

    def similarity(self, text: str) -> float:
        """Return the cosine of the word counts of a text and of the query, from 0 to 1."""
        counts = Counter(_singular(word) for word in tokenise(text) if word not in STOP_WORDS)
        found = sum(counts[word] for word in self._words)
        squares = sum(count * count for count in counts.values())
        return found / math.sqrt(squares * len(self._words)) if found else 0.0


def _singular(word: str) -> str:
    return word.removesuffix("s")
