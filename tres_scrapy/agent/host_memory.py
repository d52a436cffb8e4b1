"""What the last fetches of each host brought: a host that is used up is noticed after a few."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Table

FADE: Final = 0.95  # of what a fetch counts, at each further fetch of its host
KEPT: Final = 10_000  # pages whose links may still prove relevant
_HOST: Final = np.dtype([("fetches", "i4"), ("recent", "f4"), ("relevant", "f4"), ("leads", "f4")])

Hosts = NDArray[np.int32]
Values = NDArray[np.float32]


class HostMemory:
    """Counts fetches by host, and with fading weights what came of them.

    The *lead* of a page is the highest P(relevant) of the links that were first seen on it, and 1
    once one of them proves relevant: a directory is not relevant and leads to pages that are. Hosts
    that are hardly known are believed to have the mean lead of all, before any proof: with proofs,
    unknown hosts would seem better than most.
    """

    def __init__(self) -> None:
        self._hosts = Table(_HOST, capacity=64)
        self._recent = self._leads = 0.0  # of all hosts
        self._pages: dict[int, tuple[int, float]] = {}  # host and lead of the last ones, by row

    def fetched(self, host: int, reward: float) -> None:
        """Count a fetch; `host` is its number."""
        self._grow(host + 1)
        hosts = self._hosts
        hosts["fetches"][host] += 1
        hosts["recent"][host] = FADE * hosts["recent"][host] + 1
        hosts["relevant"][host] = FADE * hosts["relevant"][host] + reward
        hosts["leads"][host] *= FADE
        self._recent, self._leads = FADE * self._recent + 1, FADE * self._leads

    def led(self, row: int, host: int, lead: float) -> None:
        """Note the lead of the page that was just `fetched`, or a higher one of an earlier page."""
        if row not in self._pages:
            self._pages[row] = host, 0.0
            self._leads += lead
            if len(self._pages) > KEPT:
                del self._pages[next(iter(self._pages))]
        self._raise(row, lead)

    def proved(self, row: int) -> None:
        """Note that a link first seen on a page is relevant.

        This counts for its host like the lead of a page fetched now, however old the page is: a
        host is worth as much as what it has led to lately.
        """
        if row in self._pages:
            self._raise(row, 1.0)

    def _raise(self, row: int, lead: float) -> None:
        host, before = self._pages[row]
        if lead > before:
            leads, recent = self._hosts["leads"], self._hosts["recent"]
            leads[host] = min(recent[host], leads[host] + lead - before)
            self._pages[row] = host, lead

    def logits(self, hosts: Hosts) -> Values:
        """Return the logit of the relevant share of the last fetches [n], 0 without a fetch."""
        self._grow(int(hosts.max(initial=-1)) + 1)
        recent, relevant = (self._hosts[name].take(hosts) for name in ("recent", "relevant"))
        logits: Values = np.log((relevant + 0.5) / (recent - relevant + 0.5))
        return logits

    def leads(self, hosts: Hosts) -> Values:
        """Return the mean lead of the last pages [n], drawn to that of all hosts by one page."""
        self._grow(int(hosts.max(initial=-1)) + 1)
        mean = self._leads / self._recent if self._recent else 0.5
        recent, leads = (self._hosts[name].take(hosts) for name in ("recent", "leads"))
        values: Values = ((leads + mean) / (recent + 1)).astype(np.float32)
        return values

    def doubts(self, hosts: Hosts) -> Values:
        """Return how little is known [n]: 1 / sqrt(1 + fetches)."""
        self._grow(int(hosts.max(initial=-1)) + 1)
        doubts: Values = (1 / np.sqrt(1 + self._hosts["fetches"].take(hosts))).astype(np.float32)
        return doubts

    def _grow(self, count: int) -> None:
        self._hosts.extend(max(0, count - len(self._hosts)))
