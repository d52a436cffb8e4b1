"""How many relevant pages a crawl may still find in its frontier, and whether it may stop.

A host yields what its last fetches did. One that was not tried yet yields what the first fetches of
hosts did of late: the share of those that were relevant is what Good and Turing (1953) take for the
chance of something new. A curve fitted to the yield was worse (benchmarks/results/stop.md).
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.limit import StopRule
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.url.message import plural

RECENT: Final = 40  # last fetches of a host that say what it yields
FIRSTS: Final = 60  # last first fetches of hosts
TRUSTED: Final = 20  # links of a host without a fetch that are as good as its first
QUIET: Final = 800  # last fetches of the crawl that a rule looks at
REST: Final = 0.01  # most of them that are relevant when the topic is exhausted
FIGURES: Final = ("relevant_left", "relevant_left_low", "relevant_left_high")
EVERY: Final = 25  # fetches between two looks
DEVIATIONS: Final = 1.28  # of an interval that holds four of five cases, if the yields stay
_HOST: Final = np.dtype([("fetches", "i4"), ("last", "u8")])


class Left(NamedTuple):
    """The expected number of relevant pages in reach, and an interval."""

    expected: float
    low: float
    high: float

    def __str__(self) -> str:
        pages = plural(round(self.expected), "relevant page")
        span = f"{self.low:,.0f} to {self.high:,.0f}"
        return f"about {self.expected:,.0f} {pages} left in reach ({span})"


class Outlook:
    """Counts what the hosts of a crawl yield; hosts go by number."""

    def __init__(self, store: SampleStore) -> None:
        self.fetches = 0
        self.relevant = 0
        self.left: Left | None = None  # at the last look
        self._store = store
        self._hosts = Table(_HOST, capacity=64)
        self._firsts = deque[bool](maxlen=FIRSTS)
        self._last = deque[bool](maxlen=QUIET)

    def note(self, host: int, *, relevant: bool) -> None:
        """Count a fetch of a host, failed ones too, and look at what is left now and then."""
        self._count(host, relevant)
        if self.fetches % EVERY == 0:
            self.look()

    def restore(self, hosts: Rows, relevant: NDArray[np.bool_]) -> None:
        """Count the fetches [n] of an interrupted crawl, oldest first."""
        for host, found in zip(hosts.tolist(), relevant.tolist(), strict=True):
            self._count(host, found)

    def _count(self, host: int, relevant: bool) -> None:
        self._hosts.grow(host + 1)
        fetches, last = self._hosts["fetches"], self._hosts["last"]
        if not fetches[host]:
            self._firsts.append(relevant)
        fetches[host] += 1
        last[host] = (int(last[host]) << 1 | relevant) & (1 << RECENT) - 1
        self._last.append(relevant)
        self.fetches += 1
        self.relevant += relevant

    def look(self) -> Left:
        """Return what is left in the frontier of now."""
        waiting = self._store.hosts.waiting()
        self._hosts.grow(len(waiting))
        numbers = np.flatnonzero(waiting)
        links = waiting[numbers]
        fetches = np.minimum(self._hosts["fetches"].take(numbers), RECENT)
        paid = np.bitwise_count(self._hosts["last"].take(numbers))
        new = (sum(self._firsts) + 0.25) / (len(self._firsts) + 1)
        weight = np.where(fetches > 0, fetches + 1, len(self._firsts) + 1)
        rate = np.where(fetches > 0, (paid + new) / weight, new)
        count = np.where(fetches > 0, links, np.minimum(links, TRUSTED))
        expected = float((count * rate).sum())
        spread = rate * (1 - rate) * (count + count**2 / (weight + 1))
        width = DEVIATIONS * math.sqrt(float(spread.sum()))
        self.left = Left(expected, max(0.0, expected - width), expected + width)
        return self.left

    def at_end(self) -> Left | None:
        """Return what is left now; None if no link waits, or it was too early to look."""
        left = None if self.left is None else self.look()
        return left if self._store.pending else None

    def figures(self) -> dict[str, float | str]:
        """Return the figures of the last look, by stat name."""
        return {} if self.left is None else dict(zip(FIGURES, self.left, strict=True))

    def meets(self, rule: StopRule) -> bool:
        """Return whether a rule says to stop, by the last look."""
        if len(self._last) < QUIET:
            return False
        recent = sum(self._last) / QUIET
        if rule.kind == "yield":
            return recent < rule.value
        if not self.relevant or recent > REST:
            return False
        left = self.left or self.look()
        return self.relevant >= rule.value * (self.relevant + left.high)
