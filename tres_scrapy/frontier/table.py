"""A table of records that grows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Table:
    """Records of one NumPy structured type in one array that grows by doubling."""

    def __init__(self, dtype: DTypeLike, capacity: int = 1024) -> None:
        self._records = np.zeros(capacity, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a view of one column; it is valid until the next `extend`."""
        return self._records[column][: self._size]

    def extend(self, count: int) -> slice:
        """Append `count` zeroed records and return where they are."""
        start, self._size = self._size, self._size + count
        if self._size > len(self._records):
            grown = np.zeros(max(self._size, 2 * len(self._records)), self._records.dtype)
            grown[:start] = self._records[:start]
            self._records = grown
        return slice(start, self._size)
