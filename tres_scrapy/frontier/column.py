"""Columns that grow: of numbers, of texts and of codes; and a set of integers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tres_scrapy.links.code import RaggedArray

Rows = NDArray[np.int64]
_NEWEST: Final = 4096, 1 / 16  # limit of the newest: a number, or a share of the sorted


class Table:
    """Columns that grow by doubling; the fields of a structured type name them.

    Each column is a separate array: reading the values of many rows is ten times as fast as from an
    array of records.
    """

    def __init__(self, dtype: DTypeLike, capacity: int = 1024) -> None:
        fields: Any = np.dtype(dtype).fields or {}
        self._columns = {name: np.zeros(capacity, field[0]) for name, field in fields.items()}
        self._capacity = capacity
        self._size = 0
        self._views: dict[str, NDArray[Any]] = {}  # those read since the last `extend`

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a view of one column; it is valid until the next `extend`."""
        view = self._views.get(column)
        if view is None:  # many rows are added one by one, and few columns are read between
            view = self._views[column] = self._columns[column][: self._size]
        return view

    def extend(self, count: int) -> slice:
        """Append `count` zeroed rows and return where they are."""
        start, self._size = self._size, self._size + count
        if self._size > self._capacity:
            self._capacity = max(self._size, 2 * self._capacity)
            for name, column in self._columns.items():
                grown = np.zeros((self._capacity, *column.shape[1:]), column.dtype)
                grown[:start] = column[:start]
                self._columns[name] = grown
        if count:
            self._views.clear()
        return slice(start, self._size)

    def grow(self, size: int) -> None:
        """Append zeroed rows until there are `size`."""
        self.extend(max(0, size - self._size))


def within(numbers: NDArray[np.integer], count: int) -> None:
    """Raise ValueError unless all numbers are from 0 to `count` - 1."""
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise ValueError(f"a number is outside 0 to {count - 1}")


class Anchors:
    """Texts in one buffer, which saves about 50 bytes a text over separate strings."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        place = range(len(self))[place]  # raises IndexError
        start, end = self._ends[place : place + 2]
        return self._buffer[start:end].decode("utf-8", "surrogatepass")

    def since(self, first: int) -> list[str]:
        """Return the texts from `first` on."""
        ends = pairwise(self._ends[first:])
        return [self._buffer[i:j].decode("utf-8", "surrogatepass") for i, j in ends]

    def extend(self, texts: Iterable[str]) -> None:
        """Append texts."""
        for text in texts:
            self._buffer += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._buffer))


class HashedFeatures:
    """The codes of all samples in one array."""

    def __init__(self) -> None:
        self._codes = array("I")
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def extend(self, links: RaggedArray) -> None:
        """Append the codes of samples."""
        first = len(self._codes)
        self._codes.frombytes(links.codes.tobytes())
        self._ends.frombytes((first + np.cumsum(links.counts)).tobytes())

    def take(self, rows: Rows) -> RaggedArray:
        """Return the codes of some samples."""
        ends = np.frombuffer(self._ends, dtype=np.int64)
        counts = ends[rows + 1] - ends[rows]
        shifts = ends[rows] - (np.cumsum(counts) - counts)
        places = np.arange(int(counts.sum())) + np.repeat(shifts, counts)
        return RaggedArray(np.frombuffer(self._codes, dtype=np.uint32)[places], counts)

    def since(self, first: int) -> RaggedArray:
        """Return the codes of the samples from `first` on."""
        ends = np.frombuffer(self._ends, dtype=np.int64)[first:]
        codes = np.frombuffer(self._codes, dtype=np.uint32)[ends[0] :]
        return RaggedArray(codes.copy(), np.diff(ends))  # a view would forbid appending


class IntegerSet:
    """A set of 64-bit integers that takes at most a quarter of the memory of a Python set.

    All but the newest integers are in a sorted array. When the newest exceed a fixed share of the
    array, they are merged into it: merging takes constant amortised time per integer.
    """

    def __init__(self) -> None:
        self._sorted = np.empty(0, dtype=np.int64)
        self._newest: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._newest)

    def values(self) -> NDArray[np.int64]:
        """Return all numbers, in any order."""
        newest = np.fromiter(self._newest, np.int64, len(self._newest))
        return np.concatenate([self._sorted, newest])

    def has(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which numbers [n] are in the set."""
        newest = np.sort(np.fromiter(self._newest, np.int64, len(self._newest)))
        return _among(self._sorted, numbers) | _among(newest, numbers)

    def add(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add numbers [n], which may repeat, and return those that are new, each once."""
        numbers = np.unique(numbers)
        there = _among(self._sorted, numbers)
        new = [number for number in numbers[~there].tolist() if number not in self._newest]
        self._newest.update(new)
        least, share = _NEWEST
        if len(self._newest) > max(least, share * len(self._sorted)):
            newest = np.fromiter(self._newest, np.int64, len(self._newest))
            self._sorted = np.sort(np.concatenate([self._sorted, np.sort(newest)]), kind="stable")
            self._newest = set()
        return np.array(new, dtype=np.int64)


def _among(ordered: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers [n] are among ordered ones: many times as fast as np.isin."""
    places = np.searchsorted(ordered, numbers)
    there: NDArray[np.bool_] = places < len(ordered)
    there[there] = ordered[places[there]] == numbers[there]
    return there
