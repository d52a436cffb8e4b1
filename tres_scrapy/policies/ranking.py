"""Rated samples that serve a few choices: a choice among thousands takes milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import SampleStore, Standing

SHARE: Final = 4  # a ranking serves one more choice for so many pages under way


class Ranking(NamedTuple):
    """Samples [n] that are ready, as they were rated for a choice among them.

    The more pages are under way, the less a choice knows of what they will bring, and the less it
    matters that the next choices do not know of the last page either. So a ranking serves
    1 + `further` choices. With one request at a time it serves one, as in the paper.

    `splits` are those of the tree that `leaves` belong to. `later` is the highest bound of links
    whose hosts are soon free.
    """

    splits: int
    leaves: NDArray[np.int64]
    rows: Rows
    q_values: NDArray[np.float32]
    bounds: NDArray[np.float32]  # upper confidence bounds of Q
    later: float
    further: int

    @property
    def best(self) -> int:
        """The place of the sample with the highest bound."""
        return int(np.argmax(self.bounds))

    def rest(
        self,
        store: SampleStore,
        row: int,
        busy_hosts: Sequence[int] = (),
        soon: Sequence[int] = (),
    ) -> Self | None:
        """Return what is left for the next choice after `row` was chosen, None if nothing is.

        Links to the domain of `row` are not: they are worth less than before. `soon` are the busy
        hosts that are soon free.
        """
        other = store.domains(self.rows) != store.domain(row)
        ready = other & store.waits(self.rows)
        ready &= store.standing(self.rows, busy_hosts) == Standing.READY
        if not self.further or not ready.any():
            return None
        waits = other & np.isin(store.host_numbers(self.rows), soon)
        return self._replace(
            leaves=self.leaves[ready],
            rows=self.rows[ready],
            q_values=self.q_values[ready],
            bounds=self.bounds[ready],
            later=float(self.bounds[waits].max(initial=self.later)),
            further=self.further - 1,
        )
