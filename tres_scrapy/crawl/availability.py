"""Which hosts can be sent a request now, by what was sent to them and by their downloader slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Final, NamedTuple

LONGEST_REST: Final = 5.0  # seconds: a host that rests longer is not waited for
WAITED: Final = "tres/seconds_waited"  # stat: for better links, of all slots together
CREDIT: Final = 20.0  # seconds that all slots may be idle in a row, times 1 - hurry


class Slot(NamedTuple):
    """The downloader slot of a host, which other hosts may share."""

    key: str
    hosts: Sequence[str]  # the names that share it
    transfers: int  # most requests at once
    delay: float  # seconds between two requests
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
        self._free_at: dict[int, float] = {}  # by host, the end of the delay
        self._numbers: dict[str, int] = {}  # the hosts that were sent a request, by name

    def sent(self, row: int, host: int, now: float) -> None:
        """Note that a request is on its way to a host."""
        self._open[row] = host
        self._numbers[self._names[host]] = host
        self._rest(host, self._slot(host).delay, now)

    def left(self, row: int) -> None:
        """Note that a request has left its host: the delay counts from the last one sent to it."""
        host = self._open.pop(row, None)
        if host is None or not self._is_open(row):
            return
        self._free_at.pop(host, None)
        slot = self._slot(host)
        if slot.last is not None:
            self._rest(host, slot.delay, slot.last)

    def open_hosts(self) -> Iterable[int]:
        """Return the host of each open request."""
        self._open = {row: host for row, host in self._open.items() if self._is_open(row)}
        return self._open.values()

    def busy(self, now: float) -> set[int]:
        """Return the hosts that must not get another request now."""
        self._free_at = {host: until for host, until in self._free_at.items() if until > now}
        hosts = self.open_hosts()
        slots = {host: self._slot(host) for host in hosts}
        transfers = Counter(slots[host].key for host in hosts)
        busy = {host for host, slot in slots.items() if transfers[slot.key] >= slot.transfers}
        busy |= self._free_at.keys()
        names = (name for host in busy for name in self._slot(host).hosts)
        return busy.union(self._numbers[name] for name in names if name in self._numbers)

    def soon_free(self, busy: Set[int], now: float) -> list[int]:
        """Return the busy hosts that rest for a moment only, or were sent a request just now."""
        return [host for host in busy if self._is_soon_free(host, now)]

    def next_time(self) -> float | None:
        """Return when the first delay ends, None if no host rests."""
        return min(self._free_at.values(), default=None)

    def _is_soon_free(self, host: int, now: float) -> bool:
        if host in self._free_at:
            return self._free_at[host] <= now + LONGEST_REST
        last = self._slot(host).last
        return last is None or last > now - LONGEST_REST

    def _rest(self, host: int, delay: float, since: float) -> None:
        if delay > 0:
            self._free_at[host] = since + delay

    def _slot(self, host: int) -> Slot:
        return self._slot_of(self._names[host])


class Patience:
    """Bounds how long slots are idle while the crawl waits for better links on busy hosts.

    Idle slots use up credit, which time restores: of all slots, at most the share 1 - `hurry` is
    idle for this. 1 never waits.
    """

    def __init__(self, hurry: float = 1.0) -> None:
        self.waited = 0.0  # seconds, of all slots
        self._patience = 1 - hurry
        self._used = 0.0  # seconds of credit
        self._free = 0.0  # share of the slots
        self._last: float | None = None

    def has_credit(self, now: float, free: float, *, waits: bool) -> bool:
        """Return whether the next choice may wait.

        `free` is the share of free slots, `waits` whether the last choice was to wait.
        """
        if self._last is not None:
            passed = min(LONGEST_REST, now - self._last)  # longer: a pause, or the network was gone
            idle = self._free * passed if waits else 0.0
            self.waited += idle
            self._used = max(0.0, self._used + idle - self._patience * passed)
        self._last, self._free = now, free
        return self._used < CREDIT * self._patience
