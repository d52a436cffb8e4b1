"""The waiting samples with the highest P(relevant) of the link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import SampleStore, Standing

_NONE: Final[Rows] = np.zeros(0, dtype=np.int64)


class Shortlist:
    """At least the best `size` PENDING samples by feature 9, as far as they were rated lately.

    A tree draws at random within a leaf, where thousands of links may wait: the best of them would
    hardly ever be drawn. The list is filled again from all samples when few are left.
    """

    def __init__(self, store: SampleStore, size: int) -> None:
        self._store = store
        self._size = size
        self._rows = _NONE
        self._least = 0.0  # value of a sample that is added; all better ones are in the list

    def offer(self, rows: Rows) -> None:
        """Add samples that were rated."""
        values, _ = self._store.rated(rows)
        better = rows[values >= self._least]
        self._rows = np.union1d(self._rows, better)
        if len(self._rows) > 2 * self._size:
            self._keep(self._rows)

    def ready(self, busy_hosts: Sequence[int] = ()) -> Rows:
        """Return the samples of the list that can be fetched now."""
        self._rows = self._rows[self._store.waits(self._rows)]
        if len(self._rows) < self._size // 4 and self._least > 0:
            self._keep(self._store.pending_rows())
        standing = self._store.standing(self._rows, busy_hosts)
        ready: Rows = self._rows[standing == Standing.READY]
        self._rows = self._rows[standing != Standing.DEAD]
        return ready

    def _keep(self, rows: Rows) -> None:
        """Make the best of rows the list."""
        values, _ = self._store.rated(rows)
        self._least = 0.0
        if len(rows) > self._size:
            best = np.argpartition(-values, self._size)[: self._size]
            self._least = float(values[best].min())
            rows = np.sort(rows[best])
        self._rows = rows
