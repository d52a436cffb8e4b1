"""Tree-Frontier sampling: one representative of each leaf (P 2.6, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.pool import LeafPool, Rows
from tres_scrapy.frontier.store import SampleStore, Standing

_ROUNDS = 8  # draws from a leaf that only meets busy hosts, before it is searched or passed over


class Representatives(NamedTuple):
    """One frontier sample of each leaf that has one to give; arrays of one length."""

    leaves: NDArray[np.int64]
    positions: NDArray[np.int64]
    rows: Rows


def representatives(
    pool: LeafPool,
    store: SampleStore,
    random: np.random.Generator,
    busy_hosts: Sequence[int] = (),
) -> Representatives:
    """Draw a sample of every leaf uniformly among those that can be requested now.

    Samples that no longer can be taken are dropped when met, each once. A leaf whose draws meet
    only busy hosts is passed over for now, unless all are: then every sample is looked at, so
    that none that is ready is missed.
    """
    waiting = pool.occupied()
    found: list[Representatives] = []
    for _ in range(_ROUNDS):
        drawn, waiting = _draw(pool, store, random, waiting, busy_hosts)
        found.append(drawn)
        if not len(waiting):
            break
    if len(waiting) and not any(len(drawn.rows) for drawn in found):
        found = [_search(pool, store, random, waiting, busy_hosts)]
    return Representatives(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def _draw(
    pool: LeafPool,
    store: SampleStore,
    random: np.random.Generator,
    leaves: NDArray[np.int64],
    busy_hosts: Sequence[int],
) -> tuple[Representatives, NDArray[np.int64]]:
    """Draw once from each leaf, again where the draw was dead; return those drawn, those busy."""
    ready, busy = [], []
    while len(leaves):
        positions, rows = pool.draw(leaves, random)
        standing = store.standing(rows, busy_hosts)
        taken, dead = standing == Standing.READY, standing == Standing.DEAD
        ready.append(Representatives(leaves[taken], positions[taken], rows[taken]))
        busy.append(leaves[standing == Standing.BUSY])
        for leaf, position in zip(leaves[dead].tolist(), positions[dead].tolist(), strict=True):
            pool.remove(leaf, position)
        store.drop(rows[dead])
        leaves = np.intersect1d(leaves[dead], pool.occupied(), assume_unique=True)
    empty = np.zeros(0, dtype=np.int64)
    ready.append(Representatives(empty, empty, empty))
    drawn = Representatives(*(np.concatenate(arrays) for arrays in zip(*ready, strict=True)))
    return drawn, np.concatenate([empty, *busy])


def _search(
    pool: LeafPool,
    store: SampleStore,
    random: np.random.Generator,
    leaves: NDArray[np.int64],
    busy_hosts: Sequence[int],
) -> Representatives:
    """Look at every sample of `leaves`, drop the dead, draw among the ready of each leaf."""
    found = []
    for leaf in leaves.tolist():
        rows = pool.rows(leaf)
        standing = store.standing(rows, busy_hosts)
        alive = standing != Standing.DEAD
        pool.keep(leaf, alive)
        store.drop(rows[~alive])
        ready = np.flatnonzero(standing[alive] == Standing.READY)
        if len(ready):
            position = random.choice(ready)
            found.append((leaf, position, rows[alive][position]))
    columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return Representatives(*columns)
