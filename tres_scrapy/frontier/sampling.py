"""Tree-Frontier sampling: representatives of each leaf (P 2.6, Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.pool import LeafPool, Rows
from tres_scrapy.frontier.store import Eligibility, SampleStore

_NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
_ROUNDS = 8  # draws that hit only busy hosts before a leaf is searched or skipped


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
    busy_hosts: Sequence[int] = (),
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
        drawn, waiting = _draw(pool, store, random, waiting, busy_hosts)
        found.append(drawn)
        if not len(waiting):
            break
    if len(waiting) and not any(len(drawn.rows) for drawn in found):
        found = [_search(pool, store, random, np.unique(waiting), busy_hosts)]
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
    busy_hosts: Sequence[int],
) -> tuple[Representatives, NDArray[np.int64]]:
    """Draw once for each of `leaves`, which may repeat; draw again if the sample was dead.

    Return the ready samples, and the leaves whose draws were busy.
    """
    ready, busy = [], [_NONE]
    while len(leaves):
        positions, rows = pool.draw(leaves, random)
        standing = store.standing(rows, busy_hosts)
        taken, dead = standing == Eligibility.READY, standing == Eligibility.DEAD
        ready.append(Representatives(leaves[taken], rows[taken], positions[taken]))
        busy.append(leaves[standing == Eligibility.BUSY])
        leaves, positions, rows = leaves[dead], positions[dead], rows[dead]
        gone, first = np.unique(rows, return_index=True)  # a row may be drawn twice
        store.drop(gone[store.waits(gone)])  # others were chosen from elsewhere
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
    busy_hosts: Sequence[int],
) -> Representatives:
    """Check every sample of `leaves`, drop dead ones, draw one ready sample of each leaf."""
    found = []
    for leaf in leaves.tolist():
        rows = pool.rows(leaf)
        standing = store.standing(rows, busy_hosts)
        alive = standing != Eligibility.DEAD
        pool.keep(leaf, alive)
        dead = rows[~alive]
        store.drop(dead[store.waits(dead)])
        ready = np.flatnonzero(standing[alive] == Eligibility.READY)
        if len(ready):
            position = random.choice(ready, size=1)
            found.append(Representatives(np.array([leaf]), rows[alive][position], position))
    return _joined(found)


def _joined(parts: Sequence[Representatives]) -> Representatives:
    none = Representatives(_NONE, _NONE, _NONE)
    return Representatives(*(np.concatenate(arrays) for arrays in zip(none, *parts, strict=True)))
