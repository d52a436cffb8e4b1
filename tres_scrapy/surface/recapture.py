"""How many records a keyword would bring that are not known yet: fields, and recaptures.

Answers that return known records again tell which places of a record are searched (every query
tries the known records that hold its keyword), and how much of what they are drawn from is known:
by Good and Turing the share of it that is not is that of the captures which are the only one of
their record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_HITS: Final = 0.5  # known records that hold a keyword where it is searched
PRIOR: Final = 20  # captures that the share of all records is worth for those of a keyword
LEAST, MOST = 0.02, 0.98  # share of a keyword's records that is unknown


class Sightings(NamedTuple):
    """What is known of n keywords at a moment, by the place where they stand, [n, places].

    `df` are the known records, `captures` how often these were returned, `singles` those of them
    that were returned once; `every` [n, 2] has the captures and singles of all records.
    """

    df: Floats
    captures: Floats
    singles: Floats
    every: Floats

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the sightings of all parts in their order."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def expected(self, rates: Floats) -> Floats:
        """Return the records that each keyword hits and that are not known yet, [n], up to a scale.

        `rates` [places] are the chances that a record is found by what stands there. With a share u
        unknown, H known records are one of 1 - u.
        """
        hits = np.maximum(self.df @ rates, LEAST_HITS * rates.max())
        captures, singles = self.every.T
        whole = (singles + 1) / (captures + 1)
        unknown = (self.singles @ rates + PRIOR * whole) / (self.captures @ rates + PRIOR)
        unknown = np.clip(unknown, LEAST, MOST)
        expected: Floats = hits * unknown / (1 - unknown)
        return expected


class Recaptures:
    """Counts, for each keyword and place, the known records and how often each was returned.

    Records have numbers in the order in which they were acquired.
    """

    def __init__(self, places: int) -> None:
        self._counts = np.zeros((1024, 3, places), np.int32)  # df, captures, singles
        self._holds: list[tuple[Ints, Ints]] = []  # keywords of each record, and where they stand
        self._times: list[int] = []  # each was returned
        self._tried, self._hits = np.zeros(places), np.zeros(places)

    @property
    def rates(self) -> Floats:
        """The chance that a record is found by a keyword that stands in a place, [places]."""
        mean = (self._hits.sum() + 1) / (self._tried.sum() + 1)
        rates: Floats = (self._hits + mean) / (self._tried + 1)
        return rates

    def sightings(self, numbers: Ints) -> Sightings:
        """Return what is known of keywords."""
        self._make_room(int(numbers.max(initial=0)) + 1)
        df, captures, singles = self._counts[numbers].astype(np.float64).transpose(1, 0, 2)
        times = self._times
        return Sightings(
            df, captures, singles, np.tile([float(sum(times)), times.count(1)], (len(numbers), 1))
        )

    def add(self, numbers: Ints, places: Ints) -> None:
        """Take in a record: its keywords, each once, and where it stands first."""
        self._make_room(int(numbers.max(initial=0)) + 1)
        self._counts[numbers, :, places] += 1
        self._holds.append((numbers, places))
        self._times.append(1)

    def again(self, number: int, records: Sequence[int]) -> None:
        """Take in which of the known records a keyword has returned."""
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
