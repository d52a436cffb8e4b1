"""Search queries built from the pages that earlier queries found (Vieira et al., 2016)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tres_scrapy.page.text import STOP_WORDS, tokenise

MIN_PRECISION = 0.5
MIN_NEW = 0.5
UNKNOWN_SCORE = 0.01  # of a query term that no page contained so far


@dataclass
class Results:
    """Counts of a query's results and of the new ones, and the fetched pages with labels."""

    found: int = 0
    new: int = 0
    pages: list[tuple[str, bool]] = field(default_factory=list)  # text, relevant

    @property
    def precision(self) -> float:
        """The share of relevant pages among the fetched ones, 0 without pages."""
        return sum(relevant for _, relevant in self.pages) / max(len(self.pages), 1)

    @property
    def share_new(self) -> float:
        """The share of results that were not fetched before, 0 without results."""
        return self.new / max(self.found, 1)

    def extend(self, more: Results) -> None:
        """Add the results of another page."""
        self.found += more.found
        self.new += more.new
        self.pages += more.pages


class RelevanceFeedback:
    """Scores terms, positive on relevant and negative on irrelevant pages, and builds queries.

    A query has the terms with the best scores, plus the best term that no query had before.
    """

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}
        self._used: set[str] = set()

    def next_query(self, query: Sequence[str], results: Results) -> list[str]:
        """Learn from a query; return the next one, or an empty list if no unused term is left."""
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
    """Return the size of the next query: longer for precision, shorter for new pages."""
    if results.precision < MIN_PRECISION:
        return len(query) + 1
    return max(1, len(query) - (results.share_new < MIN_NEW))
