"""The refresher of a collection, which chooses pages and records answers, and the job it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.refresh.collection import KnownPage, lines_of
from tres_scrapy.refresh.main_text import SAME, Copy
from tres_scrapy.refresh.page_table import (
    Floats,
    Ints,
    Mask,
    PageTable,
    group_name,
    kind_name,
    number,
)
from tres_scrapy.refresh.policy import Bounds, StaticPolicy, oldest
from tres_scrapy.refresh.settings import DAY, RefresherOptions
from tres_scrapy.refresh.store import PageRow, Store
from tres_scrapy.refresh.verdict import ChangeVerdict, Validators, judge, settle
from tres_scrapy.refresh.visit import PageAnswer, RefreshRequest, SeenLinks, VisitItem

LONGEST_SLEEP: Final = 0.5  # seconds, so that a stop takes effect soon


class RefreshRun:
    """The open run of a store and what is left of its budget and its time.

    An open run with the same options is resumed unless its time is over; otherwise a new run
    begins. `pace` is the number of requests a second.
    """

    def __init__(self, store: Store, options: RefresherOptions, now: float) -> None:
        wanted = (options.budget, options.horizon)
        previous = store.last_started()
        row = store.open_run()
        if row is not None:
            same = (row.budget, row.horizon) == wanted
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

    def send(self, page: int, now: float, *, conditional: bool) -> int:
        """Count a request that leaves; return the number of its visit."""
        visit = self._store.send(self.id, page, now, conditional=conditional)
        self.sent += 1
        return visit

    def take_back(self, visit: int) -> None:
        """Forget a request that did not leave."""
        self._store.take_back(visit)
        self.sent -= 1


class Refresher:
    """A collection in a store, one run over it, and the policy that chooses its pages."""

    def __init__(
        self, store: Store, options: RefresherOptions, known: Iterable[KnownPage], now: float
    ) -> None:
        self.store, self.options = store, options
        self.added = store.add_pages(_row(page, now) for page in known)
        self.lost = store.lose_visits()
        self.rows = store.pages()
        self.run = RefreshRun(store, options, now)
        random = np.random.default_rng([options.seed, self.run.sent])
        names = [urlsplit(row.url).hostname or "" for row in self.rows]
        self.host_of: Ints = number(names)
        self.host_names: list[str] = np.unique(np.array(names, dtype=str)).tolist()
        self.host_places = {name: place for place, name in enumerate(self.host_names)}
        self.pages = _table(self.rows)
        self.out: set[int] = set()  # places of the pages that were requested and not answered
        self._asked = store.pages_of(self.run.id)
        self._ready = np.array([self._ready_at(row) for row in self.rows])
        self._unseen = np.array([row.copy is None and not row.gone for row in self.rows])
        self._links = SeenLinks(store.links()) if options.follow else None
        self.policy = StaticPolicy(
            self.pages,
            self.run.pace,
            Bounds(options.min_age, options.max_age, options.jitter),
            int(random.integers(2**31)),
        )
        self._validators = Validators(store.hosts(), random)
        self.counts = Counter[str]()

    def next(self, now: float, busy: Collection[int] = ()) -> RefreshRequest | None:
        """Return the request to make now; None: no page may be requested now.

        `busy` are the places in `host_names` of the hosts that must not be asked now.
        """
        if self.run.spent(now) or self.run.wait(now) > 0:
            return None
        allowed = self._ready <= now
        if busy:
            allowed &= ~np.isin(self.host_of, list(busy))
        if not allowed.any():
            return None
        place = self._select(allowed, now)
        self.policy.begin(place)
        row = self.rows[place]
        etag, modified = self._validators.choose(self._host(place), row)
        conditional = etag is not None or modified is not None
        visit = self.run.send(row.id, now, conditional=conditional)
        self._ready[place] = np.inf
        self._asked.add(row.id)
        self.out.add(place)
        return RefreshRequest(visit, place, row.url, etag, modified)

    def ready_in(self, now: float) -> float:
        """Return the seconds until a page may be requested, infinity if there is no such page."""
        return max(0.0, float(self._ready.min(initial=np.inf)) - now)

    def take_back(self, request: RefreshRequest, now: float) -> None:
        """Forget a request that was not allowed to leave; its page is not tried again soon."""
        self.run.take_back(request.visit)
        self.out.remove(request.place)
        self._ready[request.place] = now + min(self.options.max_age, DAY)
        self.policy.end()

    def book(self, request: RefreshRequest, answer: PageAnswer, now: float) -> VisitItem:
        """Record the answer to a request and return its item."""
        place, row = request.place, self.rows[request.place]
        verdict = judge(row, request, answer, now, self.options)
        observed = settle(row, verdict, now, self.options)
        if not verdict.failed:
            self.pages.see(place, observed, now)
        self.policy.end()
        host = self._host(place)
        self._validators.keep(host, row, answer, verdict)
        row.visits += 1
        item = _item(request, answer, verdict, row, now)
        links = dict[int, str]()
        if self._links is not None and answer.reading is not None and not verdict.failed:
            links = self._links.take(answer.reading)
        if verdict.before is not None and not verdict.before.loose and row.visits > 1:
            item.found = list(links.values())  # the crawl followed those of the first visit
        self.store.book(item, now, links, row, self._validators.record(host))
        self.out.remove(place)
        self._ready[place] = self._ready_at(row)
        self._unseen[place] = row.copy is None and not row.gone
        self.counts[item.change] += 1
        return item

    def rates(self) -> Floats:
        """Return the estimated changes a second of every page, [n]."""
        return self.pages.rates(self.run.pace)

    def _host(self, place: int) -> str:
        return self.host_names[int(self.host_of[place])]

    def _select(self, allowed: Mask, now: float) -> int:
        """Return a page without a copy, else one beyond max_age, else the choice of the policy."""
        for first in (self._unseen, now - self.pages.fetched > self.options.max_age):
            if (urgent := allowed & first).any():
                return oldest(self.pages, urgent)
        return self.policy.select(now, allowed)

    def _ready_at(self, row: PageRow) -> float:
        """Return when a page may be requested again; a page without a copy does not wait.

        A run without a horizon requests a page only once.
        """
        if self.run.horizon is None and row.id in self._asked:
            return float("inf")
        if row.copy is None and not row.gone:
            return row.retry_at
        return max(row.last_seen + self.options.min_age, row.retry_at)


def _table(rows: Sequence[PageRow]) -> PageTable:
    groups = number([group_name(row.url) for row in rows])
    kinds = number([kind_name(row.url) for row in rows])
    pages = PageTable(np.array([row.weight for row in rows]), (kinds, groups))
    pages.fetched = np.array([row.last_seen for row in rows])
    pages.changes = np.array([float(row.changes) for row in rows])
    pages.changed_time = np.array([row.changed_time for row in rows])
    pages.quiet_time = np.array([row.quiet_time for row in rows])
    return pages


def _row(page: KnownPage, now: float) -> PageRow:
    seen = now if page.fetched is None else min(page.fetched, now)
    return PageRow(0, page.url, page.weight, seen, seen, copy=page.copy)


def _item(
    request: RefreshRequest, answer: PageAnswer, verdict: ChangeVerdict, row: PageRow, now: float
) -> VisitItem:
    """Return the item of a visit after its page's row was updated."""
    item = VisitItem(row.url, verdict.change, request.visit, answer.status, answer.url)
    item.fetched_at, item.changed_at = _iso(now), _iso(row.last_change)
    item.age, item.distance = verdict.age, verdict.distance
    item.old_hash, item.new_hash = _hex(verdict.before), _hex(row.copy)
    item.visits, item.changes = row.visits, row.changes
    item.error = answer.error
    if answer.reading is not None and not verdict.failed and verdict.change != SAME:
        item.title, item.text = answer.reading.title, answer.reading.text
    return item


def _iso(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _hex(copy: Copy | None) -> str:
    return copy.hash.hex() if copy is not None else ""


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
        items = {(item.url, item.fetched_at): item for item in self.store.outbox()}
        for row in lines_of(output) if items else ():
            item = items.pop((row["url"], row.get("fetched_at", "")), None)
            if item is not None:
                self.store.delivered(item.visit)
        return list(items.values())

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
