"""When a shard sends the parcels that wait for another one."""

from __future__ import annotations

from math import inf
from typing import Final

EVERY: Final = 2.0  # seconds between two deliveries to a shard
MOST: Final = 200  # parcels of one delivery
NEWS: Final = 0.1  # of the parcels that a shard has: if more are new to it, it gets them at once


class SendSchedule:
    """Lets parcels wait for others: a delivery costs much the same, whatever it holds.

    A shard that has few yet, as at the start of a crawl, does not wait for its next ones.
    """

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._times: dict[int, float] = {}  # of the last delivery to a shard

    def take_turn(self, shard: int, new: int, known: int, now: float) -> bool:
        """Return whether a shard that has the first `known` parcels gets `new` ones; note when."""
        late = now - self._times.get(shard, -inf) >= self._every
        due = new > 0 and (late or new >= MOST or new > NEWS * known)
        if due:
            self._times[shard] = now
        return due
