"""The sample store: one row for each (path, outlink) pair of the frontier F_t (P 2.2)."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Container, Sequence
from enum import IntEnum
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier import feature
from tres_scrapy.frontier.admission import Closure, Outlinks, Scope
from tres_scrapy.frontier.column import Anchors, HashedFeatures, Rows, Table, within
from tres_scrapy.frontier.feature import Path
from tres_scrapy.frontier.host import Hosts, host_of
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.links.code import Names, RaggedArray, silent

NO_PARENT = -1
REVISED = np.dtype([("row", "<i4"), ("actions", "<f4", (3,))])
# Rules by which links are not fetched, by the name of their setting
AT_MAX, FAILED, RESTED = "max_per_domain", "max_failures", "max_rests"
TRAIL = 100  # URLs reported of a path: in a crawler trap paths grow without end

_SAMPLE = np.dtype(
    [
        ("static", "f4", (feature.STATIC,)),
        ("url", "i4"),
        ("host", "i4"),
        ("domain", "i4"),
        ("parent", "i4"),
        ("state", "u1"),
        ("link", "f4"),
    ]
)
SAVED = np.dtype(
    [("static", "<f4", (feature.STATIC,)), ("url", "<i4"), ("host", "<i4"), ("parent", "<i4")]
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


class SampleStore:
    """Frontier samples as rows of columns, with the closure, the hosts and the paths behind them.

    Fetching a URL closes all its rows. Rows are never moved or reused. `on_drop`, if set, is called
    with dropped rows that never come back, even if MAX changes.
    """

    def __init__(self, ledger: DomainLedger, scope: Scope | None = None) -> None:
        self.ledger = ledger
        self.priorities: dict[int, int] = {}  # by row, of own requests, unless they are 0
        self.scope = scope  # of links; seeds are exempt
        self.closure = Closure()
        self.anchors = Anchors()
        self.cues = HashedFeatures()
        self.names = Names()  # of their codes
        self.pending = 0  # samples
        self.left_out = 0  # links that did not fit into the frontier
        self.given_up = array("q")  # hosts, those of earlier runs included
        self.revised = bytearray()  # records of type REVISED, in the order of their changes
        self.refused: Counter[str] = Counter()  # links not stored, by the rule that says so
        self.on_drop: Callable[[Rows], None] | None = None
        self._hosts = Hosts(ledger)
        self.guests: dict[int, Path] = {}  # rows that stand for pages of other shards
        self._paths: dict[int, Path] = {}
        self._answers: set[int] = set()  # rows that a search box returned; not in JOBDIR
        self._held: set[int] = set()  # rows that keep their slot of MAX while they wait
        self._samples = Table(_SAMPLE)

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def urls(self) -> Sequence[str]:
        """The URLs by number."""
        return self.closure.urls

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts by number."""
        return self._hosts.names

    def add(self, parent: int, links: Outlinks, *, is_answer: bool = False) -> Rows:
        """Add the outlinks of row `parent` that can still be fetched; return their rows.

        With `NO_PARENT` the links are seeds, x(s_-1, a). With `is_answer`, the search box of that
        page returned them: their path is SEED_PATH. If not all links fit into the frontier, the
        first are kept.
        """
        urls, anchors, actions, cues = links
        path = feature.SEED_PATH if is_answer else self.path_to(parent)
        names = [host_of(url) for url in urls]
        kept = self._admitted(urls, names, None if parent == NO_PARENT else path.length)
        if self.scope is not None and parent != NO_PARENT:
            new = dict.fromkeys(urls[i] for i in kept if not self.closure.knows(urls[i]))
            self.scope.enter(list(new))
        where = self._samples.extend(len(kept))
        static = self._samples["static"][where]
        static[:, feature.STATE] = path.features
        static[:, feature.ACTION] = actions[kept]
        self._samples["url"][where] = [self.closure.number_of(urls[i]) for i in kept]
        self._samples["host"][where] = [self._hosts.number_of(names[i]) for i in kept]
        self._samples["domain"][where] = self._hosts.domains(self._samples["host"][where])
        self._samples["parent"][where] = parent
        self._wait(self._samples["host"][where])
        self.anchors.extend(anchors[i] for i in kept)
        self.cues.extend(silent(len(kept)) if cues is None else cues.take(kept))
        self._link(parent, self._samples["domain"][where], path)
        rows = np.arange(where.start, where.stop)
        if is_answer:
            self._answers.update(rows.tolist())
        return rows

    def add_guest(self, url: str, path: Path) -> int:
        """Add a row for a page of another shard, at the end of `path`; return it.

        It is DONE and only the parent of its links: their features, inlinks and siblings are then
        as on one machine.
        """
        where = self._samples.extend(1)
        row, host = int(where.start), self._hosts.number_of(host_of(url))
        self._samples["url"][row] = self.closure.number_of(url)
        self._samples["host"][row] = host
        self._samples["domain"][row] = self._hosts.domains(np.array([host]))[0]
        self._samples["parent"][row] = NO_PARENT
        self._samples["state"][row] = State.DONE
        self.anchors.extend([""])
        self.cues.extend(silent(1))
        self.guests[row] = path
        return row

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """Return x(s, a) of `rows` as [n, 9], with the current features 7 to 9."""
        x = np.empty((len(rows), len(feature.FEATURES)), dtype=np.float32)
        x[:, : feature.STATIC] = self._samples["static"].take(rows, axis=0)
        x[:, feature.NEIGHBOURHOOD] = self.ledger.features(self._samples["domain"].take(rows))
        x[:, feature.LINK] = self._samples["link"].take(rows)
        return x

    def revise(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """Set features 4 to 6 of rows [n] again, from `actions` [n, 3]."""
        records = np.zeros(len(rows), dtype=REVISED)
        records["row"], records["actions"] = rows, actions
        self.restore_revised(records)

    def rate(self, rows: Rows, links: NDArray[np.float32]) -> None:
        """Set feature 9 of rows [n]."""
        self._samples["link"][rows] = links

    def rated(self, rows: Rows) -> NDArray[np.float32]:
        """Return feature 9 of rows as [n]."""
        return self._samples["link"].take(rows)

    def host_numbers(self, rows: Rows) -> NDArray[np.int32]:
        """Return the numbers of the hosts of rows as [n]."""
        return self._samples["host"].take(rows)

    def standing(self, rows: Rows, busy_hosts: Sequence[int] = ()) -> NDArray[np.uint8]:
        """Return the `Standing` of `rows`, given that `busy_hosts` take no request now."""
        urls, hosts, domains = (
            self._samples[name].take(rows) for name in ("url", "host", "domain")
        )
        full = self.ledger.at_cap(domains, leased=True)
        if self._held:
            full &= ~np.isin(rows, list(self._held))
        busy = self._hosts.busy(hosts, busy_hosts) | full
        given_up = self._hosts.given_up(hosts) | self.ledger.exhausted(domains)
        standing = np.where(busy, Eligibility.BUSY, Eligibility.READY).astype(np.uint8)
        standing[self.closure.closed(urls) | given_up] = Eligibility.DEAD
        return standing

    def may_be_ready(self, busy_hosts: Sequence[int] = ()) -> bool:
        """Return whether any host that is not busy has PENDING samples, dead or not."""
        if self._hosts.only_known:
            return self._hosts.known_pending(busy_hosts) > 0
        return self.pending > self._hosts.pending(busy_hosts)

    def busy(self, hosts: Sequence[int], busy_hosts: Sequence[int]) -> NDArray[np.bool_]:
        """Return which of `hosts` take no request now, given that `busy_hosts` take none."""
        return self._hosts.busy(np.array(hosts, dtype=np.int32), busy_hosts)

    @property
    def gone_hosts(self) -> int:
        """The number of hosts that are given up."""
        return len(self._hosts.gone)

    @property
    def known_hosts(self) -> int:
        """The number of hosts that have answered."""
        return self._hosts.known

    def is_known(self, host: int) -> bool:
        """Return whether a host has answered."""
        return self._hosts.is_known(host)

    def know(self, host: int) -> None:
        """Note that a host has answered."""
        self._hosts.know(host)

    def only_known(self, only: bool) -> None:
        """Set whether hosts that have never answered take no request now."""
        self._hosts.only_known = only

    def give_up(self, host: int) -> None:
        """Fetch no more samples of a host."""
        self._hosts.give_up(host)
        if host not in self.given_up:
            self.given_up.append(host)

    def host_number(self, name: str) -> int | None:
        """Return the number of a host, None if it has no sample."""
        return self._hosts.find(name)

    def lease(self, row: int) -> None:
        """Mark `row` LEASED and close its URL: a URL is fetched at most once."""
        self._leave(np.array([row]), State.LEASED)
        self.closure.close(self.url_id(row))
        self.ledger.lease(self.domain(row))
        if row in self._held:
            self.ledger.hold(self.domain(row), -1)

    def finish(self, row: int, path: Path | None = None) -> None:
        """Mark a LEASED `row` DONE; `path` ends at its page and is kept for its outlinks."""
        self._samples["state"][row] = State.DONE
        self._held.discard(row)
        self.ledger.lease(self.domain(row), -1)
        self.closure.settle(row, self.url_id(row))
        if path is not None:
            self._paths[row] = path

    def set_back(self, row: int) -> None:
        """Make a LEASED `row` PENDING again, at the URL that it was redirected to, if any."""
        self._samples["state"][row] = State.PENDING
        self.closure.reopen(self.url_id(row))
        self.ledger.lease(self.domain(row), -1)
        if row in self._held:
            self.ledger.hold(self.domain(row))
        self._wait(self._samples["host"][row : row + 1])

    def hold(self, rows: Sequence[int]) -> None:
        """Keep a slot of MAX for PENDING rows that may have been fetched before a kill.

        Other rows of their domains leave it free until these rows are DONE.
        """
        for row in rows:
            self._held.add(row)
            self.ledger.hold(self.domain(row))

    def is_held(self, row: int) -> bool:
        """Return whether a row keeps its slot of MAX while it waits."""
        return row in self._held

    def redirect(self, row: int, url: str) -> None:
        """Change the URL of a LEASED `row`, its host and its domain; close the new URL."""
        self.ledger.lease(self.domain(row), -1)
        self._samples["url"][row] = self.closure.redirect(row, url)
        self._samples["host"][row] = self._hosts.number_of(host_of(url))
        self._samples["domain"][row] = self.domain_of(url)
        self.ledger.lease(self.domain(row))

    def refuse(self, row: int) -> None:
        """Close the URL of a PENDING `row`: it is dropped when it is met."""
        self.closure.close(self.url_id(row))

    def drop(self, rows: Rows) -> None:
        """Mark PENDING samples that can no longer be fetched as DONE."""
        self._leave(rows, State.DONE)
        for row in self._held.intersection(rows.tolist()) if self._held else ():
            self._held.discard(row)
            self.ledger.hold(self.domain(row), -1)
        if self.on_drop is not None:
            closed = self.closure.closed(self._samples["url"].take(rows))
            given_up = self.ledger.given_up(self._samples["domain"].take(rows))
            self.on_drop(rows[closed | given_up])

    def readmit(self, domains: NDArray[np.bool_], own: Container[int] | None = None) -> Rows:
        """Make samples PENDING again that were dropped with their domains; return them.

        `domains` marks the domains to readmit. If `own` is given, only rows in it come back.
        """
        samples = self._samples
        dropped = (samples["state"] == State.DONE) & domains[samples["domain"]]
        rows = np.flatnonzero(dropped & ~self.closure.closed(samples["url"]))
        if own is not None:
            rows = rows[[row in own for row in rows.tolist()]]
        samples["state"][rows] = State.PENDING
        self._wait(samples["host"][rows])
        return rows

    def knows(self, url: str) -> bool:
        """Return whether `url` is or was the URL of a sample."""
        return self.closure.knows(url)

    def is_closed(self, url: str) -> bool:
        """Return whether `url` is fetched or being fetched."""
        return self.closure.is_closed(url)

    def is_refused(self, row: int, url: str) -> bool:
        """Return whether the scope refuses `url` in the place of the URL of a row."""
        if self.scope is None or self.is_seed(row):
            return False
        known = self.closure.knows(url)
        return self.scope.refusal(url, self.depth(row), known=known) is not None

    def is_given_up(self, url: str) -> bool:
        """Return whether the host of `url` is given up."""
        return host_of(url) in self._hosts.gone

    def parents(self, rows: Rows) -> NDArray[np.int32]:
        """Return the rows of the pages that link to rows, NO_PARENT for seeds."""
        return self._samples["parent"].take(rows)

    def waits(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which of `rows` are PENDING."""
        return np.asarray(self._samples["state"].take(rows) == State.PENDING)

    def domains(self, rows: Rows) -> NDArray[np.int32]:
        """Return the numbers of the registrable domains of rows."""
        return self._samples["domain"].take(rows)

    def url_id(self, row: int) -> int:
        """Return the number of the URL of a row."""
        return int(self._samples["url"][row])

    def url(self, row: int) -> str:
        """Return the URL of a row."""
        return self.urls[int(self._samples["url"][row])]

    def host(self, row: int) -> int:
        """Return the number of the host of a row."""
        return int(self._samples["host"][row])

    def domain(self, row: int) -> int:
        """Return the number of the registrable domain of a row."""
        return int(self._samples["domain"][row])

    def state(self, row: int) -> State:
        """Return the state of a row."""
        return State(self._samples["state"][row])

    def parent(self, row: int) -> int:
        """Return the row of the page that links to a row, NO_PARENT for a seed."""
        return int(self._samples["parent"][row])

    def is_seed(self, row: int) -> bool:
        """Return whether a row is a seed."""
        return bool(self._samples["parent"][row] == NO_PARENT)

    def path_after(self, row: int, reward: float) -> Path:
        """Return the path that ends at the page of `row`, whose reward is `reward`."""
        path = feature.SEED_PATH if row in self._answers else self.path_to(self.parent(row))
        return path.extended(reward)

    def path_to(self, row: int) -> Path:
        """Return the path that ends at the page of a DONE `row`, NO_PATH for NO_PARENT."""
        if row == NO_PARENT:
            return feature.NO_PATH
        return self.guests[row] if row in self.guests else self._paths[row]

    def last_pages(self, count: int) -> Rows:
        """Return the rows of the last `count` pages, oldest first."""
        return np.array(list(islice(reversed(self._paths), count))[::-1], dtype=np.int64)

    def depth(self, row: int) -> int:
        """Return the number of links from the seed to `row`."""
        return self.path_to(self.parent(row)).length

    def trail(self, row: int) -> list[str]:
        """Return the URLs from the seed to `row`, both included, at most the last TRAIL."""
        urls: list[str] = []
        while row != NO_PARENT and len(urls) < TRAIL:
            urls.append(self.url(row))
            row = int(self._samples["parent"][row])
        return urls[::-1]

    def domain_of(self, url: str) -> int:
        """Return the number of the registrable domain of any URL."""
        return self._hosts.domain_of(host_of(url))

    def domain_of_host(self, host: int) -> int:
        """Return the number of the registrable domain of a host."""
        return int(self._hosts.domains(np.array([host]))[0])

    def saved(self, first: int) -> NDArray[np.void]:
        """Return the rows from `first` on as records of type SAVED."""
        records = np.zeros(len(self) - first, dtype=SAVED)
        for name in SAVED.names or ():
            records[name] = self._samples[name][first:]
        return records

    def restore(
        self,
        hosts: Sequence[str],
        urls: Sequence[str],
        anchors: Sequence[str],
        cues: RaggedArray,
        records: NDArray[np.void],
    ) -> None:
        """Fill an empty store, all rows PENDING; raise ValueError if the parts do not fit."""
        if len(anchors) != len(records):
            raise ValueError(f"{len(anchors)} anchors, must be {len(records)}: one a sample")
        if len(cues.counts) != len(records) or int(cues.counts.sum()) != len(cues.codes):
            raise ValueError("the cues of links do not fit the samples")
        for host in hosts:
            self._hosts.number_of(host)
        self.closure.restore(urls)
        self.anchors.extend(anchors)
        self.cues.extend(cues)
        within(records["url"], len(urls))
        if self.scope is not None:  # seeds and targets of redirects do not count
            numbers, firsts = np.unique(records["url"], return_index=True)
            linked = numbers[records["parent"][firsts] != NO_PARENT]
            self.scope.enter([urls[number] for number in linked.tolist()])
        within(records["host"], len(self.hosts))
        rows = np.arange(len(records))
        if not ((records["parent"] >= NO_PARENT) & (records["parent"] < rows)).all():
            raise ValueError("a sample comes before the page it was found on")
        self._samples.extend(len(records))
        for name in SAVED.names or ():
            self._samples[name][:] = records[name]
        self._samples["domain"][:] = self._hosts.domains(records["host"])
        self._wait(records["host"])

    def restore_done(self, rows: Rows, urls: NDArray[np.int64], hosts: NDArray[np.int64]) -> None:
        """Mark rows of a restored store DONE, each with its final URL and host."""
        within(rows, len(self))
        within(urls, len(self.urls))
        within(hosts, len(self.hosts))
        self._leave(rows, State.DONE)
        self.closure.close(self._samples["url"].take(rows))
        self.closure.close(urls)
        self._samples["url"][rows] = urls
        self._samples["host"][rows] = hosts
        self._samples["domain"][rows] = self._hosts.domains(hosts)
        for host in np.unique(hosts).tolist():
            self._hosts.know(host)

    def restore_guests(self, guests: Sequence[tuple[int, Path]]) -> None:
        """Note which rows of a restored store stand for pages of other shards."""
        rows = np.array([row for row, _ in guests], dtype=np.int64)
        within(rows, len(self))
        self._leave(rows, State.DONE)
        self.guests.update(guests)

    def restore_redirect(self, row: int, urls: Sequence[int]) -> None:
        """Move a row of a restored store, before any is DONE, along redirects to `urls`, numbers.

        The row stays PENDING, at the last URL. Raise ValueError if a number or a host is not known.
        """
        within(np.array([row], dtype=np.int64), len(self))
        within(np.array(urls, dtype=np.int64), len(self.urls))
        if any(self.host_number(host_of(self.urls[number])) is None for number in urls):
            raise ValueError("a redirect leads to a host that is not known")
        self.lease(row)
        for number in urls:
            self.redirect(row, self.urls[number])
        self.set_back(row)

    def restore_given_up(self, hosts: NDArray[np.int64]) -> None:
        """Note hosts that an earlier run gave up: in this run they may be fetched from."""
        within(hosts, len(self.hosts))
        self.given_up.extend(hosts.tolist())

    def restore_revised(self, records: NDArray[np.void]) -> None:
        """Set features 4 to 6 from records of type REVISED; of a row the last counts."""
        within(records["row"], len(self))
        self._samples["static"][records["row"], feature.ACTION] = records["actions"]
        self.revised += records.tobytes()

    def restore_path(self, row: int, path: Path) -> None:
        """Set the path to the page of a DONE row."""
        self._paths[row] = path

    def restore_links(self, domains: NDArray[np.int32]) -> None:
        """Count links between domains, after paths and DONE rows are restored.

        `domains` are the domains of all rows before any redirect. Raise ValueError if the parent
        of a sample has no page.
        """
        parents = self._samples["parent"]
        pages = self._paths.keys() | self.guests.keys()
        if not pages >= set(np.unique(parents).tolist()) - {NO_PARENT}:
            raise ValueError("a sample was found on a row without a page")
        if not self.ledger.inlinks:
            return
        firsts = np.flatnonzero(np.diff(parents, prepend=NO_PARENT - 1))
        for first, targets in zip(firsts, np.split(domains, firsts)[1:], strict=True):
            parent = int(parents[first])
            self._link(parent, targets, self.path_to(parent))

    def pending_rows(self) -> Rows:
        """Return the PENDING rows, oldest first."""
        return np.flatnonzero(self._samples["state"] == State.PENDING)

    def seeds(self) -> Rows:
        """Return the PENDING seeds."""
        waits = self._samples["state"] == State.PENDING
        return np.flatnonzero(waits & (self._samples["parent"] == NO_PARENT))

    def _admitted(self, urls: Sequence[str], hosts: Sequence[str], depth: int | None) -> list[int]:
        """Return the positions of links that can still be fetched and fit into the frontier.

        Of the other links, neither URL nor host is stored. Without a depth the links are seeds.
        """
        open_ = [i for i, url in enumerate(urls) if not self.closure.is_closed(url)]
        if self.scope is not None and depth is not None:
            links = ((i, urls[i], self.closure.knows(urls[i])) for i in open_)
            open_ = list(self.scope.admitted(links, depth))
        room = max(0, self.ledger.limits.pending - self.pending)
        domains = np.array([self._hosts.domain_of(hosts[i]) for i in open_[:room]], dtype=np.int32)
        rested = np.array([hosts[i] in self._hosts.gone for i in open_[:room]], dtype=np.bool_)
        rules = self._rules(domains, rested)
        late = np.array([not self.closure.knows(urls[i]) for i in open_[:room]], dtype=np.bool_)
        self.refused.update(rules[late & (rules != "")].tolist())
        alive = np.flatnonzero(rules == "")
        fits = _equal_before(domains[alive]) < self.ledger.room(domains[alive])
        self.left_out += len(open_) - len(domains) + int(np.count_nonzero(~fits))
        return [open_[i] for i in alive[fits]]

    def refusals(self) -> Counter[str]:
        """Return how many links are not fetched because of a rule, by the name of its setting.

        These are the URLs that wait, and the links to others that were found too late.
        """
        samples = self._samples
        rows = np.flatnonzero(~self.closure.closed(samples["url"]))
        rows = rows[np.unique(samples["url"][rows], return_index=True)[1]]
        given_up = self._hosts.given_up(samples["host"].take(rows))
        rules = self._rules(samples["domain"].take(rows), given_up)
        return self.refused + Counter(rules[rules != ""].tolist())

    def _rules(self, domains: NDArray[np.int32], rested: NDArray[np.bool_]) -> NDArray[np.str_]:
        """Return the rule by which links are not fetched [n], "" for those that are."""
        failed, full = self.ledger.given_up(domains), self.ledger.at_cap(domains)
        return np.select([rested, failed, full], [RESTED, FAILED, AT_MAX], "")

    def _link(self, parent: int, domains: NDArray[np.int32], path: Path) -> None:
        """Note that the page of row `parent`, at the end of `path`, links to domains [n]."""
        if parent != NO_PARENT:
            relevant = path.reward > 0
            self.ledger.add_inlinks(self.domain(parent), domains, relevant=relevant)

    def _leave(self, rows: Rows, state: State) -> None:
        self._samples["state"][rows] = state
        self._wait(self._samples["host"].take(rows), -1)

    def _wait(self, hosts: NDArray[np.int32], change: int = 1) -> None:
        """Count samples of `hosts` [n] that become PENDING (`change` 1) or stop being so (-1)."""
        self.pending += change * len(hosts)
        self._hosts.wait(hosts, change)


def _equal_before(numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return for each of the numbers [n] how many equal numbers come before it."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    before = np.empty(len(numbers), dtype=np.int64)
    before[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return before
