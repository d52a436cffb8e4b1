"""S_t, the acquired records of a database, counted by keyword (Algorithm 1, steps 2 to 7)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.surface.recapture import Recaptures

Ints = NDArray[np.int64]
MOST_PLACES: Final = 24  # a site has few of them; further places count as the last one


class Token(NamedTuple):
    """An occurrence of a keyword in a record.

    `place` names the HTML node by tag and class, `depth` is the depth of the node in the document,
    and `kind` is the part of speech or, if that is unknown, the script and case of the word.
    """

    word: str
    place: str
    depth: int
    kind: str


Record = Sequence[Token]


class Acquired:
    """The keywords of the acquired records, A, with their counts.

    Keywords are numbered in the order in which they first occurred.
    """

    def __init__(self) -> None:
        self.records = 0
        self.recaptures = Recaptures(MOST_PLACES)
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}
        self._names: dict[str, dict[str, int]] = {"place": {}, "kind": {}}
        self._known: dict[Token, tuple[int, int, int, int]] = {}  # word, place, kind, depth
        self._counts = np.zeros((1024, 3), np.int64)  # tf, df, sum of depths
        self._marks = np.zeros((1024, 2, MOST_PLACES), np.int32)  # places, kinds
        self._spelling = np.zeros((1024, 2))  # length, share of digits

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    @property
    def tf(self) -> Ints:
        """Occurrences of each keyword, [words]."""
        return self._counts[: len(self), 0]

    @property
    def df(self) -> Ints:
        """DF(s_t, a): how many acquired records hold each keyword, [words]."""
        return self._counts[: len(self), 1]

    @property
    def depth(self) -> NDArray[np.float64]:
        """The mean depth of the nodes that hold each keyword, [words]."""
        return np.asarray(self._counts[: len(self), 2] / np.maximum(self.tf, 1))

    @property
    def places(self) -> NDArray[np.int32]:
        """How often each keyword occurs in each place, [words, MOST_PLACES]."""
        return self._marks[: len(self), 0]

    @property
    def kinds(self) -> NDArray[np.int32]:
        """How often each keyword is of each kind, [words, MOST_PLACES]."""
        return self._marks[: len(self), 1]

    @property
    def spelling(self) -> NDArray[np.float64]:
        """The length of each keyword and its share of digits, [words, 2]."""
        return self._spelling[: len(self)]

    def number(self, word: str) -> int:
        """Return the number of a keyword; an unknown keyword gets the next number."""
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
            if number == len(self._counts):
                self._counts, self._marks, self._spelling = (
                    np.concatenate([column, np.zeros_like(column)])
                    for column in (self._counts, self._marks, self._spelling)
                )
            self._spelling[number] = len(word), sum(map(str.isdigit, word)) / max(len(word), 1)
        return number

    def add(self, records: Sequence[Record]) -> None:
        """Count new records."""
        tokens = [token for record in records for token in record]
        self.records += len(records)
        known = self._known
        rows = np.array([known.get(token) or self._note(token) for token in tokens], np.int64)
        rows = rows.reshape(-1, 4)
        words = rows[:, 0]
        owner = np.repeat(np.arange(len(records)), [len(record) for record in records])
        n = len(self)
        held, first = np.unique(owner * n + words, return_index=True)
        holder, held = np.divmod(held, max(n, 1))
        self._counts[:n, 0] += np.bincount(words, minlength=n)
        self._counts[:n, 1] += np.bincount(held, minlength=n)
        self._counts[:n, 2] += np.bincount(words, rows[:, 3], minlength=n).astype(np.int64)
        for axis in (0, 1):
            np.add.at(self._marks[:, axis], (words, rows[:, 1 + axis]), 1)
        ends = np.searchsorted(holder, np.arange(len(records) + 1))
        for begin, end in itertools.pairwise(ends.tolist()):
            self.recaptures.add(held[begin:end], rows[first[begin:end], 1])

    def _note(self, token: Token) -> tuple[int, int, int, int]:
        row = (
            self.number(token.word),
            self._mark("place", token.place),
            self._mark("kind", token.kind),
            token.depth,
        )
        self._known[token] = row
        return row

    def _mark(self, axis: str, name: str) -> int:
        names = self._names[axis]
        return names.setdefault(name, min(len(names), MOST_PLACES - 1))
