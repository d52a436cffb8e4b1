"""Estimates how many unknown records a keyword would return, from records returned again.

Records that come back show two things. First, which places of a record are searched: every query
tries all known records that hold its keyword. Second, how much is still unknown: by Good and
Turing, the unknown share is the share of captures that are the only one of their record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_HITS: Final = 0.5  # known records with the keyword in a searched place, at least
PRIOR: Final = 20  # weight, in captures, of the share of all records
LEAST, MOST = 0.02, 0.98  # bounds of the unknown share of the records of a keyword


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
        unknown = np.clip(unknown, LEAST, MOST)
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
