"""How long a crawl waits for better links on busy hosts."""

from __future__ import annotations

from typing import Final

from tres_scrapy.crawl.slot import LONGEST_REST

WAITED: Final = "tres/seconds_waited"  # stat: for better links, of all slots together
CREDIT: Final = 20.0  # seconds that all slots may be idle in a row, times 1 - hurry


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
