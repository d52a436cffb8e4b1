"""The sample store: one row for each (path, outlink) pair of the frontier F_t (P 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier import feature
from tres_scrapy.frontier.admission import Admission, Closure, Outlinks, Scope
from tres_scrapy.frontier.column import Anchors, HashedFeatures, Rows, Table
from tres_scrapy.frontier.feature import Path
from tres_scrapy.frontier.finder import finders_of
from tres_scrapy.frontier.host import Hosts, host_of
from tres_scrapy.frontier.ledger import ANY_HOST, Availability, DomainLedger
from tres_scrapy.links.code import Names, silent

NO_PARENT = -1
REVISED = np.dtype([("row", "<i4"), ("actions", "<f4", (3,))])
SAVED = np.dtype(
    [("static", "<f4", (feature.STATIC,)), ("url", "<i4"), ("host", "<i4"), ("parent", "<i4")]
)
TRAIL = 100  # URLs reported of a path: in a crawler trap paths grow without end

_SAMPLE = np.dtype(
    [
        ("static", "f4", (feature.STATIC,)),  # features 1 to 6
        ("url", "i4"),
        ("host", "i4"),
        ("domain", "i4"),
        ("parent", "i4"),
        ("state", "u1"),
        ("probability", "f4"),  # feature 9
    ]
)


class State(IntEnum):
    """The state of a sample; only PENDING samples are in the tree."""

    PENDING = 0
    LEASED = 1
    DONE = 2


class Eligibility(IntEnum):
    """Whether a PENDING sample can be fetched now."""

    DEAD = 0  # its URL is closed, its domain exhausted or its host given up: not fetched
    BUSY = 1  # its host or its domain cannot take one more request now
    READY = 2


class SampleStore(Table):
    """Frontier samples as rows of columns, with the closure, the hosts and the paths behind them.

    The columns are `static` [6], the numbers of the `url`, the `host` and the registrable `domain`,
    the row of the `parent` page (NO_PARENT for a seed), `state`, and `probability`, feature 9.
    Fetching a URL closes all its rows. Rows are never moved or reused.
    """

    def __init__(self, ledger: DomainLedger, scope: Scope | None = None) -> None:
        super().__init__(_SAMPLE)
        self.ledger = ledger
        self.hosts = Hosts(ledger)
        self.closure = Closure()
        self.admission = Admission(self.closure, self.hosts, ledger, scope)
        self.anchors = Anchors()
        self.cues = HashedFeatures()
        self.names = Names()  # of their codes
        self.pending = 0  # samples
        self.priorities: dict[int, int] = {}  # by row, of own requests, unless they are 0
        self.revised = bytearray()  # records of type REVISED, in the order of their changes
        self.paths: dict[int, Path] = {}  # by row of a page, in the order of their bookings
        self.guests: dict[int, Path] = {}  # the same of rows that stand for pages of other shards
        self.distrusted: set[str] = set()  # registrable domains of which nothing more is fetched
        # called with dropped rows that never come back, even if MAX changes
        self.on_drop: Callable[[Rows], None] | None = None
        self._answers: set[int] = set()  # rows that a search box returned; not in JOBDIR
        self._held: set[int] = set()  # rows that keep their slot of MAX while they wait

    def add(self, parent: int, links: Outlinks, *, is_answer: bool = False) -> Rows:
        """Add the outlinks of row `parent` that can still be fetched; return their rows.

        With `NO_PARENT` the links are seeds, x(s_-1, a). With `is_answer`, the search box of that
        page returned them: their path is SEED_PATH. If not all links fit into the frontier, the
        first are kept.
        """
        urls, anchors, actions, cues = links
        path = feature.SEED_PATH if is_answer else self.path_to(parent)
        hosts = [host_of(url) for url in urls]
        depth = None if parent == NO_PARENT else path.length
        room = self.ledger.limits.pending - self.pending
        finder = None if parent == NO_PARENT else int(self["domain"][parent])
        kept = self.admission.admit(urls, hosts, depth, room, finder)
        if parent != NO_PARENT:
            domain = int(self["domain"][parent])
            kept = self.admission.within_share(domain, links, kept)
            kept = [] if self.ledger.names[domain] in self.distrusted else kept
        where = self.extend(len(kept))
        static = self["static"][where]
        static[:, feature.STATE] = path.features
        static[:, feature.ACTION] = actions[kept]
        self["url"][where] = [self.closure.number_of(urls[i]) for i in kept]
        self["host"][where] = [self.hosts.number_of(hosts[i]) for i in kept]
        self["domain"][where] = self.hosts.domains(self["host"][where])
        self["parent"][where] = parent
        self.count_pending(self["host"][where])
        self.anchors.extend(anchors[i] for i in kept)
        self.cues.extend(silent(len(kept)) if cues is None else cues.take(kept))
        self.note_links(parent, self["domain"][where], path)
        rows = np.arange(where.start, where.stop)
        if is_answer:
            self._answers.update(rows.tolist())
        return rows

    def add_guest(self, url: str, path: Path) -> int:
        """Add a row for a page of another shard, at the end of `path`; return it.

        It is DONE and only the parent of its links: their features, inlinks and siblings are then
        as on one machine.
        """
        row, host = int(self.extend(1).start), self.hosts.number_of(host_of(url))
        self["url"][row] = self.closure.number_of(url)
        self["host"][row] = host
        self["domain"][row] = self.hosts.domain(host)
        self["parent"][row] = NO_PARENT
        self["state"][row] = State.DONE
        self.anchors.extend([""])
        self.cues.extend(silent(1))
        self.guests[row] = path
        return row

    def saved(self, first: int) -> NDArray[np.void]:
        """Return the rows from `first` on as records of type SAVED."""
        records = np.zeros(len(self) - first, dtype=SAVED)
        for name in SAVED.names or ():
            records[name] = self[name][first:]
        return records

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """Return x(s, a) of `rows` as [n, 9], with the current features 7 to 9."""
        x = np.empty((len(rows), len(feature.FEATURES)), dtype=np.float32)
        x[:, : feature.STATIC] = self["static"].take(rows, axis=0)
        x[:, feature.NEIGHBOURHOOD] = self.ledger.features(self["domain"].take(rows))
        x[:, feature.LINK] = self["probability"].take(rows)
        return x

    def correct_paths(self, rewards: Mapping[int, float]) -> None:
        """Change the rewards of pages, by row, in features 1 to 3 of links below them."""
        changed: dict[int, Path] = {}
        for row, path in self.paths.items():  # an answer that is no page keeps its SEED_PATH
            follows = changed and int(self["parent"][row]) in changed and path != feature.SEED_PATH
            if row in rewards or follows:
                changed[row] = self.path_after(row, rewards.get(row, path.reward))
                self.paths[row] = changed[row]
        places = np.full(len(self) + 1, -1, dtype=np.int32)  # the last is that of NO_PARENT
        places[list(changed)] = np.arange(len(changed))
        states = np.array([path.features for path in changed.values()], np.float32).reshape(-1, 3)
        place_of = places.take(self["parent"])
        place_of[self["state"] == State.DONE] = -1
        place_of[list(self._answers)] = -1
        rows = np.flatnonzero(place_of >= 0)
        self["static"][rows, feature.STATE] = states[place_of[rows]]

    def revise(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """Set features 4 to 6 of rows [n] again, from `actions` [n, 3]; of a row the last count."""
        records = np.zeros(len(rows), dtype=REVISED)
        records["row"], records["actions"] = rows, actions
        self["static"][rows, feature.ACTION] = actions
        self.revised += records.tobytes()

    def eligibility(self, rows: Rows, available: Availability = ANY_HOST) -> NDArray[np.uint8]:
        """Return the `Eligibility` of `rows`, given which hosts are busy."""
        urls, hosts, domains = (self[name].take(rows) for name in ("url", "host", "domain"))
        full = self.ledger.at_cap(domains, leased=True)
        if self._held:
            full &= ~np.isin(rows, list(self._held))
        busy = self.hosts.busy(hosts, available) | full
        given_up = self.hosts.given_up(hosts) | self.ledger.exhausted(domains)
        finders = finders_of(self, rows)
        given_up |= self.ledger.ended(finders, domains) | self.hosts.failing.ended(finders, hosts)
        found = np.where(busy, Eligibility.BUSY, Eligibility.READY).astype(np.uint8)
        found[self.closure.closed(urls) | given_up] = Eligibility.DEAD
        return found

    def may_be_ready(self, available: Availability = ANY_HOST) -> bool:
        """Return whether any host that is not busy has PENDING samples, dead or not."""
        if available.only_known and self.hosts.known_pending(available.busy) == 0:
            return False
        if available.closed is None:
            return available.only_known or self.pending > self.hosts.pending(available.busy)
        busy = np.asarray(available.busy, dtype=np.int64)
        busy = busy[~available.is_closed(self.hosts.domains(busy))]
        closed = np.flatnonzero(available.is_closed(np.arange(len(self.ledger))))
        return self.pending > self.ledger.pending(closed) + self.hosts.pending(busy)

    def lease(self, row: int) -> None:
        """Mark `row` LEASED and close its URL: a URL is fetched at most once."""
        self.leave_pending(np.array([row]), State.LEASED)
        self.closure.close(self["url"][row])
        self.ledger.count_lease(self["domain"][row])
        if row in self._held:
            self.ledger.count_held(self["domain"][row], -1)

    def finish(self, row: int, path: Path | None = None) -> None:
        """Mark a LEASED `row` DONE; `path` ends at its page and is kept for its outlinks."""
        self["state"][row] = State.DONE
        self._held.discard(row)
        self.ledger.count_lease(self["domain"][row], -1)
        self.closure.settle(row, self["url"][row])
        if path is not None:
            self.paths[row] = path

    def release(self, row: int) -> None:
        """Make a LEASED `row` PENDING again, at the URL that it was redirected to, if any."""
        self["state"][row] = State.PENDING
        self.closure.reopen(self["url"][row])
        self.ledger.count_lease(self["domain"][row], -1)
        if row in self._held:
            self.ledger.count_held(self["domain"][row])
        self.count_pending(self["host"][row : row + 1])

    def hold(self, rows: Sequence[int]) -> None:
        """Keep a slot of MAX for PENDING rows that may have been fetched before a kill.

        Other rows of their domains leave it free until these rows are DONE.
        """
        for row in rows:
            self._held.add(row)
            self.ledger.count_held(self["domain"][row])

    def is_held(self, row: int) -> bool:
        """Return whether a row keeps its slot of MAX while it waits."""
        return row in self._held

    def redirect(self, row: int, url: str) -> None:
        """Change the URL of a LEASED `row`, its host and its domain; close the new URL."""
        self.ledger.count_lease(self["domain"][row], -1)
        self["url"][row] = self.closure.redirect(row, url)
        self["host"][row] = self.hosts.number_of(host_of(url))
        self["domain"][row] = self.domain_of(url)
        self.ledger.count_lease(self["domain"][row])

    def drop(self, rows: Rows) -> None:
        """Mark PENDING samples that can no longer be fetched as DONE."""
        self.leave_pending(rows, State.DONE)
        for row in self._held.intersection(rows.tolist()) if self._held else ():
            self._held.discard(row)
            self.ledger.count_held(self["domain"][row], -1)
        if self.on_drop is not None:
            closed = self.closure.closed(self["url"].take(rows))
            given_up = self.ledger.given_up(self["domain"].take(rows))
            self.on_drop(rows[closed | given_up])

    def distrust(self, sites: Iterable[str]) -> None:
        """Fetch nothing of more registrable domains, no URL to which only their pages link."""
        self.distrusted.update(sites)
        bad = np.array([name in self.distrusted for name in self.ledger.names], dtype=np.bool_)
        parents = self["parent"]
        told = (parents != NO_PARENT) & bad[self["domain"][parents]]
        waits = self["state"] == State.PENDING
        urls, refused = self["url"], bad[self["domain"]]
        only = np.setdiff1d(urls[waits & told], urls[waits & ~told])
        self.closure.refuse(self._is_distrusted, np.union1d(urls[refused], only))

    def _is_distrusted(self, url: str) -> bool:
        return self.ledger.names[self.domain_of(url)] in self.distrusted

    def readmit(self, domains: NDArray[np.bool_], own: Container[int] | None = None) -> Rows:
        """Make samples PENDING again that were dropped with their domains; return them.

        `domains` marks the domains to readmit. If `own` is given, only rows in it come back.
        """
        dropped = (self["state"] == State.DONE) & domains[self["domain"]]
        rows = np.flatnonzero(dropped & ~self.closure.closed(self["url"]))
        if own is not None:
            rows = rows[[row in own for row in rows.tolist()]]
        self["state"][rows] = State.PENDING
        self.count_pending(self["host"][rows])
        return rows

    def leave_pending(self, rows: Rows, state: State) -> None:
        """Set the state of PENDING rows to another one."""
        self["state"][rows] = state
        self.count_pending(self["host"].take(rows), -1)

    def count_pending(self, hosts: NDArray[np.int32], change: int = 1) -> None:
        """Count samples of `hosts` [n] that become PENDING (`change` 1) or stop being so (-1)."""
        self.pending += change * len(hosts)
        self.hosts.count_pending(hosts, change)

    def note_links(self, parent: int, domains: NDArray[np.int32], path: Path) -> None:
        """Note that the page of row `parent`, at the end of `path`, links to domains [n]."""
        if parent != NO_PARENT:
            source, relevant = int(self["domain"][parent]), path.reward > 0
            self.ledger.add_inlinks(source, domains, relevant=relevant)

    def is_refused(self, row: int, url: str) -> bool:
        """Return whether the scope refuses `url` in the place of the URL of a row."""
        scope, known = self.admission.scope, self.closure.knows(url)
        if scope is None or self.is_seed(row):
            return False
        return scope.refusal(url, self.depth(row), known=known) is not None

    def is_given_up(self, url: str) -> bool:
        """Return whether the host of `url` is given up."""
        return host_of(url) in self.hosts.gone

    def is_pending(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of `rows` are PENDING."""
        return np.asarray(self["state"].take(rows) == State.PENDING)

    def is_seed(self, row: int) -> bool:
        """Return whether a row is a seed."""
        return bool(self["parent"][row] == NO_PARENT)

    def url(self, row: int) -> str:
        """Return the URL of a row."""
        return self.closure.urls[int(self["url"][row])]

    def domain_of(self, url: str) -> int:
        """Return the number of the registrable domain of any URL."""
        return self.hosts.domain_of(host_of(url))

    def finder(self, row: int) -> int:
        """Return the domain of the page that has the link of a row; a seed is its domain's own."""
        return int(finders_of(self, np.array([row]))[0])

    def path_after(self, row: int, reward: float) -> Path:
        """Return the path that ends at the page of `row`, whose reward is `reward`."""
        path = feature.SEED_PATH if row in self._answers else self.path_to(self["parent"][row])
        return path.extended(reward)

    def path_to(self, row: int) -> Path:
        """Return the path that ends at the page of a DONE `row`, NO_PATH for NO_PARENT."""
        if row == NO_PARENT:
            return feature.NO_PATH
        return self.guests[row] if row in self.guests else self.paths[row]

    def depth(self, row: int) -> int:
        """Return the number of links from the seed to `row`."""
        return self.path_to(self["parent"][row]).length

    def trail(self, row: int) -> list[str]:
        """Return the URLs from the seed to `row`, both included, at most the last TRAIL."""
        urls: list[str] = []
        while row != NO_PARENT and len(urls) < TRAIL:
            urls.append(self.url(row))
            row = self["parent"][row]
        return urls[::-1]

    def last_pages(self, count: int) -> Rows:
        """Return the rows of the last `count` pages, oldest first."""
        return np.array(list(islice(reversed(self.paths), count))[::-1], dtype=np.int64)

    def pending_rows(self) -> Rows:
        """Return the PENDING rows, oldest first."""
        return np.flatnonzero(self["state"] == State.PENDING)

    def seeds(self) -> Rows:
        """Return the PENDING seeds."""
        return np.flatnonzero((self["state"] == State.PENDING) & (self["parent"] == NO_PARENT))
