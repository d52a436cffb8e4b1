"""Hosts: which domain each belongs to, who has answered, who is given up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.download import RestOptions
from tres_scrapy.frontier.column import Table
from tres_scrapy.frontier.finder import Finders
from tres_scrapy.frontier.ledger import Availability, DomainLedger

_HOST: Final = np.dtype(
    [("domain", "i4"), ("pending", "i4"), ("busy", "?"), ("known", "?"), ("given_up", "?")]
)


class Hosts:
    """Hosts by number, each with its registrable domain in the ledger.

    A host is known once it has answered.
    """

    def __init__(self, ledger: DomainLedger) -> None:
        self.names: list[str] = []
        self.gone: set[str] = set()  # the names of hosts that are given up
        self.ever_given_up: dict[int, None] = {}  # hosts in order, those of earlier runs too
        self.known_domains: set[int] = set()  # those with a host that has answered
        self.failing = Finders(RestOptions.most + 1)  # rests, and the failure after the last
        self._known_pending = 0  # samples of known hosts
        self._ledger = ledger
        self._numbers: dict[str, int] = {}
        self._columns = Table(_HOST, capacity=64)

    def number_of(self, host: str) -> int:
        """Return the number of a host; a new host gets the next number."""
        number = self._numbers.setdefault(host, len(self.names))
        if number == len(self.names):
            self.names.append(host)
            self._columns.extend(1)
            self._columns["domain"][number] = self._ledger.id_of_host(host)
        return number

    def find(self, host: str) -> int | None:
        """Return the number of a host, None if it has none."""
        return self._numbers.get(host)

    def domain_of(self, host: str) -> int:
        """Return the number of a host's domain; a new host gets no number."""
        number = self._numbers.get(host)
        return self._ledger.id_of_host(host) if number is None else self.domain(number)

    def domains(self, hosts: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the numbers of the domains of hosts [n]."""
        return self._columns["domain"].take(hosts)

    def domain(self, host: int) -> int:
        """Return the number of the domain of a host."""
        return int(self._columns["domain"][host])

    def busy(self, hosts: NDArray[np.int32], available: Availability) -> NDArray[np.bool_]:
        """Return which of hosts [n] are busy."""
        busy = self._columns["busy"]  # a column lookup: there may be a million hosts
        now = np.asarray(available.busy, dtype=np.int64)
        busy[now] = True
        found = busy.take(hosts)
        busy[now] = False
        if len(available.domains):
            found |= np.isin(self.domains(hosts), available.domains)
        if available.closed is not None:
            found |= available.is_closed(self.domains(hosts))
        return found | ~self._columns["known"].take(hosts) if available.only_known else found

    def pending(self, hosts: Sequence[int] | NDArray[np.int64]) -> int:
        """Return how many samples of these hosts are PENDING."""
        return int(self._columns["pending"].take(np.asarray(hosts, dtype=np.int64)).sum())

    def waiting(self) -> NDArray[np.int32]:
        """Return how many samples of each host are PENDING, [hosts]."""
        return self._columns["pending"][: len(self.names)].copy()

    def known_pending(self, busy_hosts: Sequence[int] | NDArray[np.int64]) -> int:
        """Return how many samples of known hosts that are not busy are PENDING."""
        busy = np.asarray(busy_hosts, dtype=np.int64)
        return self._known_pending - self.pending(busy[self._columns["known"].take(busy)])

    def is_known(self, host: int) -> bool:
        """Return whether a host has answered."""
        return bool(self._columns["known"][host])

    def mark_known(self, host: int) -> None:
        """Note that a host has answered."""
        if not self.is_known(host):
            self._columns["known"][host] = True
            self.known_domains.add(self.domain(host))
            self._known_pending += int(self._columns["pending"][host])

    def give_up(self, host: int) -> None:
        """Note that no sample of a host is fetched any more."""
        self._columns["given_up"][host] = True
        self.gone.add(self.names[host])
        self.note_given_up([host])

    def note_given_up(self, hosts: Iterable[int]) -> None:
        """Note hosts that this run or an earlier one has given up."""
        self.ever_given_up |= dict.fromkeys(hosts)

    def given_up(self, hosts: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which of hosts [n] are given up."""
        return self._columns["given_up"].take(hosts)

    def count_pending(self, hosts: NDArray[np.int32], change: int = 1) -> None:
        """Count samples of `hosts` [n] that become PENDING (`change` 1) or stop being so (-1)."""
        np.add.at(self._columns["pending"], hosts, change)
        self._known_pending += change * int(np.count_nonzero(self._columns["known"].take(hosts)))
        self._ledger.count_pending(self.domains(hosts), change)


def host_of(url: str) -> str:
    """Return the host of a canonical URL, ten times as fast as parsing the whole URL."""
    place = url.split("/", 3)[2]
    return place if ":" not in place else urlsplit(url).hostname or ""


def origin_of(url: str) -> str:
    """Return scheme, host and port of a canonical URL, such as http://a.test:8080."""
    return "/".join(url.split("/", 3)[:3])


def has_port(origin: str) -> bool:
    """Return whether a canonical origin names a port: it is not that of the scheme."""
    return urlsplit(origin).port is not None
