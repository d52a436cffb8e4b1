"""When it is the network that is gone, and not one host after another."""

from __future__ import annotations

from collections import Counter

from tres_scrapy.crawl.failure import Failure


class Outage:
    """Counts the hosts in a row that could not be reached.

    The network is gone when they are `limit`; 0: it never is.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unreachable: dict[str, str] = {}  # the last failure by host

    def note_answer(self) -> None:
        """Note that a host could be reached."""
        self._unreachable.clear()

    def note(self, host: str, failure: Failure) -> bool:
        """Note that a host could not be reached; return whether the network is gone just now."""
        self._unreachable[host] = failure.kind
        return len(self._unreachable) == self._limit

    def __len__(self) -> int:
        return len(self._unreachable)

    def __str__(self) -> str:
        kinds = Counter(self._unreachable.values()).most_common()
        return ", ".join(f"{kind} {count}" for kind, count in kinds)
