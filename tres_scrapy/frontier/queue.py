"""Waiting samples by a value of each: a queue, and the list of the best."""

from __future__ import annotations

import heapq
from itertools import chain, count
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import Eligibility, SampleStore, State

_Entry = tuple[float, int, int]  # -value, order of arrival, row
_NONE: Final[Rows] = np.zeros(0, dtype=np.int64)


class FrontierQueue:
    """PENDING samples, highest value first; among equal values, the oldest first.

    Samples that can no longer be fetched are dropped when they reach the top. Samples on a busy
    host are set aside; once the host is free, each choice brings back the best of them. Without
    this, a queue whose best samples share one host would be searched at every choice.
    """

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self._heap: list[_Entry] = []
        self._aside: dict[int, list[_Entry]] = {}  # host: a heap
        self._arrival = count()

    def push(self, rows: Rows, values: ArrayLike) -> None:
        """Add samples with their values, [n]."""
        pairs = zip(np.asarray(values).tolist(), rows.tolist(), strict=True)
        entries = [(-value, next(self._arrival), row) for value, row in pairs]
        if len(entries) > len(self._heap):
            self._heap += entries
            heapq.heapify(self._heap)
        else:
            for entry in entries:
                heapq.heappush(self._heap, entry)

    def pop(self, available: Availability = ANY_HOST) -> tuple[int, float] | None:
        """Remove and return the best sample that is ready, and its value; None without one."""
        self._bring_back(available)
        while self._heap:
            entry = heapq.heappop(self._heap)
            row = entry[2]
            if self._store["state"][row] != State.PENDING:
                continue  # already chosen in another way
            eligibility = self._store.eligibility(np.array([row]), available)[0]
            if eligibility == Eligibility.READY:
                return row, -entry[0]
            if eligibility == Eligibility.DEAD:
                self._store.drop(np.array([row]))
            else:
                heapq.heappush(self._aside.setdefault(self._store["host"][row], []), entry)
        return None

    def empty(self) -> Rows:
        """Remove and return all samples, best first, so that they can get new values."""
        entries = sorted([*self._heap, *chain.from_iterable(self._aside.values())])
        self._heap.clear()
        self._aside.clear()
        return np.array([row for _, _, row in entries], dtype=np.int64)

    def _bring_back(self, available: Availability) -> None:
        if not self._aside:
            return
        hosts = np.array(list(self._aside), dtype=np.int32)
        for host in hosts[~self._store.hosts.busy(hosts, available)].tolist():
            aside = self._aside[host]
            while aside and self._store["state"][aside[0][2]] != State.PENDING:
                heapq.heappop(aside)  # chosen in another way meanwhile
            if aside:
                heapq.heappush(self._heap, heapq.heappop(aside))
            if not aside:
                del self._aside[host]


class Shortlist:
    """The PENDING samples with the highest feature 9, at most twice `size`.

    A tree draws at random within a leaf, where thousands of links may wait: the best of them would
    hardly ever be drawn. The list is filled again from all samples when few of it are left or as
    good as they were.
    """

    def __init__(self, store: SampleStore, size: int) -> None:
        self._store = store
        self._size = size
        self._rows = _NONE
        self._listed = Table(np.dtype([("listed", "?")]))  # by row: whether it is in the list
        self._least = 0.0  # value of a sample that is added; all better ones are in the list

    def offer(self, rows: Rows) -> None:
        """Add samples that were rated."""
        values = self._store["probability"].take(rows)
        better = rows[values >= self._least]
        new = np.unique(better[~self.has(better)])
        if len(new):
            self._list(np.concatenate([self._rows, new]))
        if len(self._rows) > 2 * self._size:
            self._keep(self._rows, self._least)

    def has(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of rows [n] are in the list."""
        self._listed.grow(len(self._store))
        return self._listed["listed"].take(rows)

    def ready(self, available: Availability = ANY_HOST) -> Rows:
        """Return the samples of the list that can be fetched now."""
        eligibility = self._look(available)
        values = self._store["probability"].take(self._rows)
        if self._least > 0 and np.count_nonzero(values >= self._least) < self._size / 4:
            rows = self._store.pending_rows()
            self._keep(rows[self._store.eligibility(rows) != Eligibility.DEAD])
            eligibility = self._store.eligibility(self._rows, available)
        ready: Rows = self._rows[eligibility == Eligibility.READY]
        return ready

    def soon(self, available: Availability, most: int) -> Rows:
        """Return the best samples of the list on hosts that are soon free."""
        if not available.soon:
            return _NONE
        rows: Rows = self._rows[np.isin(self._store["host"].take(self._rows), available.soon)]
        free = available._replace(busy=(), soon=(), patient=False)
        rows = rows[self._store.eligibility(rows, free) == Eligibility.READY]
        if len(rows) > most:
            rows = rows[np.argpartition(-self._store["probability"].take(rows), most)[:most]]
        return rows

    def _look(self, available: Availability) -> NDArray[np.uint8]:
        """Drop the samples that are not fetched any more; return the eligibility of the others."""
        eligibility = self._store.eligibility(self._rows, available)
        alive = (eligibility != Eligibility.DEAD) & self._store.is_pending(self._rows)
        self._list(self._rows[alive])
        left: NDArray[np.uint8] = eligibility[alive]
        return left

    def _keep(self, rows: Rows, least: float = 0.0) -> None:
        """Make the best of rows the list; all others have less than `least`."""
        values = self._store["probability"].take(rows)
        self._least = least
        if len(rows) > self._size:
            best = np.argpartition(-values, self._size)[: self._size]
            self._least = max(least, float(values[best].min()))
            rows = np.sort(rows[best])
        self._list(rows)

    def _list(self, rows: Rows) -> None:
        self._listed["listed"][self._rows] = False
        self._rows = rows
        self._listed["listed"][rows] = True
