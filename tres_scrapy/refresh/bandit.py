"""Who chooses among arms, groups of pages that are alike (paper, sections 2 and 4)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Bandit(Protocol):
    """Chooses an arm in each slot and learns whether the page fetched of it had changed.

    Results may come later than further choices, those of one arm in their order.
    """

    def choose(self, allowed: Mask) -> int:
        """Return one of the arms that are allowed, [K], of which there is one at least."""

    def begin(self, arm: int) -> None:
        """Note that a page of the arm is being fetched: a slot passes."""

    def end(self, arm: int, changed: bool | None) -> None:
        """Learn what came of it; None: the fetch failed, which tells nothing."""


class UniformBandit:
    """Chooses any arm with the same probability."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def choose(self, allowed: Mask) -> int:
        """Return an allowed arm."""
        return int(self._random.choice(np.flatnonzero(allowed)))

    def begin(self, arm: int) -> None:
        """Nothing to note."""

    def end(self, arm: int, changed: bool | None) -> None:
        """Nothing to learn."""


class StaticBandit(UniformBandit):
    """Draws each arm with a fixed probability: the paper's static optimisation."""

    def __init__(self, shares: Floats, random: np.random.Generator) -> None:
        super().__init__(random)
        self._shares = shares

    def choose(self, allowed: Mask) -> int:
        """Return an allowed arm, any of them if all the others are."""
        shares = np.where(allowed, self._shares, 0.0)
        if not shares.any():
            return super().choose(allowed)
        edges = np.cumsum(shares)
        return int(np.searchsorted(edges, self._random.random() * edges[-1], side="right"))


class ThompsonBandit:
    """Draws from each arm's Beta posterior of finding a change, and takes the largest.

    The paper's draws are not scaled (`weights` all 1): it counts changes whatever they are worth,
    which is why the other policies can pass it. Scaled by the importance it maximises the reward.
    """

    def __init__(self, weights: Floats, random: np.random.Generator) -> None:
        self._weights, self._random = weights, random
        self.changed = np.ones(len(weights))  # alpha
        self.unchanged = np.ones(len(weights))  # beta

    def choose(self, allowed: Mask) -> int:
        """Return the allowed arm of the largest draw."""
        drawn = self._weights * self._random.beta(self.changed, self.unchanged)
        return int(np.argmax(np.where(allowed, drawn, -1.0)))

    def begin(self, arm: int) -> None:
        """Nothing to note."""

    def end(self, arm: int, changed: bool | None) -> None:
        """Count the change, or that there was none."""
        if changed is not None:
            (self.changed if changed else self.unchanged)[arm] += 1


class SwitchingBandit:
    """Lets one bandit choose for the first slots and another, which learns all along, from then on.

    The paper's advice for Thompson sampling and FG-DQN, which is slow to begin.
    """

    def __init__(self, first: Bandit, second: Bandit, slots: int) -> None:
        self._first, self.second, self._left = first, second, slots

    def choose(self, allowed: Mask) -> int:
        """Return the choice of the bandit whose turn it is."""
        return (self._first if self._left > 0 else self.second).choose(allowed)

    def begin(self, arm: int) -> None:
        """Note it with both."""
        self._left -= 1
        self._first.begin(arm)
        self.second.begin(arm)

    def end(self, arm: int, changed: bool | None) -> None:
        """Let both learn."""
        self._first.end(arm, changed)
        self.second.end(arm, changed)
