"""How the slots, the requests at once, are divided among domains, new hosts and slow hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.crawl.slot import HostSlots
from tres_scrapy.frontier.ledger import Availability
from tres_scrapy.frontier.store import SampleStore

SHARE: Final = 0.25  # of the slots that a domain, or all slow hosts, hold while others wait
SLOW: Final = 5.0  # seconds for a page: a host that takes longer on average is slow
WEIGHT: Final = 0.3  # of the last page in the average
NEED: Final = 2  # slots that are free for fast hosts, for each that they held of late
FADES: Final = 10.0  # seconds in which what fast hosts need is forgotten by half


class Allotment:
    """Says which hosts and domains may get one of `slots` slots more; times are in seconds.

    A request that waits for longer than SLOW is slow, whatever its host was before: a new host does
    not hold back other new ones for all the time that it takes. New hosts, of which there are
    `most_new` at once, and slow ones leave between a quarter and half of the slots to the others,
    as these need. `per_host` is how many a host may have.
    """

    def __init__(
        self, store: SampleStore, open_: HostSlots, slots: float, per_host: int, most_new: float
    ) -> None:
        self._store = store
        self._open = open_
        self._slots = slots
        self._most_of_domain = max(1.0, slots * SHARE, per_host)
        self._most_slow = max(1.0, slots * SHARE)
        self._most_new = most_new
        self._seconds: dict[int, float] = {}  # a page takes, by slow host
        self._need = 0.0  # slots that fast hosts held of late
        self._looked = 0.0

    def note_page(self, host: int, seconds: float) -> None:
        """Note in which time a host has sent a page."""
        before = self._seconds.get(host, seconds)
        average = before + WEIGHT * (seconds - before)
        self._seconds.pop(host, None)
        if average > SLOW / 2:  # others take no memory
            self._seconds[host] = average

    def full_domains(
        self, resting: Iterable[int], closed: NDArray[np.bool_] | None = None
    ) -> list[int]:
        """Return the domains that hold their share while others wait.

        `resting` hosts and `closed` domains, as in Availability, are aside.
        """
        hosts = self._store.hosts
        held = Counter(hosts.domain(host) for host in self._open.open_hosts())
        full = [domain for domain, count in held.items() if count >= self._most_of_domain]
        if not full or self._slots == 1:
            return []
        idle = [host for host in resting if hosts.domain(host) not in full]
        if closed is not None:
            closed = closed.copy()
            closed[full] = True
            return full if self._store.may_be_ready(Availability(idle, closed=closed)) else []
        pending = self._store.pending - self._store.ledger.pending(full) - hosts.pending(idle)
        return full if pending > 0 else []

    def full_hosts(
        self, busy: Iterable[int], now: float, closed: NDArray[np.bool_] | None = None
    ) -> list[int]:
        """Return the slow hosts if they hold their share while hosts that are not `busy` wait."""
        if self._slots == 1 or len(self._slow_open(now)) < self._most_slow:
            return []
        slow = [host for host, seconds in self._seconds.items() if seconds > SLOW]
        others = Availability([*{*busy, *slow}], closed=closed)
        return slow if self._store.may_be_ready(others) else []

    def has_room_for_new(self, now: float) -> bool:
        """Return whether one more host that has never answered may be asked."""
        slow, known = self._slow_open(now), self._store.hosts.is_known
        others = [host for row, host in self._open.rows().items() if row not in slow]
        new = sum(not known(host) for host in others)
        fades = 0.5 ** ((now - self._looked) / FADES)
        self._need, self._looked = max(len(others) - new, self._need * fades), now
        left = min(max(self._slots * SHARE, NEED * self._need), self._slots / 2)
        fits = self._most_new >= self._slots or len(slow) + new + 1 <= self._slots - left
        return new + 1 <= self._most_new and (fits or not new + len(slow))

    def _slow_open(self, now: float) -> set[int]:
        """Return the rows of requests that have waited long, or go to slow hosts."""
        seconds = self._seconds
        return {
            row
            for row, host in self._open.rows().items()
            if seconds.get(host, 0.0) > SLOW or self._open.waited(row, now) > SLOW
        }
