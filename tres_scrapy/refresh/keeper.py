"""Keeps a collection fresh: which page is asked for when, and what its answer means."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.refresh.bandit import Floats, Mask
from tres_scrapy.refresh.collection import KnownPage
from tres_scrapy.refresh.collection_file import Host, PageRow, RunRow, Store, VisitRow
from tres_scrapy.refresh.errand import Errand, PageAnswer, VisitItem
from tres_scrapy.refresh.grouping import arms_of, group_name, kind_name, number
from tres_scrapy.refresh.interval import Bounds, IntervalPolicy
from tres_scrapy.refresh.main_text import MINOR, OTHER, SAME, compare, distance
from tres_scrapy.refresh.page_policy import Ints, PageTable, oldest
from tres_scrapy.refresh.rate import pooled_rates
from tres_scrapy.refresh.roster import PolicySetup, agent_of, make_policy

NEW, GONE, ERROR = "new", "gone", "error"
DAY: Final = 86_400.0
MISSING: Final = (404, 410)
NOT_MODIFIED: Final = 304
AUDITS: Final = 0.25  # share of visits without condition on hosts whose validators are untried
LATER_AUDITS: Final = 0.05  # and on hosts where they have told of a change
CHECKPOINT: Final = 200  # visits between two of the network's


@dataclass(frozen=True)
class KeeperOptions:
    """What the collection is kept by; times in seconds."""

    budget: int
    horizon: float | None = None  # None: the requests are made at once
    policy: str = "static"
    min_age: float = 60.0
    max_age: float = 30 * DAY
    jitter: float = 0.1
    grace: int = 3  # answers in a row that a page is not there until it is gone
    minor: int = 12  # lanes of 256 in which a page may differ and be the same
    minor_is_change: bool = False
    retry: float = 3_600.0  # after a failure, twice as long after each more
    seed: int = 0
    follow: bool = False  # whether links that were not there before are told


class Keeper:
    """The collection in a store, led by a policy within a budget of requests.

    A run that was killed goes on with what is left of its budget and its time.
    """

    def __init__(
        self, store: Store, options: KeeperOptions, known: Iterable[KnownPage], now: float
    ) -> None:
        self.store, self.options = store, options
        self.added = store.add_pages(_row(page, now) for page in known)
        self.lost = store.lose_visits()
        self.rows = store.pages()
        self._hosts = store.hosts()
        self.run = self._begin(now)
        self.sent = store.visits_of(self.run.id)
        self._random = np.random.default_rng([options.seed, self.sent])
        names = [urlsplit(row.url).hostname or "" for row in self.rows]
        self.host_of: Ints = number(names)
        self.host_names = np.unique(np.array(names, dtype=str)).tolist()
        self.pages = self._pages()
        self._out: dict[int, Errand] = {}  # by place, asked for and not answered
        self._asked = store.pages_of(self.run.id)
        self._ready = np.array([self._ready_at(row) for row in self.rows])
        self._unseen = np.array([row.copy is None and not row.gone for row in self.rows])
        self._links = store.links() if options.follow else set()
        self.policy = make_policy(options.policy, self._setup(now))
        self._load_agent()
        self.counts: dict[str, int] = {}

    def start(self, now: float) -> None:
        """Let the time of a run begin now, unless it has begun to make requests."""
        if self.sent == 0:
            self.run = replace(self.run, started=now)
            self.store.start_run(self.run.id, now)

    @property
    def out(self) -> int:
        """How many requests have no answer yet."""
        return len(self._out)

    @property
    def pace(self) -> float:
        """Requests a second that the run may make."""
        return self._pace

    def spent(self, now: float) -> bool:
        """Tell whether no request is left to be made."""
        horizon = self.run.horizon
        over = horizon is not None and now >= self.run.started + horizon
        return over or self.sent >= self.run.budget

    def wait_for_end(self, now: float) -> float:
        """Return the seconds until the horizon, 0 without one."""
        horizon = self.run.horizon
        return 0.0 if horizon is None else max(0.0, self.run.started + horizon - now)

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be made, 0 if it may at once."""
        if self.run.horizon is None:
            return 0.0
        due = self.run.started + self.sent * self.run.horizon / self.run.budget
        return max(0.0, due - now)

    def next(self, now: float, busy: Collection[int] = ()) -> Errand | None:
        """Return the request to make now; None: there is none that may be made now.

        `busy` are the places in `host_names` of hosts that are not to be asked now.
        """
        if self.spent(now) or self.wait(now) > 0:
            return None
        allowed = self._ready <= now
        if busy:
            allowed &= ~np.isin(self.host_of, list(busy))
        if not allowed.any():
            return None
        place = self._select(allowed, now)
        self.policy.begin(place, now)
        row = self.rows[place]
        etag, modified = self._validators(row, place)
        conditional = etag is not None or modified is not None
        arm = int(self.pages.arms[place])
        visit = self.store.send(self.run.id, row.id, arm, now, conditional=conditional)
        self.sent += 1
        self._ready[place] = np.inf
        self._asked.add(row.id)
        self._out[place] = errand = Errand(visit, place, row.url, etag, modified)
        return errand

    def ready_in(self, now: float, busy: Collection[int] = ()) -> float:
        """Return the seconds until a page may be asked for, infinity if none will be."""
        ready = self._ready[~np.isin(self.host_of, list(busy))] if busy else self._ready
        return max(0.0, float(ready.min()) - now) if len(ready) else float("inf")

    def take_back(self, errand: Errand, now: float) -> None:
        """Forget a request that was not allowed to leave, and do not try it again soon."""
        self.store.take_back(errand.visit)
        self.sent -= 1
        del self._out[errand.place]
        self._ready[errand.place] = now + min(self.options.max_age, DAY)
        self.policy.end(errand.place, None, now)

    def book(self, errand: Errand, answer: PageAnswer, now: float) -> VisitItem:
        """Write down what came of a request, and return its item."""
        place = errand.place
        row = self.rows[place]
        before = row.copy
        age = now - row.last_seen
        change, lanes = self._judge(row, errand, answer)
        report = VisitItem(row.url, change, errand.visit, answer.status, answer.url, age=age)
        report.distance, report.error = lanes, answer.error
        report.old_hash = before.hash.hex() if before else ""
        observed = self._observe(row, place, change, now)
        self._keep(row, answer, change)
        row.visits += 1
        if isinstance(self.policy, IntervalPolicy):
            row.interval = float(self.policy.intervals[place])
        first = before is None or before.loose or row.visits == 1
        links = self._describe(report, row, answer, now, first=first)
        gap = age if observed is not None else None
        host = self.host_names[self.host_of[place]]
        hosts = {host: self._hosts[host]} if host in self._hosts else {}
        visit = VisitRow(
            errand.visit, now, gap, change, answer.status, json.dumps(asdict(report)), links
        )
        self.store.book(visit, row, hosts)
        del self._out[place]
        self._ready[place] = self._ready_at(row)
        self._unseen[place] = row.copy is None and not row.gone
        self.counts[change] = self.counts.get(change, 0) + 1
        if sum(self.counts.values()) % CHECKPOINT == 0:
            self.keep_agent()
        return report

    def end(self, now: float, *, finished: bool) -> None:
        """Note how far the run has come; one that is not finished goes on at the next start."""
        self.keep_agent()
        if finished:
            self.store.end_run(self.run.id, now)

    def rates(self) -> Floats:
        """Return the estimated changes a second of every page, [n]."""
        pages = self.pages
        return pooled_rates(
            *(pages.changes, pages.changed_time, pages.quiet_time, pages.levels),
            expected=self._pace / len(pages),
        )

    def _begin(self, now: float) -> RunRow:
        options = self.options
        wanted = (options.budget, options.horizon, options.policy)
        previous = self.store.last_started()
        run = self.store.open_run()
        if run is not None:
            same = (run.budget, run.horizon, run.policy) == wanted
            over = run.horizon is not None and now >= run.started + run.horizon
            run = run if same and not over else None
        self.resumed = run is not None
        run = run or self.store.begin_run(now, *wanted)
        # Without a horizon the run before tells how often there is one.
        period = run.horizon or (run.started - previous if previous is not None else DAY)
        self._pace = run.budget / max(period, 1.0)
        return run

    def _pages(self) -> PageTable:
        rows = self.rows
        groups = number([group_name(row.url) for row in rows])
        kinds = number([kind_name(row.url) for row in rows])
        pages = PageTable(np.array([row.weight for row in rows]), groups, (kinds, groups))
        pages.fetched = np.array([row.last_seen for row in rows])
        pages.changes = np.array([float(row.changes) for row in rows])
        pages.changed_time = np.array([row.changed_time for row in rows])
        pages.quiet_time = np.array([row.quiet_time for row in rows])
        self.pages = pages
        pages.arms = arms_of(groups, self.rates(), pages.weights)
        return pages

    def _setup(self, now: float) -> PolicySetup:
        rows, options = self.rows, self.options
        return PolicySetup(
            self.pages,
            self._pace,
            Bounds(options.min_age, options.max_age, options.jitter),
            int(self._random.integers(2**31)),
            np.array([float(row.quiet) for row in rows]),
            np.array([np.nan if row.interval is None else row.interval for row in rows]),
        )

    def _select(self, allowed: Mask, now: float) -> int:
        """Return a page without a copy, else one older than it may be, else the policy's choice."""
        for first in (self._unseen, now - self.pages.fetched > self.options.max_age):
            if (urgent := allowed & first).any():
                return oldest(self.pages, urgent)
        return self.policy.select(now, allowed)

    def _validators(self, row: PageRow, place: int) -> tuple[str | None, str | None]:
        """Return the validators to send; none where they cannot be relied on or are to be tried."""
        host = self._hosts.get(self.host_names[self.host_of[place]], Host())
        if row.copy is None or row.copy.loose or row.errors or row.misses or row.gone or host.lies:
            return None, None
        audits = LATER_AUDITS if host.honest else AUDITS
        if self._random.random() < audits:
            return None, None
        return row.etag, row.modified

    def _ready_at(self, row: PageRow) -> float:
        """Return when a page may be asked for again; one without a copy may at once.

        A run without a horizon asks for a page once.
        """
        if self.run.horizon is None and row.id in self._asked:
            return float("inf")
        if row.copy is None and not row.gone:
            return row.retry_at
        return max(row.last_seen + self.options.min_age, row.retry_at)

    def _judge(self, row: PageRow, errand: Errand, answer: PageAnswer) -> tuple[str, int | None]:
        """Return what a visit has found, and in how many lanes the texts differ."""
        if answer.status == NOT_MODIFIED and errand.conditional:
            return SAME, 0
        reading = answer.reading
        if answer.status in MISSING or (reading is not None and reading.missing):
            row.misses += 1
            return (GONE if row.misses >= self.options.grace else ERROR), None
        copy = answer.copy
        if copy is None:
            return ERROR, None
        # A crawl reads the boilerplate of a page with few words: its copy cannot be compared.
        loose = row.copy is not None and row.copy.loose and reading is not None and reading.thin
        if row.copy is None or row.gone or loose:
            return NEW, None
        return compare(row.copy, copy, self.options.minor), distance(row.copy, copy)

    def _observe(self, row: PageRow, place: int, change: str, now: float) -> bool | None:
        """Let the statistics and the policy learn; None: there is nothing to learn."""
        if change in {ERROR, GONE}:
            self._put_off(row, change, now)
            self.policy.end(place, None, now)
            return None
        changed = change == OTHER or (change == MINOR and self.options.minor_is_change)
        observed = None if change == NEW else changed
        gap = now - row.last_seen
        if observed is not None and gap > 0:
            row.changes += observed
            row.quiet += not observed
            row.changed_time += gap * observed
            row.quiet_time += gap * (not observed)
        self.pages.see(place, observed, now)
        self.policy.end(place, observed, now)
        row.last_seen = now
        if observed or change == NEW:
            row.last_change = now
        row.misses = row.errors = 0
        row.retry_at, row.gone = 0.0, False
        return observed

    def _put_off(self, row: PageRow, change: str, now: float) -> None:
        """Say when a page that has failed is tried again: what is gone may come back."""
        options = self.options
        row.errors += change == ERROR and not row.misses
        row.gone = row.gone or change == GONE
        turns = row.errors + row.misses - 1
        row.retry_at = now + min(options.retry * 2.0 ** min(turns, 60), options.max_age)

    def _keep(self, row: PageRow, answer: PageAnswer, change: str) -> None:
        """Keep the copy and its validators, and learn what the host's are worth."""
        if answer.status == NOT_MODIFIED or answer.copy is None or change in {ERROR, GONE}:
            return
        validators = (answer.etag, answer.modified)
        before = (row.etag, row.modified)
        if change == OTHER and before != (None, None) and not (row.copy and row.copy.loose):
            host = self._hosts.setdefault(urlsplit(row.url).hostname or "", Host())
            if validators == before:
                host.lies += 1
            else:
                host.honest += 1
        row.copy = answer.copy
        row.etag, row.modified = validators

    def _describe(
        self, report: VisitItem, row: PageRow, answer: PageAnswer, now: float, *, first: bool
    ) -> list[int]:
        """Complete the item; return the hashes of the links that were not seen before."""
        report.fetched_at, report.changed_at = _iso(now), _iso(row.last_change)
        report.visits, report.changes = row.visits, row.changes
        report.new_hash = row.copy.hash.hex() if row.copy else ""
        reading = answer.reading
        if reading is None or report.change in {ERROR, GONE}:
            return []
        if report.change != SAME:
            report.title, report.text = reading.title, reading.text
        if not self.options.follow:
            return []
        hashes = {_hash(url): url for url, _ in reading.links}
        unseen = {each: url for each, url in hashes.items() if each not in self._links}
        self._links |= unseen.keys()
        if not first:  # the crawl has followed what was there at first
            report.found = list(unseen.values())
        return list(unseen)

    def _load_agent(self) -> None:
        agent, kept = agent_of(self.policy), self.store.load("network")
        if agent is not None and kept is not None:
            slots = int.from_bytes(kept[:8], "big")
            try:
                agent.restore(np.frombuffer(kept[8:], np.float32), slots)
            except ValueError:  # the arms are others now: it has to learn anew
                return

    def keep_agent(self) -> None:
        """Keep the network of FG-DQN, if it is the policy."""
        agent = agent_of(self.policy)
        if agent is not None:
            weights = agent.weights_vector().astype(np.float32).tobytes()
            self.store.keep("network", agent.slots.to_bytes(8, "big") + weights)


def _row(page: KnownPage, now: float) -> PageRow:
    seen = now if page.fetched is None else min(page.fetched, now)
    return PageRow(0, page.url, page.weight, seen, seen, copy=page.copy)


def _iso(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _hash(url: str) -> int:
    digest = blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
