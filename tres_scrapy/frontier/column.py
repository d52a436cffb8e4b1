"""A table of columns that grows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


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

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a view of one column; it is valid until the next `extend`."""
        return self._columns[column][: self._size]

    def extend(self, count: int) -> slice:
        """Append `count` zeroed rows and return where they are."""
        start, self._size = self._size, self._size + count
        if self._size > self._capacity:
            self._capacity = max(self._size, 2 * self._capacity)
            for name, column in self._columns.items():
                grown = np.zeros((self._capacity, *column.shape[1:]), column.dtype)
                grown[:start] = column[:start]
                self._columns[name] = grown
        return slice(start, self._size)


def within(numbers: NDArray[np.integer], count: int) -> None:
    """Raise ValueError unless all numbers are from 0 to `count` - 1."""
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise ValueError(f"a number is outside 0 to {count - 1}")
