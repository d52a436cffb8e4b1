"""The experiences of a shard in order, as the lessons that the one learner of the crawl reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Past
from tres_scrapy.cluster.transition import Transition
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.links.code import Codes
from tres_scrapy.links.model import KNOWN

_NONE: Final = -1
_NOTE: Final = np.dtype(
    [
        ("x", "f4", (len(FEATURES),)),
        ("known", "f4", (len(KNOWN),)),
        ("earned", "f4"),
        ("reward", "f4"),
        ("row", "i8"),
        ("first", "i8"),
        ("outlinks", "i8"),
        ("sampled", "i8"),
    ]
)


class TransitionLog:
    """Notes each experience; `lessons` returns them as they look now, any number of times.

    `features` returns the current x(s, a) of rows. A lesson has the sample of the next choice if it
    is known then: a shard that waits for pages tells what it has found all the same.
    """

    def __init__(self, features: Callable[[Rows], NDArray[np.float32]]) -> None:
        self._features = features
        self._notes = Table(_NOTE, capacity=64)
        self._followed = 0  # experiences that have their next choice
        self._known: list[NDArray[np.float32]] = []  # of experiences not added yet
        self._away: dict[int, NDArray[np.float32]] = {}  # by number; not known after a restart

    def __len__(self) -> int:
        return len(self._notes)

    def note_link(self, known: NDArray[np.float32]) -> None:
        """Note the known facts [K] of the next experience that is added."""
        self._known.append(known)

    def note_away(self, x: NDArray[np.float32]) -> None:
        """Note links [n, 9] to other shards that the page of the next experience has."""
        if len(x):
            self._away[len(self)] = x

    def add(
        self, row: int, x: NDArray[np.float32], earned: float, reward: float, outlinks: Rows
    ) -> None:
        """Add an experience and the consecutive rows of its page's outlinks."""
        first = int(outlinks[0]) if len(outlinks) else 0
        place = self._notes.extend(1).start
        values = x, self._known.pop(0), earned, reward, row, first, len(outlinks), _NONE
        for name, value in zip(_NOTE.names or (), values, strict=True):
            self._notes[name][place] = value

    def note_choice(self, row: int) -> None:
        """Note the sample that was chosen next for all experiences since the last choice."""
        self._notes["sampled"][self._followed :] = row
        self._followed = len(self)

    def restore(self, past: Past, earned: NDArray[np.float32]) -> None:
        """Fill an empty notebook with a past, whose links were noted."""
        where = self._notes.extend(len(past.rows))
        columns = (past.x, np.array(self._known), earned, past.rewards, past.rows, *past[3:])
        for name, values in zip(_NOTE.names or (), columns, strict=True):
            if len(past.rows):
                self._notes[name][where] = values
        self._known.clear()
        waiting = np.flatnonzero(past.sampled == _NONE)
        self._followed = int(waiting[0]) if len(waiting) else len(past.rows)

    def lessons(self, first: int, most: int, codes_of: Callable[[int], Codes]) -> list[bytes]:
        """Return experiences from number `first` on, at most so many, as lessons.

        `codes_of` returns what the link of a row says.
        """
        last = min(len(self), first + most)
        return [self._lesson(number, codes_of).packed() for number in range(first, last)]

    def _lesson(self, number: int, codes_of: Callable[[int], Codes]) -> Transition:
        note = {name: self._notes[name][number] for name in _NOTE.names or ()}
        first = int(note["first"])
        candidates = [*range(first, first + int(note["outlinks"])), int(note["sampled"])]
        x = self._features(np.array([row for row in candidates if row != _NONE], dtype=np.int64))
        x = np.concatenate([x, self._away.get(number, x[:0])])
        earned, reward = float(note["earned"]), float(note["reward"])
        return Transition(note["x"], note["known"], earned, reward, x, codes_of(int(note["row"])))
