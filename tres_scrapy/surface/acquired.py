"""S_t, the acquired records of a database, counted by keyword (Algorithm 1, steps 2 to 7).

Records that come back show two things. First, which places of a record are searched: every query
tries all known records that hold its keyword. Second, how much is still unknown: by Good and
Turing, the unknown share is the share of captures that are the only one of their record.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_HITS: Final = 0.5  # known records with the keyword in a searched place, at least
PRIOR: Final = 20  # weight, in captures, of the share of all records
MIN_UNKNOWN, MAX_UNKNOWN = 0.02, 0.98  # bounds of the unknown share of the records of a keyword
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


class Sightings(NamedTuple):
    """The counts of n keywords at one moment, by the place of the keyword, [n, places].

    `df` counts the known records, `captures` how often they were returned, `singles` the records
    returned only once; `every` [n, 2] holds the captures and singles of all records.
    """

    df: Floats
    captures: Floats
    singles: Floats
    every: Floats

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the sightings of all parts in order."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def expected(self, rates: Floats) -> Floats:
        """Return the expected unknown records of each keyword, [n], up to a common factor.

        `rates` [places] are the chances that a record is found by a word in each place. With an
        unknown share u, H known hits stand for H u / (1 - u) unknown ones.
        """
        hits = np.maximum(self.df @ rates, LEAST_HITS * rates.max())
        captures, singles = self.every.T
        whole = (singles + 1) / (captures + 1)
        unknown = (self.singles @ rates + PRIOR * whole) / (self.captures @ rates + PRIOR)
        unknown = np.clip(unknown, MIN_UNKNOWN, MAX_UNKNOWN)
        expected: Floats = hits * unknown / (1 - unknown)
        return expected


class Recaptures:
    """Counts the known records and their captures for each keyword and place.

    Records are numbered in the order in which they were acquired.
    """

    def __init__(self, places: int) -> None:
        self._counts = np.zeros((1024, 3, places), np.int32)  # df, captures, singles
        self._holds: list[tuple[Ints, Ints]] = []  # keywords and their places, by record
        self._times: list[int] = []  # how often each record was returned
        self._tried, self._hits = np.zeros(places), np.zeros(places)

    @property
    def rates(self) -> Floats:
        """The chance that a record is found by a keyword in each place, [places]."""
        mean = (self._hits.sum() + 1) / (self._tried.sum() + 1)
        rates: Floats = (self._hits + mean) / (self._tried + 1)
        return rates

    def sightings(self, numbers: Ints) -> Sightings:
        """Return the counts of keywords at this moment."""
        self._make_room(int(numbers.max(initial=0)) + 1)
        df, captures, singles = self._counts[numbers].astype(np.float64).transpose(1, 0, 2)
        times = self._times
        return Sightings(
            df, captures, singles, np.tile([float(sum(times)), times.count(1)], (len(numbers), 1))
        )

    def add(self, numbers: Ints, places: Ints) -> None:
        """Add a record by its distinct keywords and the first place of each."""
        self._make_room(int(numbers.max(initial=0)) + 1)
        self._counts[numbers, :, places] += 1
        self._holds.append((numbers, places))
        self._times.append(1)

    def again(self, number: int, records: Sequence[int]) -> None:
        """Count the known records that a query for a keyword has returned."""
        self._make_room(number + 1)
        self._tried += self._counts[number, 0]
        for record in records:
            numbers, places = self._holds[record]
            self._hits[places[numbers == number]] += 1
            self._counts[numbers, 1, places] += 1
            if self._times[record] == 1:
                self._counts[numbers, 2, places] -= 1
            self._times[record] += 1

    def _make_room(self, keywords: int) -> None:
        while keywords > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])


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
