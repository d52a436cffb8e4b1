"""The experiments of the paper (section 5): one fetch in each slot, pages that change at random.

In each slot, first the pages change, then one is fetched, then freshness is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tres_scrapy.refresh.allocation import chance
from tres_scrapy.refresh.page_table import PageTable
from tres_scrapy.refresh.policy import PagePolicy
from tres_scrapy.refresh.rate import Floats


@dataclass(frozen=True)
class Experiment:
    """Arms of `counts` similar pages, their change rates and the importance of a page.

    The paper calls its numbers both rates and probabilities. Its optimal shares hold for Poisson
    rates: the chance of a change in a slot is 1 - exp(-rate). With `bernoulli` it is the rate.
    """

    name: str
    counts: tuple[int, ...]
    rates: tuple[float, ...]
    weights: tuple[float, ...] = (5.0, 0.2, 1.0, 0.5)
    bernoulli: bool = False

    @property
    def chances(self) -> Floats:
        """The chance of a change in a slot, by arm, [K]."""
        rates = np.array(self.rates)
        return rates if self.bernoulli else chance(rates)

    def pages(self) -> PageTable:
        """Return the pages, with one arm for each kind."""
        arms = np.repeat(np.arange(len(self.counts)), self.counts)
        return PageTable(np.array(self.weights)[arms], arms)


SINGLE: Final = Experiment("single", (1, 1, 1, 1), (0.6, 0.08, 0.01, 0.3))
MULTIPLE: Final = Experiment("multiple", (5, 80, 10, 5), (0.1, 0.002, 0.005, 0.05))
SLOTS: Final = 10_000


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

    `make` gets the pages and a generator for the choices of the policy.
    """
    pages = experiment.pages()
    own, world = (np.random.default_rng([seed, lane]) for lane in range(2))
    policy = make(pages, own)
    chances = experiment.chances[pages.arms]
    stale = np.zeros(len(pages), bool)
    every = np.ones(len(pages), bool)
    rewards, fresh = np.zeros(slots), np.zeros(slots)
    for slot in range(slots):
        now = slot + 1.0
        stale |= world.random(len(pages)) < chances
        page = policy.select(now, every)
        policy.begin(page, now)
        changed = bool(stale[page])
        stale[page] = False
        pages.see(page, changed, now)
        policy.end(page, changed, now)
        rewards[slot] = pages.weights[page] * changed
        fresh[slot] = pages.weights @ ~stale
    return Trace(rewards, fresh)


class IndexPolicy(PagePolicy):
    """Chooses the page with the highest Whittle index from known change rates: an upper bound.

    A page of weight w that was seen n slots ago and changes with chance d in a slot has the index
    w (1 - (1 - d)^n (1 + n d)) for changes found. For time fresh, this is divided by d.
    """

    def __init__(self, pages: PageTable, chances: Floats, *, freshness: bool) -> None:
        self._pages, self._chances = pages, chances
        self._worth = pages.weights / (chances if freshness else 1)

    def select(self, now: float, allowed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
        """Return the allowed page with the highest index."""
        waited = now - self._pages.fetched
        lost = (1 - self._chances) ** waited * (1 + waited * self._chances)
        return int(np.argmax(np.where(allowed, self._worth * (1 - lost), -1.0)))
