"""Whether a request slot stays idle until the host of a better link is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LONGEST: Final = 5.0  # seconds: a host that rests longer is not waited for
MOST_IDLE: Final = 0.375  # share of all slots: a crawl takes at most 1.6 times as long
CREDIT: Final = 20.0  # seconds that all slots may be idle in a row


class Patience:
    """Compares the best link that can be sent now with the best on hosts that are busy.

    A link is sent if it is worth at most `hurry` less than the better one, in relevant pages (upper
    bounds of Q); 1 never waits. Idle slots use up credit, which time restores, so that a long crawl
    leaves at most MOST_IDLE of its slots idle for this.
    """

    def __init__(self, hurry: float = 1.0) -> None:
        self.hurry = hurry
        self.hosts: Sequence[int] = ()  # busy hosts that are soon free
        self.waiting = False
        self.waited = 0.0  # seconds, of all slots
        self._credit = CREDIT
        self._free = 0.0  # share of the slots
        self._last: float | None = None

    def note(self, now: float, hosts: Sequence[int], free: float) -> None:
        """Note before a choice which busy hosts are soon free, and the share of free slots."""
        if self._last is not None:
            passed = now - self._last
            idle = self._free * passed if self.waiting else 0.0
            self.waited += idle
            self._credit = min(CREDIT, self._credit + MOST_IDLE * passed - idle)
        self._last, self._free, self.waiting = now, free, False
        self.hosts = hosts if self.hurry < 1 and self._credit > 0 else ()

    def waits(self, ready: float, later: float) -> bool:
        """Return whether to send nothing now, given what the best link is worth and the later."""
        self.waiting = later - ready > self.hurry
        return self.waiting
