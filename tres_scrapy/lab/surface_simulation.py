"""Runs a selector against a simulated database; an oracle knows every answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tres_scrapy.lab.simulated_database import SimulatedDatabase
from tres_scrapy.surface.acquired import Acquired, Floats, Ints
from tres_scrapy.surface.keyword_feature import features
from tres_scrapy.surface.selector import Selector, Trials
from tres_scrapy.surface.surfacing import Surfacing

PER_PAGE = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The records acquired after each query, [queries], the requests and the empty queries."""

    acquired: Ints
    requests: int
    empty: int


class Oracle:
    """Knows how many new records each keyword would return: a greedy upper bound."""

    describe = staticmethod(features)

    def __init__(self, answers: Mapping[str, Ints], records: int) -> None:
        self._left = {word: len(rows) for word, rows in answers.items()}
        self._words_of: list[list[str]] = [[] for _ in range(records)]
        for word, rows in answers.items():
            for row in rows.tolist():
                self._words_of[row].append(word)

    def take(self, rows: Ints) -> None:
        """Remove acquired records from the counts."""
        for row in rows.tolist():
            for word in self._words_of[row]:
                self._left[word] -= 1

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return the new records of each candidate."""
        words = acquired.words
        return np.array([self._left.get(words[i], 0) for i in candidates.tolist()], np.float64)


def surface(
    database: SimulatedDatabase,
    answers: Mapping[str, Ints],
    selector: Selector,
    queries: int,
    *,
    seed: int = 0,
    seeds: int = 5,
) -> Outcome:
    """Ask a database `queries` keywords; the first `seeds` of them are given."""
    first = database.seeds(seeds, np.random.default_rng(seed))
    surfacing = Surfacing(selector, first, budget=queries)
    number = np.full(len(database), -1)  # of each record in order of arrival, -1 if unknown
    counts, requests, empty = list[int](), 0, 0
    none = np.zeros(0, np.int64)
    while (word := surfacing.next()) is not None:
        found = answers.get(word, none)
        again = number[found]
        new = found[again < 0]
        surfacing.book(
            word, [database.records[i] for i in new.tolist()], again[again >= 0].tolist()
        )
        number[new] = np.arange(len(new)) + (counts[-1] if counts else 0)
        if isinstance(selector, Oracle):
            selector.take(new)
        counts.append(surfacing.acquired.records)
        requests += 1 + max(len(found) - 1, 0) // PER_PAGE + len(new)
        empty += not len(found)
    return Outcome(np.array(counts), requests, empty)
