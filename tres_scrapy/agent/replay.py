"""The experience replay B (P 2.4.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.pool import Rows

NONE = -1
_EXPERIENCE = np.dtype(
    [
        ("x", "f4", (len(FEATURES),)),
        ("reward", "f4"),
        ("first", "i8"),
        ("outlinks", "i8"),
        ("sampled", "i8"),
    ]
)


class Batch(NamedTuple):
    """Experiences and their candidate actions A~ in one flat array.

    Experience i has `counts[i]` candidates; those of experience 0 come first.
    """

    x: NDArray[np.float32]  # [B, 9]
    rewards: NDArray[np.float32]  # [B]
    candidates: Rows  # [sum of counts]
    counts: NDArray[np.int64]  # [B]


class Replay:
    """The last `capacity` experiences, each with the range of rows of its page's outlinks.

    A~_{t+1} is that range plus the sample that is chosen next. Only the range is kept: the store
    returns the vectors, with features 7 and 8 as they are when a batch is used.
    """

    def __init__(self, capacity: int, random: np.random.Generator) -> None:
        self._records = np.zeros(capacity, dtype=_EXPERIENCE)
        self._added = 0
        self._random = random

    def __len__(self) -> int:
        return min(self._added, len(self._records))

    def add(self, x: NDArray[np.float32], reward: float, outlinks: Rows) -> int:
        """Store x [9], its reward and the consecutive rows of the page's outlinks.

        Return a ticket for `note_sampled`.
        """
        first = int(outlinks[0]) if len(outlinks) else 0
        self._records[self._added % len(self._records)] = (x, reward, first, len(outlinks), NONE)
        self._added += 1
        return self._added - 1

    def note_sampled(self, ticket: int, row: int) -> None:
        """Add the row chosen at the next step to the candidates of `ticket`."""
        if self._added - ticket <= len(self._records):
            self._records["sampled"][ticket % len(self._records)] = row

    def restore(
        self,
        x: NDArray[np.float32],
        rewards: NDArray[np.float32],
        firsts: Rows,
        outlinks: NDArray[np.int64],
        sampled: Rows,
    ) -> None:
        """Fill an empty replay with all past experiences [n], oldest first.

        `firsts` and `outlinks` hold the first row and the number of the outlinks. `sampled` is -1
        where no next row was noted.
        """
        self._added = len(x)
        kept = np.arange(max(0, len(x) - len(self._records)), len(x))
        columns: list[NDArray[Any]] = [x, rewards, firsts, outlinks, sampled]
        for name, values in zip(_EXPERIENCE.names or (), columns, strict=True):
            self._records[name][kept % len(self._records)] = values[kept]

    def batch(self, size: int) -> Batch:
        """Draw `size` experiences uniformly with replacement, U(B)."""
        drawn = self._records[self._random.integers(len(self), size=size)]
        sampled = drawn["sampled"]
        counts = drawn["outlinks"] + (sampled != NONE)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        candidates = np.repeat(drawn["first"], counts) + within
        has_sample = sampled != NONE
        candidates[ends[has_sample] - 1] = sampled[has_sample]
        return Batch(drawn["x"], drawn["reward"], candidates, counts)
