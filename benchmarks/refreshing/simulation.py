"""The experiments of the refresh paper (sections 2 to 5): one fetch in each slot, random changes.

In each slot, first the pages change, then one is fetched, then freshness is measured. An arm is a
group of similar pages (Avrachenkov, Borkar and Patil 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from tres_scrapy.refresh.page_table import Floats, Ints, PageTable
from tres_scrapy.refresh.policy import MAX_CHANCE, MIN_CHANCE, Bounds, StaticPolicy, chance, oldest


@dataclass(frozen=True)
class Experiment:
    """Arms of `counts` similar pages, their change rates and the importance of a page.

    The paper calls its numbers both rates and probabilities. Its optimal shares hold for Poisson
    rates: the chance of a change in a slot is 1 - exp(-rate).
    """

    name: str
    counts: tuple[int, ...]
    rates: tuple[float, ...]
    weights: tuple[float, ...] = (5.0, 0.2, 1.0, 0.5)

    @property
    def chances(self) -> Floats:
        """The chance of a change in a slot, by arm, [K]."""
        return chance(np.array(self.rates))

    @property
    def arms(self) -> Ints:
        """The arm of each page, [n]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


SINGLE: Final = Experiment("single", (1, 1, 1, 1), (0.6, 0.08, 0.01, 0.3))
MULTIPLE: Final = Experiment("multiple", (5, 80, 10, 5), (0.1, 0.002, 0.005, 0.05))
SLOTS: Final = 10_000


class PagePolicy(Protocol):
    """Chooses the page of each slot."""

    def select(self, now: float) -> int:
        """Return the page to fetch."""

    def learn(self, page: int, changed: bool) -> None:
        """Learn whether the page had changed; the page table knows it already."""


@dataclass(frozen=True)
class Trace:
    """The reward of each slot and the importance of the pages that are fresh after it, [T]."""

    rewards: Floats
    fresh: Floats

    def running(self, slot: int) -> float:
        """Return the mean reward up to a slot."""
        return float(self.rewards[:slot].mean())

    def last(self, slots: int) -> float:
        """Return the mean reward of the last slots."""
        return float(self.rewards[-slots:].mean())


def simulate(
    experiment: Experiment,
    make: Callable[[PageTable, np.random.Generator], PagePolicy],
    slots: int,
    seed: int,
) -> Trace:
    """Run a policy; with the same seed, pages change in the same slots under every policy.

    `make` gets the pages, grouped by arm, and a generator for the choices of the policy.
    """
    arms = experiment.arms
    pages = PageTable(np.array(experiment.weights)[arms], (arms,))
    own, world = (np.random.default_rng([seed, lane]) for lane in range(2))
    policy = make(pages, own)
    chances = experiment.chances[arms]
    stale = np.zeros(len(pages), bool)
    rewards, fresh = np.zeros(slots), np.zeros(slots)
    for slot in range(slots):
        now = slot + 1.0
        stale |= world.random(len(pages)) < chances
        page = policy.select(now)
        changed = bool(stale[page])
        stale[page] = False
        pages.see(page, changed, now)
        policy.learn(page, changed)
        rewards[slot] = pages.weights[page] * changed
        fresh[slot] = pages.weights @ ~stale
    return Trace(rewards, fresh)


class SpacedPolicy(PagePolicy):
    """The policy of `scrapy crawl refresh`: estimated rates, evenly spaced visits."""

    def __init__(self, pages: PageTable, jitter: float = 0.0) -> None:
        self._policy = StaticPolicy(pages, 1.0, Bounds(jitter=jitter), 0)
        self._every = np.ones(len(pages), bool)

    def select(self, now: float) -> int:
        """Return the page that is due first."""
        page = self._policy.select(now, self._every)
        self._policy.begin(page)
        return page

    def learn(self, page: int, changed: bool) -> None:
        """Count the visit."""
        self._policy.end()


class Bandit(Protocol):
    """Chooses an arm in each slot and learns whether the page fetched from it had changed."""

    def choose(self) -> int:
        """Return an arm."""

    def learn(self, arm: int, changed: bool) -> None:
        """Learn the result."""
        return


class BanditPolicy(PagePolicy):
    """Lets a bandit choose an arm, then takes its page with the oldest visit (pointer M_k)."""

    def __init__(self, pages: PageTable, bandit: Bandit) -> None:
        self._pages, self._arms, self.bandit = pages, pages.levels[-1], bandit

    def select(self, now: float) -> int:
        """Return a page of the arm that the bandit chooses."""
        return oldest(self._pages, self._arms == self.bandit.choose())

    def learn(self, page: int, changed: bool) -> None:
        """Pass the result to the bandit."""
        self.bandit.learn(int(self._arms[page]), changed)


class StaticBandit(Bandit):
    """Draws each arm with a fixed probability: the paper's static optimisation, or uniform."""

    def __init__(self, shares: Floats, random: np.random.Generator) -> None:
        self._shares, self._random = shares / shares.sum(), random

    def choose(self) -> int:
        """Return an arm."""
        return int(self._random.choice(len(self._shares), p=self._shares))


class ThompsonBandit(Bandit):
    """Draws from the Beta posterior of each arm's chance of a change and takes the largest.

    The paper does not scale the draws (`weights` all 1): it counts changes, not their importance,
    so that other policies can earn more. Scaled by importance it maximises the reward.
    """

    def __init__(self, weights: Floats, random: np.random.Generator) -> None:
        self._weights, self._random = weights, random
        self.changed = np.ones(len(weights))  # alpha
        self.unchanged = np.ones(len(weights))  # beta

    def choose(self) -> int:
        """Return the arm with the largest draw."""
        return int(np.argmax(self._weights * self._random.beta(self.changed, self.unchanged)))

    def learn(self, arm: int, changed: bool) -> None:
        """Count a visit with or without a change."""
        (self.changed if changed else self.unchanged)[arm] += 1


def freshness(shares: Floats, chances: Floats) -> Floats:
    """Return the share of time that each page is fresh: F of Eq. 8 without the weight."""
    return np.where(shares > 0, shares / (shares + chances - chances * shares), 0.0)


def allocate(chances: Floats, weights: Floats, counts: Floats | None = None) -> Floats:
    """Return the exact optimal probability of a fetch in a slot for each page, [n].

    They sum up to 1. An entry stands for `counts` similar pages (default: one). Chances and weights
    are above 0. Takes n log n time.
    """
    chances = np.clip(chances, MIN_CHANCE, MAX_CHANCE)
    each = np.ones_like(chances) if counts is None else counts
    worth = weights / chances  # the price at which a page is first fetched
    order = np.argsort(-worth, kind="stable")
    odds = chances / (1 - chances)
    lift = np.sqrt(weights * chances) / (1 - chances)
    level = (1 + np.cumsum((each * odds)[order])) / np.cumsum((each * lift)[order])
    # The first m pages are fetched: page m is the last with a worth above the resulting price.
    last = int(np.flatnonzero(worth[order] * level**2 > 1)[-1])
    shares: Floats = np.maximum(level[last] * lift - odds, 0.0)
    return shares
