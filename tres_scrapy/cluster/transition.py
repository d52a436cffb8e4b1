"""What a shard tells the one learner of a crawl about a fetch, and what it is told back."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.links.code import CODES, Codes
from tres_scrapy.links.model import KNOWN

_HEAD: Final = np.dtype(
    [
        ("x", "<f4", (len(FEATURES),)),
        ("known", "<f4", (len(KNOWN),)),
        ("earned", "<f4"),
        ("reward", "<f4"),
        ("candidates", "<u4"),
    ]
)
_WEIGHT: Final = np.dtype(
    [("where", "<u4"), ("weight", "<f4"), ("square", "<f4"), ("precision", "<f4")]
)
_COUNTS: Final = np.dtype(
    [("steps", "<i8"), ("updates", "<i8"), ("recent", "<f8"), ("parameters", "<i8")]
)


class Transition(NamedTuple):
    """An experience with all that is learned from it.

    `earned` is the reward with the intrinsic one. `known` [K] and `codes` [m] are what the link
    model reads of the link, `candidates` [k, 9] the actions of the next step.
    """

    x: NDArray[np.float32]
    known: NDArray[np.float32]
    earned: float
    reward: float
    candidates: NDArray[np.float32]
    codes: Codes

    def packed(self) -> bytes:
        """Return the lesson as bytes."""
        head = np.zeros((), dtype=_HEAD)
        for name in ("x", "known", "earned", "reward"):
            head[name] = getattr(self, name)
        head["candidates"] = len(self.candidates)
        candidates, codes = self.candidates.astype("<f4"), self.codes.astype("<u4")
        return head.tobytes() + candidates.tobytes() + codes.tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> Transition:
        """Return the lesson that was packed; raise ValueError if it is damaged."""
        head = np.frombuffer(data, _HEAD, 1)[0]
        count, width = int(head["candidates"]), len(FEATURES)
        end = _HEAD.itemsize + 4 * width * count
        candidates = np.frombuffer(data, "<f4", width * count, _HEAD.itemsize)
        codes = np.frombuffer(data, "<u4", offset=end)
        numbers = np.concatenate([head["x"], head["known"], candidates])
        if not np.isfinite([*numbers, head["earned"], head["reward"]]).all():
            raise ValueError("a lesson holds a number that is not finite")
        if len(codes) and codes.max() >= CODES:
            raise ValueError("a lesson holds an unknown code")
        earned, reward = float(head["earned"]), float(head["reward"])
        candidates = candidates.reshape(count, width)
        return cls(head["x"].copy(), head["known"].copy(), earned, reward, candidates, codes)


class WeightUpdate(NamedTuple):
    """What the learner knows: `parameters` [P] of Q, and weights of the link model that changed.

    `where` [n] are the numbers of those weights. `steps` experiences were learned, with `updates`
    gradient steps; `recent` is the relevant share of the last ones.
    """

    steps: int
    updates: int
    recent: float
    parameters: NDArray[np.float32]
    where: NDArray[np.int64]
    weights: NDArray[np.float32]
    squares: NDArray[np.float32]
    precisions: NDArray[np.float32]

    def packed(self) -> bytes:
        """Return the knowledge as bytes."""
        size = len(self.parameters)
        counts = np.array((self.steps, self.updates, self.recent, size), dtype=_COUNTS)
        changed = np.zeros(len(self.where), dtype=_WEIGHT)
        changed["where"] = self.where
        changed["weight"], changed["square"] = self.weights, self.squares
        changed["precision"] = self.precisions
        return counts.tobytes() + self.parameters.astype("<f4").tobytes() + changed.tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> WeightUpdate:
        """Return the knowledge that was packed."""
        steps, updates, recent, size = np.frombuffer(data, _COUNTS, 1)[0].tolist()
        parameters = np.frombuffer(data, "<f4", size, _COUNTS.itemsize)
        changed = np.frombuffer(data, _WEIGHT, offset=_COUNTS.itemsize + 4 * size)
        columns = (changed[name] for name in ("weight", "square", "precision"))
        return cls(steps, updates, recent, parameters, changed["where"].astype(np.int64), *columns)
