"""Search queries that are built from the pages which the last ones found (Vieira et al., 2016)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tres_scrapy.page.text import STOP_WORDS, tokenise

MIN_PRECISION = 0.5
MIN_NEW = 0.5
UNKNOWN_SCORE = 0.01  # of a query's term that is on no page read so far


@dataclass
class Results:
    """What a query has found: its results, the new ones, and the relevance of those fetched."""

    found: int = 0
    new: int = 0
    pages: list[tuple[str, bool]] = field(default_factory=list)  # text, relevant

    @property
    def precision(self) -> float:
        """The share of relevant pages among the new ones, 0 without any."""
        return sum(relevant for _, relevant in self.pages) / max(len(self.pages), 1)

    @property
    def share_new(self) -> float:
        """The share of results that were not fetched before, 0 without any."""
        return self.new / max(self.found, 1)

    def extend(self, more: Results) -> None:
        """Add what a further page of results has brought."""
        self.found += more.found
        self.new += more.new
        self.pages += more.pages


class RelevanceFeedback:
    """Scores the terms of pages, relevant ones for and irrelevant ones against, and asks for them.

    A query is the terms with the best scores and the best of those that were in no query yet.
    """

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}
        self._used: set[str] = set()

    def next_query(self, query: Sequence[str], results: Results) -> list[str]:
        """Learn from a query and return the one to ask next, empty when no unused term is left."""
        self._used.update(query)
        if results.precision > MIN_PRECISION:
            for text, relevant in results.pages:
                self._score_page(text, 1 if relevant else -1)
        for term in query:
            self.scores[term] = self.scores.get(term, UNKNOWN_SCORE) * results.precision
        best = heapq.nlargest(_size(query, results) - 1, self.scores, key=self.scores.__getitem__)
        self._used.update(best)
        unused = (term for term in self.scores if term not in self._used)
        added = max(unused, key=self.scores.__getitem__, default=None)
        return [] if added is None else [*best, added]

    def _score_page(self, text: str, sign: int) -> None:
        terms = [term for term in tokenise(text) if term not in STOP_WORDS]
        for term, count in Counter(terms).items():
            # each occurrence weighs count / len(terms)
            self.scores[term] = self.scores.get(term, 0.0) + sign * count**2 / len(terms)


def _size(query: Sequence[str], results: Results) -> int:
    """Return how many terms the next query has: more to be precise, fewer to find new pages."""
    if results.precision < MIN_PRECISION:
        return len(query) + 1
    return max(1, len(query) - (results.share_new < MIN_NEW))
