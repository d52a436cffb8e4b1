"""Rated samples that serve a few choices: a choice among thousands takes milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.patience import WORTH
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import Eligibility, SampleStore

PAGES_A_CHOICE: Final = 4  # under way, for which a ranking serves one more choice


class Ranking(NamedTuple):
    """Samples [n] as they were rated for a choice; `ready` [n] marks those that can be chosen now.

    The more pages are under way, the less a choice knows of what they will bring, and the less it
    matters that the next choices do not know of the last page either. So a ranking serves
    1 + `further` choices, on different domains. With one request at a time it serves one, as in
    the paper.

    `splits` are those of the tree that `leaves` belong to. `later` is the highest bound of samples
    whose hosts are soon free. `domains` are those that it has served.
    """

    splits: int
    leaves: NDArray[np.int64]
    rows: Rows
    q_values: NDArray[np.float32]
    bounds: NDArray[np.float32]  # upper confidence bounds of Q
    ready: NDArray[np.bool_]
    later: float
    further: int
    domains: tuple[int, ...] = ()

    def best(self, priorities: Mapping[int, int]) -> int:
        """Return the place of the sample with the highest bound of those that are ready.

        Of equal ones it is the first with the highest priority; `priorities` has those that are
        not 0, by row.
        """
        bounds = np.where(self.ready, self.bounds, -np.inf)
        best = int(np.argmax(bounds))
        if not priorities:
            return best
        equal = np.flatnonzero(bounds == bounds[best]).tolist()
        return max(equal, key=lambda place: priorities.get(int(self.rows[place]), 0))

    def after(
        self,
        store: SampleStore,
        row: int,
        busy_hosts: Sequence[int] = (),
        soon: Sequence[int] = (),
    ) -> Self | None:
        """Return the ranking for the choice after that of `row`, None if all is to be rated again.

        Samples on the domain of `row` are worth less than they were. If one of them could be
        fetched and might be clearly better than all that is ready, rating again decides. `soon`
        are the busy hosts that are soon free.
        """
        further = min(self.further, store.ledger.leased // PAGES_A_CHOICE)
        if not further:
            return None
        domains = (*self.domains, store.domain(row))
        left = store.waits(self.rows)
        free = left & (store.standing(self.rows, busy_hosts) == Eligibility.READY)
        ready = free & ~np.isin(store.domains(self.rows), domains)
        if not ready.any() or self.bounds[free].max() > self.bounds[ready].max() + WORTH:
            return None
        soon_free = left & np.isin(store.host_numbers(self.rows), soon)
        later = float(self.bounds[soon_free].max(initial=-np.inf))
        return self._replace(ready=ready, later=later, further=further - 1, domains=domains)
