"""A simulated database behind a search box, to compare selectors on (B.4); an oracle knows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from tres_scrapy.surface.acquired import Acquired, Floats, Ints, Record, Token
from tres_scrapy.surface.keyword_feature import features
from tres_scrapy.surface.selector import Selector, Trials
from tres_scrapy.surface.surfacing import Surfacing

RECORDS, WORDS, TOPICS = 10_000, 12_000, 40
OFFSET, EXPONENT = 60, 1.05  # of the Zipf-Mandelbrot law; the offset stands for a stop list
GENERAL: Final = 0.25  # share of words common to all topics, in the vocabulary and in each text
MOST_TOPICS = 4  # that each of the other words belongs to
TITLE, BODY = 6, 60  # words
NAMES: Final = {"author": 2500, "publisher": 200, "category": TOPICS}
KINDS: Final = ("noun", "proper", "adjective", "verb", "other")
KIND_SHARES: Final = (0.4, 0.15, 0.15, 0.2, 0.1)
TITLE_KINDS: Final = 3  # titles have only the first three kinds
DEPTHS: Final = {"title": 6, "author": 7, "publisher": 7, "category": 5, "body": 8}
SEARCHED: Final = ("title", "author")  # by a search that is not full-text


@dataclass(frozen=True, slots=True)
class Search:
    """How a database searches: in all fields or in title and author; `cap` limits the answer."""

    full_text: bool
    cap: int | None


class SimulatedDatabase:
    """Records with title, author, publisher, category and body, drawn from one seed.

    `records[i]` are the tokens of record i that a crawler sees.
    """

    def __init__(self, seed: int, records: int = RECORDS) -> None:
        self._random = np.random.default_rng(seed)
        weights: Floats = 1.0 / (np.arange(1.0, WORDS + 1) + OFFSET) ** EXPONENT
        kinds = self._random.choice(len(KINDS), WORDS, p=KIND_SHARES)
        topics = self._random.integers(TOPICS, size=records)
        title, body = self._texts(topics, weights, kinds)
        names = {name: self._random.integers(n, size=records) for name, n in NAMES.items()}
        names["category"] = topics
        self.rank: Ints = self._random.permutation(records)  # of a record in answers
        lengths = self._random.integers(3, 13, WORDS)
        words = [f"w{i}".ljust(length, "x") for i, length in enumerate(lengths.tolist())]
        tokens = {
            place: [
                Token(word, place, DEPTHS[place], KINDS[k])
                for word, k in zip(words, kinds, strict=True)
            ]
            for place in ("title", "body")
        }
        for name, n in NAMES.items():
            tokens[name] = [Token(f"{name}{i}", name, DEPTHS[name], "proper") for i in range(n)]
        columns = {"title": title, **{name: numbers[:, None] for name, numbers in names.items()}}
        columns["body"] = body
        self.records: list[Record] = [
            [tokens[place][word] for place, rows in columns.items() for word in rows[i].tolist()]
            for i in range(records)
        ]

    def __len__(self) -> int:
        return len(self.records)

    def index(self, search: Search) -> dict[str, Ints]:
        """Return the answer to each keyword: record numbers by rank, `cap` at most."""
        held: dict[str, set[int]] = {}
        for i, record in enumerate(self.records):
            for token in record:
                if search.full_text or token.place in SEARCHED:
                    held.setdefault(token.word, set()).add(i)
        answers = {}
        for word, found in held.items():
            rows = np.array(sorted(found), np.int64)
            answers[word] = rows[np.argsort(self.rank[rows])][: search.cap]
        return answers

    def seeds(self, count: int, random: np.random.Generator) -> list[str]:
        """Return words to start with: title words of 5 to 200 records."""
        titles = ({token.word for token in record[:TITLE]} for record in self.records)
        df = Counter(word for title in titles for word in title)
        fit = sorted(word for word, n in df.items() if 5 <= n <= 200)
        chosen: list[str] = random.choice(np.array(fit), count, replace=False).tolist()
        return chosen

    def _texts(self, topics: Ints, weights: Floats, kinds: Ints) -> tuple[Ints, Ints]:
        """Return the words of titles [n, TITLE] and bodies [n, BODY]."""
        member = self._membership()
        title = np.empty((len(topics), TITLE), np.int64)
        body = np.empty((len(topics), BODY), np.int64)
        for topic in range(TOPICS):
            rows = np.flatnonzero(topics == topic)
            for texts, fit in ((title, kinds < TITLE_KINDS), (body, kinds >= 0)):
                own, general = (_shares(weights * fit * (member[topic] == sort)) for sort in (1, 2))
                mixture = np.cumsum((1 - GENERAL) * own + GENERAL * general)
                drawn = self._random.random((len(rows), texts.shape[1]))
                texts[rows] = np.searchsorted(mixture, drawn * mixture[-1], side="right")
        return title, body

    def _membership(self) -> Ints:
        """Return 1 if a word belongs to a topic, 2 if it is general, else 0, [topics, n]."""
        member = np.zeros((TOPICS, WORDS), np.int64)
        of_word = self._random.integers(1, MOST_TOPICS + 1, WORDS)
        for word, count in enumerate(of_word.tolist()):
            member[self._random.choice(TOPICS, count, replace=False), word] = 1
        member[:, self._random.random(WORDS) < GENERAL] = 2
        return member


def _shares(weights: Floats) -> Floats:
    shares: Floats = weights / weights.sum()
    return shares


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
