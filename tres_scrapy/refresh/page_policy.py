"""Who chooses the next page of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.refresh.bandit import Bandit, Floats, Mask

Ints = NDArray[np.int64]


class PageTable:
    """What is known of n pages, a column each; times are in seconds, or slots of a simulation.

    `fetched` is when a page was last seen; `changes` counts the visits that found it changed,
    `changed_time` and `quiet_time` are the sums of the gaps before these and before the others.
    `levels` are groups of pages that are thought to be alike, ever smaller ones; `arms` are those
    of bandits.
    """

    def __init__(self, weights: Floats, arms: Ints, levels: Sequence[Ints] = ()) -> None:
        self.weights, self.arms = weights, arms
        self.levels = levels or (arms,)
        self.fetched = np.zeros(len(weights))
        self.changes = np.zeros(len(weights))
        self.changed_time = np.zeros(len(weights))
        self.quiet_time = np.zeros(len(weights))

    def __len__(self) -> int:
        return len(self.weights)

    def see(self, page: int, changed: bool | None, now: float) -> None:
        """Book a visit; None: there was nothing to compare with, or no answer."""
        gap = now - self.fetched[page]
        if changed is not None and gap > 0:
            self.changes[page] += changed
            (self.changed_time if changed else self.quiet_time)[page] += gap
        self.fetched[page] = now

    def arm_weights(self) -> Floats:
        """Return the mean weight of the pages of each arm, [K]."""
        return np.bincount(self.arms, self.weights) / np.maximum(np.bincount(self.arms), 1)


class PagePolicy(Protocol):
    """Chooses the page to fetch next; PageTable is up to date when it is told of a visit."""

    def select(self, now: float, allowed: Mask) -> int:
        """Return one of the pages that are allowed, [n], of which there is one at least."""

    def begin(self, page: int, now: float) -> None:
        """Note that a page is being fetched."""

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Learn whether it had changed; None: there is nothing to learn."""


class UniformPolicy:
    """Any page with the same probability."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def select(self, now: float, allowed: Mask) -> int:
        """Return an allowed page."""
        return int(self._random.choice(np.flatnonzero(allowed)))

    def begin(self, page: int, now: float) -> None:
        """Nothing to note."""

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Nothing to learn."""


class RoundRobinPolicy(UniformPolicy):
    """The page whose last visit is longest ago."""

    def __init__(self, pages: PageTable) -> None:
        self._pages = pages

    def select(self, now: float, allowed: Mask) -> int:
        """Return the allowed page that waits longest."""
        return oldest(self._pages, allowed)


class BanditPolicy:
    """The page of a bandit's arm whose last visit is longest ago: the paper's pointer M_k."""

    def __init__(self, pages: PageTable, bandit: Bandit) -> None:
        self._pages, self.bandit = pages, bandit
        self._count = int(pages.arms.max()) + 1

    def select(self, now: float, allowed: Mask) -> int:
        """Return a page of the arm that the bandit chooses among those with an allowed page."""
        arms = np.bincount(self._pages.arms[allowed], minlength=self._count) > 0
        arm = self.bandit.choose(arms)
        return oldest(self._pages, allowed & (self._pages.arms == arm))

    def begin(self, page: int, now: float) -> None:
        """Tell the bandit."""
        self.bandit.begin(int(self._pages.arms[page]))

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Tell the bandit."""
        self.bandit.end(int(self._pages.arms[page]), changed)


def oldest(pages: PageTable, allowed: Mask) -> int:
    """Return the first of the allowed pages that were seen longest ago."""
    return int(np.argmin(np.where(allowed, pages.fetched, np.inf)))
