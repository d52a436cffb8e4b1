"""A run over a collection: a budget of requests, spread over a horizon."""

from __future__ import annotations

from tres_scrapy.refresh.collection_file import Store
from tres_scrapy.refresh.refresher_option import DAY, RefresherOptions


class RefreshRun:
    """The open run of a store and what is left of its budget and its time.

    An open run with the same options is resumed unless its time is over; otherwise a new run
    begins. `pace` is the number of requests a second.
    """

    def __init__(self, store: Store, options: RefresherOptions, now: float) -> None:
        wanted = (options.budget, options.horizon, options.policy)
        previous = store.last_started()
        row = store.open_run()
        if row is not None:
            same = (row.budget, row.horizon, row.policy) == wanted
            over = row.horizon is not None and now >= row.started + row.horizon
            row = row if same and not over else None
        self.resumed = row is not None
        row = row or store.begin_run(now, *wanted)
        self.id, self.started = row.id, row.started
        self.budget, self.horizon = row.budget, row.horizon
        # Without a horizon, the time since the previous run is taken for the time until the next.
        period = row.horizon or (row.started - previous if previous is not None else DAY)
        self.pace = row.budget / max(period, 1.0)
        self.sent = store.visits_of(row.id)
        self._store = store

    def start(self, now: float) -> None:
        """Let the time of the run begin now, unless it has sent requests already."""
        if self.sent == 0:
            self.started = now
            self._store.start_run(self.id, now)

    def spent(self, now: float) -> bool:
        """Return whether the budget or the time is used up."""
        over = self.horizon is not None and now >= self.started + self.horizon
        return over or self.sent >= self.budget

    def wait_for_end(self, now: float) -> float:
        """Return the seconds until the horizon, 0 without one."""
        return 0.0 if self.horizon is None else max(0.0, self.started + self.horizon - now)

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent, 0 if it may be sent at once."""
        if self.horizon is None:
            return 0.0
        return max(0.0, self.started + self.sent * self.horizon / self.budget - now)

    def send(self, page: int, arm: int, now: float, *, conditional: bool) -> int:
        """Count a request that leaves; return the number of its visit."""
        visit = self._store.send(self.id, page, arm, now, conditional=conditional)
        self.sent += 1
        return visit

    def take_back(self, visit: int) -> None:
        """Forget a request that did not leave."""
        self._store.take_back(visit)
        self.sent -= 1

    def end(self, now: float) -> None:
        """Close the run."""
        self._store.end_run(self.id, now)
