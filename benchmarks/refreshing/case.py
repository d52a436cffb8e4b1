"""The simulated cases: an experiment of the paper with a policy, seeds and slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tres_scrapy.lab.fgdqn import FgDqnBandit, FgDqnOptions, State
from tres_scrapy.lab.refresh_policies import (
    NUTCH,
    STORM,
    SWITCH,
    AdaptivePolicy,
    Bandit,
    BanditPolicy,
    RoundRobinPolicy,
    StaticBandit,
    SwitchingBandit,
    ThompsonBandit,
    UniformBandit,
)
from tres_scrapy.lab.refresh_simulation import MULTIPLE, SINGLE, SLOTS, Experiment, IndexPolicy
from tres_scrapy.refresh.allocation import allocate
from tres_scrapy.refresh.page_table import PageTable
from tres_scrapy.refresh.policy import Bounds, PagePolicy, StaticPolicy
from tres_scrapy.refresh.rate import Floats

Make = Callable[[PageTable, np.random.Generator], PagePolicy]

GREEDY = 2_000  # slots after training in which FG-DQN chooses by Q alone
RUNS, FEW = 10, 3
SHORT = 6_000  # slots of a probe
EARLY, MANY = 3_000, 25  # slots after which FG-DQN should beat TS, and runs to test it

BERNOULLI = replace(SINGLE, name="bernoulli", bernoulli=True)


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


class TrainedPolicy(BanditPolicy):
    """FG-DQN that stops exploring and learning after a number of slots."""

    def __init__(self, pages: PageTable, bandit: FgDqnBandit, slots: int) -> None:
        super().__init__(pages, bandit)
        self._agent, self._slots = bandit, slots

    def begin(self, page: int, now: float) -> None:
        """Count the slot."""
        super().begin(page, now)
        self._agent.learns = self._agent.slots <= self._slots


class ScaledFgDqnBandit(FgDqnBandit):
    """FG-DQN whose state has the slots since the last choice in another scale than ln X."""

    def __init__(
        self,
        pages: PageTable,
        options: FgDqnOptions,
        seed: int,
        scale: Callable[[Floats], Floats],
    ) -> None:
        self._scale = scale
        super().__init__(pages.arm_weights(), options, seed)

    @property
    def state(self) -> State:
        """The present state, [2K]."""
        return np.concatenate([self._scale(self._waited), self._changed]).astype(np.float32)


def cases() -> Iterator[Case]:
    """Yield every case, cheap ones first, probes last."""
    for experiment in (SINGLE, MULTIPLE, BERNOULLI):
        yield from _cheap(experiment)
    for experiment in (SINGLE, MULTIPLE):
        yield Case(experiment, "fgdqn", _trained(FgDqnOptions()), greedy=GREEDY)
    yield Case(BERNOULLI, "fgdqn", _dqn(FgDqnOptions()), SHORT, FEW)
    for experiment in (SINGLE, MULTIPLE):
        yield Case(experiment, "ts-then-dqn", _ts_then_dqn, SHORT, FEW)
    yield from _probes()
    early = replace(SINGLE, name="early")
    yield Case(early, "fgdqn", _dqn(FgDqnOptions()), EARLY, MANY)
    yield Case(early, "ts", _ts, EARLY, MANY)


def _cheap(experiment: Experiment) -> Iterator[Case]:
    weights, counts = np.array(experiment.weights), np.array(experiment.counts, float)
    chances = experiment.chances
    makes: dict[str, Make] = {
        "uniform": lambda pages, random: BanditPolicy(pages, UniformBandit(random)),
        "round-robin": lambda pages, random: RoundRobinPolicy(pages),
        "ts": _ts,
        "ts-importance": _bandit(lambda random: ThompsonBandit(weights, random)),
        "so": _bandit(
            lambda random: StaticBandit(allocate(chances, weights, counts=counts) * counts, random)
        ),
        "so-group": _bandit(lambda random: StaticBandit(allocate(chances, weights), random)),
        "static": lambda pages, random: StaticPolicy(pages, 1.0, Bounds(), 0),
        "adaptive-storm": lambda pages, random: _adaptive(pages, storm=True),
        "adaptive-nutch": lambda pages, random: _adaptive(pages, storm=False),
        "oracle-reward": lambda pages, random: IndexPolicy(
            pages, chances[pages.arms], freshness=False
        ),
        "oracle-freshness": lambda pages, random: IndexPolicy(
            pages, chances[pages.arms], freshness=True
        ),
    }
    for policy, make in makes.items():
        if policy != "so-group" or experiment is MULTIPLE:
            yield Case(experiment, policy, make)


def _probes() -> Iterator[Case]:
    adam, sgd = FgDqnOptions(), FgDqnOptions(optimiser="sgd", learning_rate=0.01)
    makes = {
        "raw X": lambda p, r: BanditPolicy(p, ScaledFgDqnBandit(p, adam, _seed(r), lambda x: x)),
        "min(X, 100) / 100": lambda p, r: BanditPolicy(
            p, ScaledFgDqnBandit(p, adam, _seed(r), lambda x: np.minimum(x, 100) / 100)
        ),
        "Adam 1e-4": _dqn(replace(adam, learning_rate=1e-4)),
        "SGD 0.01": _dqn(sgd),
        "SGD 0.01 and xi": _dqn(replace(sgd, noise=1.0)),
        "semi-gradient": _dqn(replace(adam, full_gradient=False)),
    }
    for name, make in makes.items():
        yield Case(replace(SINGLE, name="probe"), name, make, SHORT, FEW)


def _bandit(make: Callable[[np.random.Generator], Bandit]) -> Make:
    return lambda pages, random: BanditPolicy(pages, make(random))


def _adaptive(pages: PageTable, *, storm: bool) -> AdaptivePolicy:
    first = np.full(len(pages), float(len(pages)))
    return AdaptivePolicy(pages, first, Bounds(least=1), 0, STORM if storm else NUTCH)


def _ts(pages: PageTable, random: np.random.Generator) -> PagePolicy:
    return BanditPolicy(pages, ThompsonBandit(np.ones(len(pages.arm_weights())), random))


def _dqn(options: FgDqnOptions) -> Make:
    return lambda pages, random: BanditPolicy(
        pages, FgDqnBandit(pages.arm_weights(), options, _seed(random))
    )


def _trained(options: FgDqnOptions) -> Make:
    return lambda pages, random: TrainedPolicy(
        pages, FgDqnBandit(pages.arm_weights(), options, _seed(random)), SLOTS
    )


def _ts_then_dqn(pages: PageTable, random: np.random.Generator) -> PagePolicy:
    weights = pages.arm_weights()
    agent = FgDqnBandit(weights, FgDqnOptions(), _seed(random))
    first = ThompsonBandit(np.ones(len(weights)), random)
    return BanditPolicy(pages, SwitchingBandit(first, agent, SWITCH))


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(2**31))
