"""The refresher of a collection: it chooses which page to request and records the answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.refresh.collection import KnownPage
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
from tres_scrapy.refresh.request import PageAnswer, RefreshRequest
from tres_scrapy.refresh.settings import DAY, RefresherOptions
from tres_scrapy.refresh.store import PageRow, Store, VisitRow
from tres_scrapy.refresh.verdict import Validators, judge, settle
from tres_scrapy.refresh.visit_item import SeenLinks, VisitItem, item_for


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

    def ready_in(self, now: float, busy: Collection[int] = ()) -> float:
        """Return the seconds until a page may be requested, infinity if there is no such page."""
        ready = self._ready[~np.isin(self.host_of, list(busy))] if busy else self._ready
        return max(0.0, float(ready.min()) - now) if len(ready) else float("inf")

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
        item = item_for(request, answer, verdict, row, now)
        links = dict[int, str]()
        if self._links is not None and answer.reading is not None and not verdict.failed:
            links = self._links.take(answer.reading)
        if verdict.before is not None and not verdict.before.loose and row.visits > 1:
            item.found = list(links.values())  # the crawl followed those of the first visit
        text = json.dumps(asdict(item))
        visit = VisitRow(request.visit, now, item.change, answer.status, text, list(links))
        self.store.book(visit, row, self._validators.record(host))
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
