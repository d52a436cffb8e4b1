"""Events in the order of simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Agenda:
    """Calls functions at their times; those of one time in the order in which they were added."""

    def __init__(self) -> None:
        self.now = 0.0  # seconds
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function in so many seconds."""
        heapq.heappush(self._calls, (self.now + seconds, next(self._number), call))

    def every(self, seconds: float, call: Callable[[], None], first: float) -> None:
        """Call a function again and again, for the first time in `first` seconds."""

        def again() -> None:
            call()
            self.after(seconds, again)

        self.after(first, again)

    def step(self) -> None:
        """Make the next call."""
        self.now, _, call = heapq.heappop(self._calls)
        call()
