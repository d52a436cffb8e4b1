"""A set of integers that grows, in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

_NEWEST: Final = 4096, 1 / 16  # limit of the newest: a number, or a share of the sorted


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

    def __iter__(self) -> Iterator[int]:
        yield from self._sorted.tolist()
        yield from self._newest

    def add(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add numbers [n], which may repeat, and return those that are new, each once."""
        numbers = np.unique(numbers)
        places = np.searchsorted(self._sorted, numbers)
        there = places < len(self._sorted)
        there[there] = self._sorted[places[there]] == numbers[there]
        new = [number for number in numbers[~there].tolist() if number not in self._newest]
        self._newest.update(new)
        least, share = _NEWEST
        if len(self._newest) > max(least, share * len(self._sorted)):
            newest = np.fromiter(self._newest, np.int64, len(self._newest))
            self._sorted = np.sort(np.concatenate([self._sorted, np.sort(newest)]), kind="stable")
            self._newest = set()
        return np.array(new, dtype=np.int64)
