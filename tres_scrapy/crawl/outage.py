"""Detection of a network outage, as opposed to single hosts that are down."""

from __future__ import annotations

from collections import Counter

from tres_scrapy.crawl.failure import Failure


class Outage:
    """Counts different hosts in a row that could not be reached.

    At `limit` hosts the network is considered down; 0 disables the check.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unreachable: dict[str, str] = {}  # the last failure by host

    def note_answer(self) -> None:
        """Note that a host was reached, which resets the count."""
        self._unreachable.clear()

    def note(self, host: str, failure: Failure) -> bool:
        """Note that a host was not reached; return whether the count is now `limit`."""
        self._unreachable[host] = failure.kind
        return len(self._unreachable) == self._limit

    def __len__(self) -> int:
        return len(self._unreachable)

    def __str__(self) -> str:
        kinds = Counter(self._unreachable.values()).most_common()
        return ", ".join(f"{kind} {count}" for kind, count in kinds)
