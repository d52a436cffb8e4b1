"""The frontier samples of all leaves, stored in one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Table

Rows = NDArray[np.int64]
_SEGMENT = np.dtype([("start", "i8"), ("size", "i8"), ("capacity", "i8")])


class LeafPool:
    """Gives each leaf a segment of one array, so that one row of each can be drawn at once.

    A full segment moves to the end of the array and grows by half. Its old space is reclaimed when
    the array is full.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self._rows = np.zeros(capacity, dtype=np.int32)
        self._used = 0
        self._segments = Table(_SEGMENT, capacity=64)

    def __len__(self) -> int:
        return int(self._segments["size"].sum())

    def add_leaf(self) -> int:
        """Add an empty leaf and return its number."""
        leaf: int = self._segments.extend(1).start
        return leaf

    def rows(self, leaf: int) -> Rows:
        """Return the rows of a leaf."""
        start, size, _ = self._segment(leaf)
        return self._rows[start : start + size].astype(np.int64)

    def extend(self, leaf: int, rows: Rows) -> None:
        """Add rows to a leaf."""
        start, size, capacity = self._segment(leaf)
        if size + len(rows) > capacity:
            start = self._move(leaf, (size + len(rows)) * 3 // 2)
        self._rows[start + size : start + size + len(rows)] = rows
        self._segments["size"][leaf] = size + len(rows)

    def remove(self, leaf: int, position: int) -> None:
        """Remove one row from a leaf; the last row of the leaf fills the gap."""
        start, size, _ = self._segment(leaf)
        self._rows[start + position] = self._rows[start + size - 1]
        self._segments["size"][leaf] = size - 1

    def discard(self, leaf: int, row: int, position: int) -> None:
        """Remove a row that was drawn at `position` from a leaf.

        Raise ValueError if the row is not in the leaf.
        """
        start, size, _ = self._segment(leaf)
        rows = self._rows[start : start + size]
        if position >= size or rows[position] != row:  # the row has moved to fill a gap
            positions = np.flatnonzero(rows == row)
            if not len(positions):
                raise ValueError(f"row {row} is not in leaf {leaf}")
            position = int(positions[0])
        self.remove(leaf, position)

    def keep(self, leaf: int, kept: NDArray[np.bool_]) -> None:
        """Keep only the rows of a leaf that `kept` [size] marks."""
        start, size, _ = self._segment(leaf)
        rows = self._rows[start : start + size][kept]
        self._rows[start : start + len(rows)] = rows
        self._segments["size"][leaf] = len(rows)

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of each leaf."""
        return self._segments["size"].copy()

    def occupied(self) -> NDArray[np.int64]:
        """Return the leaves that hold rows."""
        return np.flatnonzero(self._segments["size"])

    def draw(
        self, leaves: NDArray[np.int64], random: np.random.Generator
    ) -> tuple[NDArray[np.int64], Rows]:
        """Draw a row of each non-empty leaf uniformly; return positions and rows."""
        positions = (random.random(len(leaves)) * self._segments["size"][leaves]).astype(np.int64)
        return positions, self._rows[self._segments["start"][leaves] + positions].astype(np.int64)

    def _segment(self, leaf: int) -> tuple[int, int, int]:
        start, size, capacity = (
            int(self._segments[column][leaf]) for column in ("start", "size", "capacity")
        )
        return start, size, capacity

    def _move(self, leaf: int, capacity: int) -> int:
        if self._used + capacity > len(self._rows):
            self._repack(capacity)
        start, size, _ = self._segment(leaf)
        self._rows[self._used : self._used + size] = self._rows[start : start + size]
        self._segments["start"][leaf] = start = self._used
        self._segments["capacity"][leaf] = capacity
        self._used += capacity
        return start

    def _repack(self, needed: int) -> None:
        """Copy every segment to a new array, with slack for each and room for `needed` rows.

        Without slack, every growing segment would move at its next row and fill the array again.
        """
        starts, sizes = self._segments["start"], self._segments["size"]
        capacities = sizes * 3 // 2
        self._used = int(capacities.sum())
        packed = np.zeros(self._used * 3 // 2 + needed, dtype=np.int32)
        new_starts = np.cumsum(capacities) - capacities
        for old, new, size in zip(
            starts.tolist(), new_starts.tolist(), sizes.tolist(), strict=True
        ):
            packed[new : new + size] = self._rows[old : old + size]
        self._rows = packed
        self._segments["start"][:] = new_starts
        self._segments["capacity"][:] = capacities
