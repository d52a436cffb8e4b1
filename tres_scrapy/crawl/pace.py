"""The speed of a crawl and the time left."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW: Final = 60.0  # seconds; older marks say little about the next minute


class Pace:
    """Computes pages a second, overall and over the last WINDOW, from marks."""

    def __init__(self, pages: int, now: float) -> None:
        self._first = now, pages  # pages of a resumed crawl included
        self._marks = deque([self._first])

    def note(self, pages: int, now: float) -> None:
        """Note the number of pages at a time, in seconds of a monotonic clock."""
        self._marks.append((now, pages))
        while len(self._marks) > 2 and self._marks[1][0] <= now - WINDOW:
            self._marks.popleft()

    @property
    def is_resumed(self) -> bool:
        """Whether there were pages at the start, which do not count in the speed."""
        return self._first[1] > 0

    @property
    def recent(self) -> float:
        """Pages a second over the last WINDOW."""
        return _rate(self._marks[0], self._marks[-1])

    @property
    def overall(self) -> float:
        """Pages a second since the start."""
        return _rate(self._first, self._marks[-1])

    def left(self, limit: int | None) -> float | None:
        """Return the seconds until `limit` pages at the recent pace, or None if unknown."""
        if limit is None or not self.recent:
            return None
        return max(0, limit - self._marks[-1][1]) / self.recent


def _rate(since: tuple[float, int], until: tuple[float, int]) -> float:
    seconds = until[0] - since[0]
    return (until[1] - since[1]) / seconds if seconds > 0 else 0.0
