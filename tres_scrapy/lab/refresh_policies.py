"""Policies that `scrapy crawl refresh` is compared with: bandits over groups of pages, and rules.

An arm is a group of similar pages (Avrachenkov, Borkar and Patil 2021, sections 2 and 4).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from tres_scrapy.refresh.page_table import Mask, PageTable
from tres_scrapy.refresh.policy import Bounds, IntervalPolicy, PagePolicy, PolicySetup, oldest
from tres_scrapy.refresh.rate import Floats

SWITCH: Final = 1_000  # visits chosen by Thompson sampling before FG-DQN, as the paper advises


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

    def dump(self) -> bytes | None:
        """Return what the page table does not hold, None for nothing."""
        return None

    def restore(self, state: bytes) -> None:
        """Load a state; raise ValueError if it does not fit these arms."""
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

    def dump(self) -> bytes | None:
        """Return the state of the second bandit; the first needs only the page table."""
        return self.second.dump()

    def restore(self, state: bytes) -> None:
        """Load the state of the second bandit."""
        self.second.restore(state)


class UniformPolicy(PagePolicy):
    """Chooses every page with the same probability."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def select(self, now: float, allowed: Mask) -> int:
        """Return an allowed page."""
        return int(self._random.choice(np.flatnonzero(allowed)))


class RoundRobinPolicy(PagePolicy):
    """Chooses the page with the oldest visit."""

    def __init__(self, pages: PageTable) -> None:
        self._pages = pages

    def select(self, now: float, allowed: Mask) -> int:
        """Return the allowed page that waits longest."""
        return oldest(self._pages, allowed)


class BanditPolicy(PagePolicy):
    """Lets a bandit choose an arm, then takes its page with the oldest visit (pointer M_k)."""

    def __init__(self, pages: PageTable, bandit: Bandit) -> None:
        self._pages, self.bandit = pages, bandit
        self._count = int(pages.arms.max()) + 1

    def select(self, now: float, allowed: Mask) -> int:
        """Return a page of the arm that the bandit chooses among arms with an allowed page."""
        arms = np.bincount(self._pages.arms[allowed], minlength=self._count) > 0
        arm = self.bandit.choose(arms)
        return oldest(self._pages, allowed & (self._pages.arms == arm))

    def begin(self, page: int, now: float) -> None:
        """Pass the arm of the page to the bandit."""
        self.bandit.begin(int(self._pages.arms[page]))

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Pass the result to the bandit."""
        self.bandit.end(int(self._pages.arms[page]), changed)

    def dump(self) -> bytes | None:
        """Return what the bandit has learned besides the counts of the page table."""
        return self.bandit.dump()

    def restore(self, state: bytes) -> None:
        """Let the bandit continue, unless the arms have changed: then it has to learn again."""
        with suppress(ValueError):
            self.bandit.restore(state)


@dataclass(frozen=True)
class IntervalRule:
    """How the interval of a page changes after a visit.

    After a change it shrinks to the share `shrink`, otherwise it grows by the share `grow`. With
    `halves` only the part above the shortest interval shrinks, as in StormCrawler; without, all of
    it, as in Nutch.
    """

    shrink: float = 0.5
    grow: float = 0.5
    halves: bool = True


STORM, NUTCH = IntervalRule(), IntervalRule(shrink=0.8, grow=0.2, halves=False)


class AdaptivePolicy(IntervalPolicy):
    """The rule of common recrawlers: a shorter interval after a change, otherwise a longer one."""

    def __init__(
        self,
        pages: PageTable,
        intervals: Floats,
        bounds: Bounds,
        seed: int,
        rule: IntervalRule = STORM,
    ) -> None:
        super().__init__(pages, intervals, bounds, seed)
        self._rule = rule

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Shorten or lengthen the interval of the page."""
        if changed is None:
            return
        interval, rule, least = self.intervals[page], self._rule, self.bounds.least
        floor = least * (1 - rule.shrink) if rule.halves else 0.0
        moved = interval * rule.shrink + floor if changed else interval * (1 + rule.grow)
        self.intervals[page] = np.clip(moved, least, self.bounds.most)


def _adaptive(setup: PolicySetup) -> PagePolicy:
    first = np.full(len(setup.pages), len(setup.pages) / setup.pace)
    intervals = np.where(np.isfinite(setup.intervals), setup.intervals, first)
    return AdaptivePolicy(setup.pages, intervals, setup.bounds, setup.seed)


def _thompson(setup: PolicySetup, *, by_importance: bool) -> ThompsonBandit:
    pages = setup.pages
    weights = pages.arm_weights()
    random = np.random.default_rng(setup.seed)
    bandit = ThompsonBandit(weights if by_importance else np.ones(len(weights)), random)
    bandit.changed += np.bincount(pages.arms, pages.changes)
    bandit.unchanged += np.bincount(pages.arms, setup.quiet)
    return bandit


def _fgdqn(setup: PolicySetup) -> Bandit:
    from tres_scrapy.lab.fgdqn import FgDqnBandit, FgDqnOptions  # noqa: PLC0415 - loads PyTorch

    return FgDqnBandit(setup.pages.arm_weights(), FgDqnOptions(), setup.seed)


def _ts_then_dqn(setup: PolicySetup) -> Bandit:
    left = SWITCH - int(setup.pages.changes.sum() + setup.quiet.sum())
    return SwitchingBandit(_thompson(setup, by_importance=False), _fgdqn(setup), left)


POLICIES: Final[dict[str, Callable[[PolicySetup], PagePolicy]]] = {
    "fgdqn": lambda setup: BanditPolicy(setup.pages, _fgdqn(setup)),
    "ts": lambda setup: BanditPolicy(setup.pages, _thompson(setup, by_importance=False)),
    "ts-importance": lambda setup: BanditPolicy(setup.pages, _thompson(setup, by_importance=True)),
    "ts-then-dqn": lambda setup: BanditPolicy(setup.pages, _ts_then_dqn(setup)),
    "adaptive": _adaptive,
    "round-robin": lambda setup: RoundRobinPolicy(setup.pages),
    "uniform": lambda setup: UniformPolicy(np.random.default_rng(setup.seed)),
}
