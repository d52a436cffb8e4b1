"""Which hosts are busy: their slot is full, or its delay is not over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Final, NamedTuple

LONGEST_REST: Final = 5.0  # seconds: a host that rests longer is not waited for


class Slot(NamedTuple):
    """The downloader slot of a host, which other hosts may share."""

    key: str
    hosts: Sequence[str]  # the names that share it
    transfers: int  # most requests at once
    delay: float  # seconds between two requests to any of them
    own: float = 0.0  # seconds between two requests to this host
    last: float | None = None  # the time of the last request, None before the first


class HostSlots:
    """Hosts are busy while their slot is full of open requests, or its delay is not over.

    A host is its place in `names`, which may grow. `slot_of` returns the slot of a name as it is
    now. A request, named by its row, is open from `sent` to `left`, and no longer than `is_open`
    holds for it. All times are in seconds of one clock.
    """

    def __init__(
        self,
        names: Sequence[str],
        slot_of: Callable[[str], Slot],
        is_open: Callable[[int], bool],
    ) -> None:
        self._names = names
        self._slot_of = slot_of
        self._is_open = is_open
        self._open: dict[int, int] = {}  # hosts by row
        self._sent: dict[int, float] = {}  # when the open requests were sent, by row
        self._free_at: dict[int, float] = {}  # by host, the end of the delay of its slot
        self._held: dict[int, float] = {}  # the same of hosts that ask for a longer one
        self._numbers: dict[str, int] = {}  # the hosts that were sent a request, by name

    def sent(self, row: int, host: int, now: float) -> None:
        """Note that a request is on its way to a host."""
        self._open[row], self._sent[row] = host, now
        self._numbers[self._names[host]] = host
        self._rest(host, self._slot(host), now)

    def left(self, row: int) -> None:
        """Note that a request has left its host: the delay counts from the last one sent to it."""
        host = self._open.pop(row, None)
        self._sent.pop(row, None)
        if host is None or not self._is_open(row):
            return
        self._free_at.pop(host, None)
        self._held.pop(host, None)
        slot = self._slot(host)
        if slot.last is not None:
            self._rest(host, slot, slot.last)

    def hold(self, host: int, until: float) -> None:
        """Note that a host is busy until a time, whatever its slot is."""
        self._held[host] = until

    def open_hosts(self) -> Iterable[int]:
        """Return the host of each open request."""
        return self.rows().values()

    def rows(self) -> Mapping[int, int]:
        """Return the host of each open request by row."""
        for row in [row for row in self._open if not self._is_open(row)]:
            del self._open[row], self._sent[row]
        return self._open

    def waited(self, row: int, now: float) -> float:
        """Return for how many seconds a request has been open, 0 if it is not."""
        return now - self._sent.get(row, now)

    def busy(self, now: float) -> set[int]:
        """Return the hosts that must not get another request now."""
        self._free_at = {host: until for host, until in self._free_at.items() if until > now}
        hosts = self.open_hosts()
        slots = {host: self._slot(host) for host in hosts}
        transfers = Counter(slots[host].key for host in hosts)
        busy = {host for host, slot in slots.items() if transfers[slot.key] >= slot.transfers}
        busy |= self._free_at.keys()
        self._held = {host: until for host, until in self._held.items() if until > now}
        shared = {slot.key: slot.hosts for slot in map(self._slot, busy)}
        names = chain.from_iterable(shared.values())
        busy = busy.union(self._numbers[name] for name in names if name in self._numbers)
        return busy.union(self._held)

    def soon_free(self, busy: Set[int], now: float) -> list[int]:
        """Return the busy hosts that rest for a moment only, or were sent a request just now."""
        return [host for host in busy if self._is_soon_free(host, now)]

    def next_time(self) -> float | None:
        """Return when the first delay ends, None if no host rests."""
        return min([*self._free_at.values(), *self._held.values()], default=None)

    def _is_soon_free(self, host: int, now: float) -> bool:
        ends = [each[host] for each in (self._free_at, self._held) if host in each]
        if ends:
            return max(ends) <= now + LONGEST_REST
        last = self._slot(host).last
        return last is None or last > now - LONGEST_REST

    def _rest(self, host: int, slot: Slot, since: float) -> None:
        if slot.delay > 0:
            self._free_at[host] = since + slot.delay
        if slot.own > slot.delay:
            self._held[host] = since + slot.own

    def _slot(self, host: int) -> Slot:
        return self._slot_of(self._names[host])
