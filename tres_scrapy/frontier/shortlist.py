"""The waiting samples with the highest P(relevant) of the link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Table
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import Eligibility, SampleStore

_NONE: Final[Rows] = np.zeros(0, dtype=np.int64)


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
        values = self._store.rated(rows)
        better = rows[values >= self._least]
        new = np.unique(better[~self.has(better)])
        if len(new):
            self._list(np.concatenate([self._rows, new]))
        if len(self._rows) > 2 * self._size:
            self._keep(self._rows, self._least)

    def has(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of rows [n] are in the list."""
        self._listed.extend(len(self._store) - len(self._listed))
        return self._listed["listed"].take(rows)

    def ready(self, busy_hosts: Sequence[int] = ()) -> Rows:
        """Return the samples of the list that can be fetched now."""
        standing = self._look(busy_hosts)
        values = self._store.rated(self._rows)
        if self._least > 0 and np.count_nonzero(values >= self._least) < self._size / 4:
            rows = self._store.pending_rows()
            self._keep(rows[self._store.standing(rows) != Eligibility.DEAD])
            standing = self._store.standing(self._rows, busy_hosts)
        ready: Rows = self._rows[standing == Eligibility.READY]
        return ready

    def soon(self, hosts: Sequence[int], most: int) -> Rows:
        """Return the best samples of the list on these hosts, for when the hosts are free."""
        if not hosts:
            return _NONE
        rows: Rows = self._rows[np.isin(self._store.host_numbers(self._rows), hosts)]
        rows = rows[self._store.standing(rows) == Eligibility.READY]
        if len(rows) > most:
            rows = rows[np.argpartition(-self._store.rated(rows), most)[:most]]
        return rows

    def _look(self, busy_hosts: Sequence[int]) -> NDArray[np.uint8]:
        """Drop the samples that are not fetched any more; return the standing of the others."""
        standing = self._store.standing(self._rows, busy_hosts)
        alive = (standing != Eligibility.DEAD) & self._store.waits(self._rows)
        self._list(self._rows[alive])
        left: NDArray[np.uint8] = standing[alive]
        return left

    def _keep(self, rows: Rows, least: float = 0.0) -> None:
        """Make the best of rows the list; all others have less than `least`."""
        values = self._store.rated(rows)
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
