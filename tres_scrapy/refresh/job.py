"""A refresh job: one or more runs over a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from time import time
from typing import Final

from tres_scrapy.refresh.collection import KnownPage
from tres_scrapy.refresh.refresher import Refresher
from tres_scrapy.refresh.request import RefreshRequest
from tres_scrapy.refresh.settings import RefresherOptions
from tres_scrapy.refresh.store import Store
from tres_scrapy.refresh.visit_item import VisitItem, item_of, written

LONGEST_SLEEP: Final = 0.5  # seconds, so that a stop takes effect soon


class RefreshJob:
    """Leads the runs of one process: with `watch` a run follows the one before."""

    def __init__(
        self, store: Store, options: RefresherOptions, known: Iterable[KnownPage], *, watch: bool
    ) -> None:
        self.store, self.watch = store, watch
        self._options = options
        self.refresher = Refresher(store, options, known, time())

    def over(self) -> bool:
        """Return whether the job is done; with `watch` start the next run instead."""
        refresher, now = self.refresher, time()
        # Without a horizon the job does not wait: pages that are not ready are left to another run.
        longest = 0.0 if refresher.run.horizon is None else float("inf")
        ready = refresher.ready_in(now)
        if not refresher.run.spent(now) and (ready == 0 or ready < longest):
            return False
        if refresher.out or not self.watch:
            return not refresher.out
        if refresher.run.wait_for_end(now) <= 0:
            self.store.end_run(refresher.run.id, now)
            self.refresher = Refresher(self.store, self._options, (), now)
        return False

    def next(self, resting: Iterable[str], limit: int, host_limit: int) -> RefreshRequest | None:
        """Return the request to make now; `resting` are the hosts whose delay is not over.

        At most `limit` requests are open at a time, and `host_limit` to one host.
        """
        refresher = self.refresher
        if len(refresher.out) >= limit:
            return None
        places = refresher.host_places
        counts = Counter(int(refresher.host_of[place]) for place in refresher.out)
        busy = {host for host, count in counts.items() if count >= host_limit}
        busy |= {places[name] for name in resting if name in places}
        return refresher.next(time(), sorted(busy))

    def sleep(self) -> float:
        """Return the seconds to wait for an answer before asking for the next request."""
        return min(max(self.refresher.run.wait(time()), 0.01), LONGEST_SLEEP)

    def undelivered(self, output: Path) -> list[VisitItem]:
        """Return the items that a killed process recorded but did not write to its output."""
        items = [item_of(text) for _, text in self.store.outbox()]
        have = written(output) if items else set()
        for item in items:
            if (item.url, item.fetched_at) in have:
                self.store.delivered(item.visit)
        return [item for item in items if (item.url, item.fetched_at) not in have]

    def plan(self) -> str:
        """Return one line about the run that starts."""
        refresher, run = self.refresher, self.refresher.run
        return (
            f"{len(refresher.rows)} pages ({refresher.added} new), "
            f"{run.budget - run.sent} of {run.budget} requests left"
            + (f" in {run.wait_for_end(time()):.0f} s" if run.horizon else "")
            + (", resuming the previous run" if run.resumed else "")
        )

    def figures(self) -> str:
        """Return one line about the answers so far."""
        run, counts = self.refresher.run, self.refresher.counts
        found = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        return f"{run.sent} of {run.budget} requests: {found or 'no answer yet'}"
