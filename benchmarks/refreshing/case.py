"""The simulated cases: an experiment of the paper with a policy, seeds and slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from refreshing.fgdqn import FgDqnBandit, FgDqnOptions
from refreshing.simulation import (
    MULTIPLE,
    SINGLE,
    SLOTS,
    Bandit,
    BanditPolicy,
    Experiment,
    PagePolicy,
    SpacedPolicy,
    StaticBandit,
    ThompsonBandit,
    allocate,
)
from tres_scrapy.refresh.page_table import PageTable

Make = Callable[[PageTable, np.random.Generator], PagePolicy]

GREEDY = 2_000  # slots after training in which FG-DQN chooses by Q alone
RUNS = 10


@dataclass(frozen=True)
class Case:
    """A policy in an experiment; after training, `greedy` slots follow without exploration."""

    experiment: Experiment
    policy: str
    make: Make
    slots: int = SLOTS
    runs: int = RUNS
    greedy: int = 0

    @property
    def key(self) -> str:
        """The name of the case in the results."""
        return f"{self.experiment.name}/{self.policy}"


class TrainedBandit(FgDqnBandit):
    """FG-DQN that stops exploring and learning after SLOTS slots."""

    def learn(self, arm: int, changed: bool) -> None:
        """Learn, and count the slot."""
        super().learn(arm, changed)
        self.learns = self.slots < SLOTS


def cases() -> Iterator[Case]:
    """Yield every case, cheap ones first."""
    for experiment in (SINGLE, MULTIPLE):
        yield from _cheap(experiment)
    for experiment in (SINGLE, MULTIPLE):
        yield Case(experiment, "fgdqn", _bandit(_fgdqn(experiment)), greedy=GREEDY)


def _cheap(experiment: Experiment) -> Iterator[Case]:
    weights, counts = np.array(experiment.weights), np.array(experiment.counts, float)
    even, chances = np.ones(len(weights)), experiment.chances
    shares = allocate(chances, weights, counts) * counts
    makes: dict[str, Make] = {
        "uniform": _bandit(lambda random: StaticBandit(even, random)),
        "ts": _bandit(lambda random: ThompsonBandit(even, random)),
        "ts-importance": _bandit(lambda random: ThompsonBandit(weights, random)),
        "so": _bandit(lambda random: StaticBandit(shares, random)),
        "so-group": _bandit(lambda random: StaticBandit(allocate(chances, weights), random)),
        "static": lambda pages, random: SpacedPolicy(pages),
    }
    for policy, make in makes.items():
        if policy != "so-group" or experiment is MULTIPLE:
            yield Case(experiment, policy, make)


def _fgdqn(experiment: Experiment) -> Callable[[np.random.Generator], Bandit]:
    weights = np.array(experiment.weights)
    return lambda random: TrainedBandit(weights, FgDqnOptions(), int(random.integers(2**31)))


def _bandit(make: Callable[[np.random.Generator], Bandit]) -> Make:
    return lambda pages, random: BanditPolicy(pages, make(random))
