"""What a shard tells the learner of a crawl about its fetches, and what it is told back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.links.code import CODES, Codes
from tres_scrapy.links.model import KNOWN

_HEAD: Final = np.dtype(
    [
        ("x", "<f4", (len(FEATURES),)),
        ("known", "<f4", (len(KNOWN),)),
        ("earned", "<f4"),
        ("target", "<f4"),
        ("candidates", "<u4"),
    ]
)
_NONE: Final = -1
_NOTE: Final = np.dtype(
    [
        ("x", "f4", (len(FEATURES),)),
        ("known", "f4", (len(KNOWN),)),
        ("earned", "f4"),
        ("target", "f4"),
        ("row", "i8"),
        ("first", "i8"),
        ("outlinks", "i8"),
        ("sampled", "i8"),
    ]
)


class Transition(NamedTuple):
    """An experience with all that is learned from it.

    `earned` is the reward with the intrinsic one, `target` what the link model learns. `known` [K]
    and `codes` [m] are what it reads of the link, `candidates` [k, 9] the actions of the next step.
    """

    x: NDArray[np.float32]
    known: NDArray[np.float32]
    earned: float
    target: float
    candidates: NDArray[np.float32]
    codes: Codes

    def packed(self) -> bytes:
        """Return the transition as bytes."""
        head = np.zeros((), dtype=_HEAD)
        for name in ("x", "known", "earned", "target"):
            head[name] = getattr(self, name)
        head["candidates"] = len(self.candidates)
        candidates, codes = self.candidates.astype("<f4"), self.codes.astype("<u4")
        return head.tobytes() + candidates.tobytes() + codes.tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> Transition:
        """Return the transition that was packed; raise ValueError if it is damaged."""
        head = np.frombuffer(data, _HEAD, 1)[0]
        count, width = int(head["candidates"]), len(FEATURES)
        end = _HEAD.itemsize + 4 * width * count
        candidates = np.frombuffer(data, "<f4", width * count, _HEAD.itemsize)
        codes = np.frombuffer(data, "<u4", offset=end)
        numbers = np.concatenate([head["x"], head["known"], candidates])
        if not np.isfinite([*numbers, head["earned"], head["target"]]).all():
            raise ValueError("a transition holds a number that is not finite")
        if len(codes) and codes.max() >= CODES:
            raise ValueError("a transition holds an unknown code")
        earned, target = float(head["earned"]), float(head["target"])
        candidates = candidates.reshape(count, width)
        return cls(head["x"].copy(), head["known"].copy(), earned, target, candidates, codes)


class WeightUpdate(NamedTuple):
    """What the learner knows: `parameters` [P] of Q, and weights of the link model that changed.

    `where` [n] are the numbers of those weights. `steps` experiences were learned, with `updates`
    gradient steps.
    """

    steps: int
    updates: int
    parameters: NDArray[np.float32]
    where: NDArray[np.uint32]
    weights: NDArray[np.float32]
    squares: NDArray[np.float32]
    precisions: NDArray[np.float32]

    @property
    def size(self) -> int:
        """The bytes of its arrays."""
        return sum(each.nbytes for each in self[2:])


class TransitionLog:
    """Notes each experience; `transitions` returns them as they look now, any number of times.

    `features` returns the current x(s, a) of rows. A transition has the sample of the next choice
    if it is known then: a shard that waits for pages sends what it has found all the same.
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

    def add(self, experience: Experience, earned: float, outlinks: Rows) -> None:
        """Add an experience and the consecutive rows of its page's outlinks."""
        first = int(outlinks[0]) if len(outlinks) else 0
        place = self._notes.extend(1).start
        row, x, *_ = experience
        known, target = self._known.pop(0), experience.target
        values = x, known, earned, target, row, first, len(outlinks), _NONE
        for name, value in zip(_NOTE.names or (), values, strict=True):
            self._notes[name][place] = value

    def note_choice(self, row: int) -> None:
        """Note the sample that was chosen next for all experiences since the last choice."""
        self._notes["sampled"][self._followed :] = row
        self._followed = len(self)

    def restore(self, past: Past, earned: NDArray[np.float32]) -> None:
        """Fill an empty log with a past, whose links were noted."""
        where = self._notes.extend(len(past.rows))
        links = past.rows, past.firsts, past.outlinks, past.sampled
        columns = (past.x, np.array(self._known), earned, past.targets, *links)
        for name, values in zip(_NOTE.names or (), columns, strict=True):
            if len(past.rows):
                self._notes[name][where] = values
        self._known.clear()
        waiting = np.flatnonzero(past.sampled == _NONE)
        self._followed = int(waiting[0]) if len(waiting) else len(past.rows)

    def transitions(self, first: int, most: int, codes_of: Callable[[int], Codes]) -> list[bytes]:
        """Return experiences from number `first` on, at most so many, as transitions.

        `codes_of` returns what the link of a row says.
        """
        last = min(len(self), first + most)
        return [self._transition(number, codes_of).packed() for number in range(first, last)]

    def _transition(self, number: int, codes_of: Callable[[int], Codes]) -> Transition:
        note = {name: self._notes[name][number] for name in _NOTE.names or ()}
        first = int(note["first"])
        candidates = [*range(first, first + int(note["outlinks"])), int(note["sampled"])]
        x = self._features(np.array([row for row in candidates if row != _NONE], dtype=np.int64))
        x = np.concatenate([x, self._away.get(number, x[:0])])
        earned, target = float(note["earned"]), float(note["target"])
        return Transition(note["x"], note["known"], earned, target, x, codes_of(int(note["row"])))
