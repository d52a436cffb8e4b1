"""Compares rated links: the best for a few choices, and whether to wait for a better one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.store import Eligibility, SampleStore

LONGEST_REST: Final = 5.0  # seconds: a host that rests longer is not waited for
MIN_GAIN: Final = 0.1  # relevant pages: a link must be worth so much more to be waited for
CREDIT: Final = 20.0  # seconds that all slots may be idle in a row, times 1 - hurry
PAGES_A_CHOICE: Final = 4  # under way, for which a ranking serves one more choice


class Patience:
    """Compares the best link that can be sent now with the best on hosts that are busy.

    What a link is worth is the upper bound of Q, in relevant pages. Idle slots use up credit, which
    time restores: of all slots, at most the share 1 - `hurry` is idle for this. 1 never waits.
    """

    def __init__(self, hurry: float = 1.0) -> None:
        self.hurry = hurry
        self.hosts: Sequence[int] = ()  # busy hosts that are soon free
        self.waiting = False
        self.waited = 0.0  # seconds, of all slots
        self._used = 0.0  # seconds of credit
        self._free = 0.0  # share of the slots
        self._last: float | None = None

    def note(self, now: float, hosts: Sequence[int], free: float) -> None:
        """Note before a choice which busy hosts are soon free, and the share of free slots."""
        patience = 1 - self.hurry
        if self._last is not None:
            passed = min(LONGEST_REST, now - self._last)  # longer: a pause, or the network was gone
            idle = self._free * passed if self.waiting else 0.0
            self.waited += idle
            self._used = max(0.0, self._used + idle - patience * passed)
        self._last, self._free, self.waiting = now, free, False
        self.hosts = hosts if self._used < CREDIT * patience else ()

    def is_worth_waiting(self, ready: float, later: float) -> bool:
        """Return whether to send nothing now, given what the best link is worth and the later."""
        self.waiting = later - ready > MIN_GAIN
        return self.waiting


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
        domains = (*self.domains, store["domain"][row])
        left = store.is_pending(self.rows)
        free = left & (store.eligibility(self.rows, busy_hosts) == Eligibility.READY)
        ready = free & ~np.isin(store["domain"].take(self.rows), domains)
        if not ready.any() or self.bounds[free].max() > self.bounds[ready].max() + MIN_GAIN:
            return None
        soon_free = left & np.isin(store["host"].take(self.rows), soon)
        later = float(self.bounds[soon_free].max(initial=-np.inf))
        return self._replace(ready=ready, later=later, further=further - 1, domains=domains)
