"""A frontier ordered by a value of each sample."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import chain, count

import numpy as np
from numpy.typing import ArrayLike

from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import Eligibility, SampleStore, State

_Entry = tuple[float, int, int]  # -value, order of arrival, row


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

    def pop(self, busy_hosts: Sequence[int] = ()) -> tuple[int, float] | None:
        """Remove and return the best sample that is ready, and its value; None without one."""
        self._bring_back(busy_hosts)
        while self._heap:
            entry = heapq.heappop(self._heap)
            row = entry[2]
            if self._store.state(row) != State.PENDING:
                continue  # already chosen in another way
            standing = self._store.standing(np.array([row]), busy_hosts)[0]
            if standing == Eligibility.READY:
                return row, -entry[0]
            if standing == Eligibility.DEAD:
                self._store.drop(np.array([row]))
            else:
                heapq.heappush(self._aside.setdefault(self._store.host(row), []), entry)
        return None

    def empty(self) -> Rows:
        """Remove and return all samples, best first, so that they can get new values."""
        entries = sorted([*self._heap, *chain.from_iterable(self._aside.values())])
        self._heap.clear()
        self._aside.clear()
        return np.array([row for _, _, row in entries], dtype=np.int64)

    def _bring_back(self, busy_hosts: Sequence[int]) -> None:
        hosts = list(self._aside)
        for host in np.array(hosts)[~self._store.busy(hosts, busy_hosts)].tolist():
            aside = self._aside[host]
            while aside and self._store.state(aside[0][2]) != State.PENDING:
                heapq.heappop(aside)  # chosen in another way meanwhile
            if aside:
                heapq.heappush(self._heap, heapq.heappop(aside))
            if not aside:
                del self._aside[host]
