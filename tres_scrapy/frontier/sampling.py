"""Tree-Frontier sampling: the samples of all leaves, and who stands for them (P 2.6)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import Eligibility, SampleStore

_SEGMENT = np.dtype([("start", "i8"), ("size", "i8"), ("capacity", "i8")])
_NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
_ROUNDS = 8  # draws that hit only busy hosts before a leaf is searched or skipped


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


class Representatives(NamedTuple):
    """Frontier samples that stand for their leaves; arrays of one length.

    `positions` are the positions of the samples within their leaves.
    """

    leaves: NDArray[np.int64]
    rows: Rows
    positions: NDArray[np.int64]

    def take(self, number: int, pool: LeafPool) -> tuple[int, int]:
        """Remove sample `number` from its leaf; return the leaf and the row."""
        leaf, row, position = (int(column[number]) for column in self)
        pool.discard(leaf, row, position)
        return leaf, row


def representatives(
    pool: LeafPool,
    store: SampleStore,
    random: np.random.Generator,
    available: Availability = ANY_HOST,
    *,
    each: int = 1,
    most: float = math.inf,
) -> Representatives:
    """Draw samples of every leaf, uniformly among those that are ready.

    `counts` computes how many; with `each` = 1 it is one of every leaf, as in the paper.

    Drawn samples that can no longer be fetched are dropped. A leaf whose drawn samples are all on
    busy hosts is skipped for this choice. If that skips all leaves, every sample is checked, so
    that no ready sample is missed.
    """
    found: list[Representatives] = []
    occupied = pool.occupied()
    waiting = np.repeat(occupied, counts(pool.sizes()[occupied], each, most))
    for _ in range(_ROUNDS):
        drawn, waiting = _draw(pool, store, random, waiting, available)
        found.append(drawn)
        if not len(waiting):
            break
    if len(waiting) and not any(len(drawn.rows) for drawn in found):
        found = [_search(pool, store, random, np.unique(waiting), available)]
    return _joined(found)


def counts(sizes: NDArray[np.int64], each: int, most: float) -> NDArray[np.int64]:
    """Return how many samples to draw from leaves of these sizes, [n].

    With `each` = 1 it is one of every leaf. Otherwise it is `each` or the square root of the size,
    whichever is larger, because most samples are in a few leaves with little experience. If the
    sum exceeds `most`, the number beyond one a leaf is scaled down by the same factor everywhere.
    """
    if each == 1:
        return np.ones(len(sizes), dtype=np.int64)
    more = np.maximum(each, np.ceil(np.sqrt(sizes))) - 1
    share = min(1.0, max(0.0, most - len(sizes)) / max(1.0, more.sum()))
    drawn: NDArray[np.int64] = 1 + (more * share).astype(np.int64)
    return drawn


def _draw(
    pool: LeafPool,
    store: SampleStore,
    random: np.random.Generator,
    leaves: NDArray[np.int64],
    available: Availability,
) -> tuple[Representatives, NDArray[np.int64]]:
    """Draw once for each of `leaves`, which may repeat; draw again if the sample was dead.

    Return the ready samples, and the leaves whose draws were busy.
    """
    ready, busy = [], [_NONE]
    while len(leaves):
        positions, rows = pool.draw(leaves, random)
        eligibility = store.eligibility(rows, available)
        taken, dead = eligibility == Eligibility.READY, eligibility == Eligibility.DEAD
        ready.append(Representatives(leaves[taken], rows[taken], positions[taken]))
        busy.append(leaves[eligibility == Eligibility.BUSY])
        leaves, positions, rows = leaves[dead], positions[dead], rows[dead]
        gone, first = np.unique(rows, return_index=True)  # a row may be drawn twice
        store.drop(gone[store.is_pending(gone)])  # others were chosen from elsewhere
        _remove(pool, leaves[first], positions[first])
        leaves = leaves[pool.sizes()[leaves] > 0]
    return _joined(ready), np.concatenate(busy)


def _remove(pool: LeafPool, leaves: NDArray[np.int64], positions: NDArray[np.int64]) -> None:
    """Remove rows from leaves, highest position first: the last row fills the gap."""
    for i in np.argsort(-positions).tolist():
        pool.remove(int(leaves[i]), int(positions[i]))


def _search(
    pool: LeafPool,
    store: SampleStore,
    random: np.random.Generator,
    leaves: NDArray[np.int64],
    available: Availability,
) -> Representatives:
    """Check every sample of `leaves`, drop dead ones, draw one ready sample of each leaf."""
    found = []
    for leaf in leaves.tolist():
        rows = pool.rows(leaf)
        eligibility = store.eligibility(rows, available)
        alive = eligibility != Eligibility.DEAD
        pool.keep(leaf, alive)
        dead = rows[~alive]
        store.drop(dead[store.is_pending(dead)])
        ready = np.flatnonzero(eligibility[alive] == Eligibility.READY)
        if len(ready):
            position = random.choice(ready, size=1)
            found.append(Representatives(np.array([leaf]), rows[alive][position], position))
    return _joined(found)


def _joined(parts: Sequence[Representatives]) -> Representatives:
    none = Representatives(_NONE, _NONE, _NONE)
    return Representatives(*(np.concatenate(arrays) for arrays in zip(none, *parts, strict=True)))


def random_state(random: np.random.Generator) -> bytes:
    """Return the state of a generator for `restore_random`."""
    return json.dumps(random.bit_generator.state).encode()


def restore_random(random: np.random.Generator, state: bytes) -> None:
    """Set a generator to a state that `random_state` returned."""
    random.bit_generator.state = json.loads(state)
