"""Compares rated links: the best for a few choices, and whether to wait for a better one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import Eligibility, SampleStore

MIN_GAIN: Final = 0.1  # relevant pages: a link must be worth so much more to be waited for
RECENT: Final = 30  # fetches that say how well the crawl goes
PAGES_A_CHOICE: Final = 4  # under way, for which a ranking serves one more choice


class RecentYield:
    """The relevant share of the last fetches, later ones weighing more; 0.5 before the first."""

    def __init__(self) -> None:
        self.value = 0.5

    def note(self, reward: float) -> None:
        """Note the reward of a fetch."""
        self.value += (reward - self.value) / RECENT


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
        available: Availability = ANY_HOST,
    ) -> Self | None:
        """Return the ranking for the choice after that of `row`, None if all is to be rated again.

        Samples on the domain of `row` are worth less than they were. If one of them could be
        fetched and might be clearly better than all that is ready, rating again decides.
        """
        further = min(self.further, store.ledger.leased // PAGES_A_CHOICE)
        if not further:
            return None
        domains = (*self.domains, store["domain"][row])
        left = store.is_pending(self.rows)
        free = left & (store.eligibility(self.rows, available) == Eligibility.READY)
        ready = free & ~np.isin(store["domain"].take(self.rows), domains)
        if not ready.any() or self.bounds[free].max() > self.bounds[ready].max() + MIN_GAIN:
            return None
        soon_free = left & np.isin(store["host"].take(self.rows), available.soon)
        later = float(self.bounds[soon_free].max(initial=-np.inf))
        return self._replace(ready=ready, later=later, further=further - 1, domains=domains)
