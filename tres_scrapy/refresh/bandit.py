"""Bandits that choose among arms, the groups of similar pages (paper, sections 2 and 4)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Bandit(Protocol):
    """Chooses an arm in each slot and learns whether the page fetched from it had changed.

    Results may come after further choices; those of one arm come in order.
    """

    def choose(self, allowed: Mask) -> int:
        """Return one of the allowed arms, [K]; at least one is allowed."""

    def begin(self, arm: int) -> None:
        """Note that a fetch from the arm begins: a slot passes."""
        return

    def end(self, arm: int, changed: bool | None) -> None:
        """Learn the result; None: the fetch failed, so there is nothing to learn."""
        return


class UniformBandit(Bandit):
    """Chooses every arm with the same probability."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def choose(self, allowed: Mask) -> int:
        """Return an allowed arm."""
        return int(self._random.choice(np.flatnonzero(allowed)))


class StaticBandit(UniformBandit):
    """Draws each arm with a fixed probability: the paper's static optimisation."""

    def __init__(self, shares: Floats, random: np.random.Generator) -> None:
        super().__init__(random)
        self._shares = shares

    def choose(self, allowed: Mask) -> int:
        """Return an allowed arm; if all allowed shares are 0, any of them."""
        shares = np.where(allowed, self._shares, 0.0)
        if not shares.any():
            return super().choose(allowed)
        edges = np.cumsum(shares)
        return int(np.searchsorted(edges, self._random.random() * edges[-1], side="right"))


class ThompsonBandit(Bandit):
    """Draws from the Beta posterior of each arm's chance of a change and takes the largest.

    The paper does not scale the draws (`weights` all 1): it counts changes, not their importance,
    so that other policies can earn more. Scaled by importance it maximises the reward.
    """

    def __init__(self, weights: Floats, random: np.random.Generator) -> None:
        self._weights, self._random = weights, random
        self.changed = np.ones(len(weights))  # alpha
        self.unchanged = np.ones(len(weights))  # beta

    def choose(self, allowed: Mask) -> int:
        """Return the allowed arm with the largest draw."""
        drawn = self._weights * self._random.beta(self.changed, self.unchanged)
        return int(np.argmax(np.where(allowed, drawn, -1.0)))

    def end(self, arm: int, changed: bool | None) -> None:
        """Count a visit with or without a change."""
        if changed is not None:
            (self.changed if changed else self.unchanged)[arm] += 1


class SwitchingBandit(Bandit):
    """Lets one bandit choose in the first slots, then another that has learned from all of them.

    The paper advises it for Thompson sampling and FG-DQN, which learns slowly at first.
    """

    def __init__(self, first: Bandit, second: Bandit, slots: int) -> None:
        self._first, self.second, self._left = first, second, slots

    def choose(self, allowed: Mask) -> int:
        """Return the choice of the bandit that is in charge."""
        return (self._first if self._left > 0 else self.second).choose(allowed)

    def begin(self, arm: int) -> None:
        """Pass the slot to both bandits."""
        self._left -= 1
        self._first.begin(arm)
        self.second.begin(arm)

    def end(self, arm: int, changed: bool | None) -> None:
        """Let both bandits learn."""
        self._first.end(arm, changed)
        self.second.end(arm, changed)
