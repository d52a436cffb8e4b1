"""The sample store: one row for each pair (path, outlink) of the frontier F_t (P 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier import feature
from tres_scrapy.frontier.feature import Path
from tres_scrapy.frontier.ledger import DomainLedger, registrable_domain
from tres_scrapy.frontier.table import Table

Rows = NDArray[np.int64]
NO_PARENT = -1

_SAMPLE = np.dtype(
    [
        ("static", "f4", (feature.STATIC,)),
        ("url", "i4"),
        ("host", "i4"),
        ("domain", "i4"),
        ("parent", "i4"),
        ("state", "u1"),
    ]
)
_HOST = np.dtype([("domain", "i4"), ("pending", "i4")])


class State(IntEnum):
    """The life of a sample; only a PENDING one is in the tree."""

    PENDING = 0
    LEASED = 1
    DONE = 2


class Standing(IntEnum):
    """What may be done now with a PENDING sample."""

    DEAD = 0  # its URL is closed or its domain exhausted: it never can be taken again
    BUSY = 1  # its host or its domain cannot take one more request now
    READY = 2


class SampleStore:
    """Frontier samples as rows of columns, with the closure, the hosts and the paths behind them.

    URLs and anchor texts stand beside the columns; a URL that several pages link to is stored
    once and closes all its rows together. No row is ever moved or reused.
    """

    def __init__(self, ledger: DomainLedger) -> None:
        self.ledger = ledger
        self.urls: list[str] = []
        self.anchors: list[str] = []
        self.hosts: list[str] = []
        self._url_ids: dict[str, int] = {}
        self._host_ids: dict[str, int] = {}
        self._paths: dict[int, Path] = {}
        self._samples = Table(_SAMPLE)
        self._closed = Table(np.dtype([("closed", "?")]))
        self._hosts = Table(_HOST, capacity=64)

    def __len__(self) -> int:
        return len(self._samples)

    def add(
        self,
        parent: int,
        urls: Sequence[str],
        anchors: Sequence[str],
        actions: NDArray[np.float32],
    ) -> Rows:
        """Append the outlinks of row `parent` that can still be fetched; return their rows.

        `actions` [n, 3] holds features 4 to 6. With `NO_PARENT` they are seeds, x(s_-1, a).
        """
        numbers = [self._url_id(url) for url in urls]
        kept = [i for i, number in enumerate(numbers) if not self._closed["closed"][number]]
        hosts = np.array([self._host_id(urls[i]) for i in kept], dtype=np.int32)
        domains = self._hosts["domain"][hosts]
        open_ = np.flatnonzero(~self.ledger.exhausted(domains))
        kept = [kept[i] for i in open_]
        where = self._samples.extend(len(kept))
        static = self._samples["static"][where]
        static[:, feature.STATE] = self._state_features(parent)
        static[:, feature.ACTION] = actions[kept]
        self._samples["url"][where] = [numbers[i] for i in kept]
        self._samples["host"][where] = hosts[open_]
        self._samples["domain"][where] = domains[open_]
        self._samples["parent"][where] = parent
        np.add.at(self._hosts["pending"], hosts[open_], 1)
        self.anchors.extend(anchors[i] for i in kept)
        return np.arange(where.start, where.stop)

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """Return x(s, a) of `rows` as [n, 8], features 7 and 8 as they are now."""
        x = np.empty((len(rows), len(feature.FEATURES)), dtype=np.float32)
        x[:, : feature.STATIC] = self._samples["static"][rows]
        x[:, feature.STATIC :] = self.ledger.features(self._samples["domain"][rows])
        return x

    def never_visited(self, rows: Rows) -> NDArray[np.bool_]:
        """Say of which of `rows` the domain has not been fetched from, nor is now."""
        return self.ledger.never_visited(self._samples["domain"][rows])

    def standing(self, rows: Rows, busy_hosts: Sequence[int] = ()) -> NDArray[np.uint8]:
        """Return the `Standing` of each of `rows`, no request being possible to `busy_hosts`."""
        busy = np.zeros(len(self.hosts), dtype=np.bool_)
        busy[list(busy_hosts)] = True
        domains = self._samples["domain"][rows]
        waits = busy[self._samples["host"][rows]] | self.ledger.full(domains)
        dead = self._closed["closed"][self._samples["url"][rows]] | self.ledger.exhausted(domains)
        standing = np.where(waits, Standing.BUSY, Standing.READY)
        return np.where(dead, Standing.DEAD, standing).astype(np.uint8)

    def may_be_ready(self, busy_hosts: Sequence[int] = ()) -> bool:
        """Say whether a host outside `busy_hosts` has PENDING samples, dead ones included."""
        pending = self._hosts["pending"]
        return bool(pending.sum() > pending[list(busy_hosts)].sum())

    @property
    def pending(self) -> int:
        """The number of PENDING samples."""
        return int(self._hosts["pending"].sum())

    def lease(self, row: int) -> None:
        """Mark `row` LEASED and close its URL: a URL is fetched at most once."""
        self._leave(np.array([row]), State.LEASED)
        self._closed["closed"][self._samples["url"][row]] = True
        self.ledger.lease(int(self._samples["domain"][row]))

    def finish(self, row: int, path: Path | None = None) -> None:
        """Mark a LEASED `row` DONE; `path` is the path to its page, for its outlinks."""
        self._samples["state"][row] = State.DONE
        self.ledger.lease(int(self._samples["domain"][row]), -1)
        if path is not None:
            self._paths[row] = path

    def redirect(self, row: int, url: str) -> None:
        """Let a LEASED `row` stand for `url`, which joins the closure, and for its domain."""
        number = self._url_id(url)
        self._closed["closed"][number] = True
        self.ledger.lease(self.domain(row), -1)
        self._samples["url"][row] = number
        self._samples["host"][row] = self._host_id(url)
        self._samples["domain"][row] = self.domain_of(url)
        self.ledger.lease(self.domain(row))

    def drop(self, rows: Rows) -> None:
        """Mark PENDING samples that can no longer be taken DONE."""
        self._leave(rows, State.DONE)

    def is_closed(self, url: str) -> bool:
        """Say whether `url` is fetched or being fetched."""
        number = self._url_ids.get(url)
        return number is not None and bool(self._closed["closed"][number])

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

    def is_seed(self, row: int) -> bool:
        """Say whether a row is a seed."""
        return bool(self._samples["parent"][row] == NO_PARENT)

    def path_after(self, row: int, reward: float) -> Path:
        """Return the path that ends at the page of `row`, which has earned `reward`."""
        parent = int(self._samples["parent"][row])
        return feature.SEED_PATH if parent == NO_PARENT else self._paths[parent].extended(reward)

    def trail(self, row: int) -> list[str]:
        """Return the URLs from the seed to `row`, both included."""
        urls = []
        while row != NO_PARENT:
            urls.append(self.url(row))
            row = int(self._samples["parent"][row])
        return urls[::-1]

    def domain_of(self, url: str) -> int:
        """Return the number of the registrable domain of any URL."""
        host = self._host_id(url)
        return int(self._hosts["domain"][host])

    def _state_features(self, parent: int) -> tuple[float, float, float]:
        return feature.NO_PATH if parent == NO_PARENT else self._paths[parent].features

    def _leave(self, rows: Rows, state: State) -> None:
        self._samples["state"][rows] = state
        np.subtract.at(self._hosts["pending"], self._samples["host"][rows], 1)

    def _url_id(self, url: str) -> int:
        number = self._url_ids.setdefault(url, len(self.urls))
        if number == len(self.urls):
            self.urls.append(url)
            self._closed.extend(1)
        return number

    def _host_id(self, url: str) -> int:
        host = urlsplit(url).hostname or ""
        number = self._host_ids.setdefault(host, len(self.hosts))
        if number == len(self.hosts):
            self.hosts.append(host)
            self._hosts.extend(1)
            self._hosts["domain"][number] = self.ledger.id_of(registrable_domain(host))
        return number
