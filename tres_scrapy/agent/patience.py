"""Whether request slots stay idle until the host of a better link is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LONGEST: Final = 5.0  # seconds: a host that rests longer is not waited for
WORTH: Final = 0.1  # relevant pages: a link must be worth so much more to be waited for
CREDIT: Final = 20.0  # seconds that all slots may be idle in a row, times 1 - hurry


class Patience:
    """Compares the best link that can be sent now with the best on hosts that are busy.

    What a link is worth is the upper bound of Q, in relevant pages. Idle slots use up credit, which
    time restores: of all slots, at most the share 1 - `hurry` is idle for this. 1 never waits.
    """

    def __init__(self, hurry: float = 1.0) -> None:
        self.hurry = hurry
        self.hosts: Sequence[int] = ()  # busy hosts that are soon free
        self.waiting = False
        self.waited = 0.0  # seconds, of all slots
        self._used = 0.0  # seconds of credit
        self._free = 0.0  # share of the slots
        self._last: float | None = None

    def note(self, now: float, hosts: Sequence[int], free: float) -> None:
        """Note before a choice which busy hosts are soon free, and the share of free slots."""
        patience = 1 - self.hurry
        if self._last is not None:
            passed = min(LONGEST, now - self._last)  # longer: a pause, or the network was gone
            idle = self._free * passed if self.waiting else 0.0
            self.waited += idle
            self._used = max(0.0, self._used + idle - patience * passed)
        self._last, self._free, self.waiting = now, free, False
        self.hosts = hosts if self._used < CREDIT * patience else ()

    def waits(self, ready: float, later: float) -> bool:
        """Return whether to send nothing now, given what the best link is worth and the later."""
        self.waiting = later - ready > WORTH
        return self.waiting
