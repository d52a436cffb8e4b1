"""The policies of `scrapy crawl refresh` by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tres_scrapy.refresh.bandit import Floats, SwitchingBandit, ThompsonBandit
from tres_scrapy.refresh.fgdqn import FgDqnBandit, FgDqnOptions
from tres_scrapy.refresh.interval import AdaptivePolicy, Bounds, StaticPolicy
from tres_scrapy.refresh.page_policy import (
    BanditPolicy,
    PagePolicy,
    PageTable,
    RoundRobinPolicy,
    UniformPolicy,
)

SWITCH: Final = 1_000  # fetches of Thompson sampling before FG-DQN, as the paper advises


@dataclass(frozen=True)
class PolicySetup:
    """What a policy is made from: `pace` in requests a second, `quiet` visits of each page, [n].

    `intervals` are those that an interrupted run has left, [n], not a number where there is none.
    """

    pages: PageTable
    pace: float
    bounds: Bounds
    seed: int
    quiet: Floats
    intervals: Floats


def make_policy(name: str, setup: PolicySetup) -> PagePolicy:
    """Return a policy; it knows what the visits before have found."""
    return POLICIES[name](setup)


def agent_of(policy: PagePolicy) -> FgDqnBandit | None:
    """Return the FG-DQN in a policy, whose network is worth keeping."""
    bandit = policy.bandit if isinstance(policy, BanditPolicy) else None
    if isinstance(bandit, SwitchingBandit):
        bandit = bandit.second
    return bandit if isinstance(bandit, FgDqnBandit) else None


def _static(setup: PolicySetup) -> PagePolicy:
    return StaticPolicy(setup.pages, setup.pace, setup.bounds, setup.seed)


def _adaptive(setup: PolicySetup) -> PagePolicy:
    first = np.full(len(setup.pages), len(setup.pages) / setup.pace)
    known = np.isfinite(setup.intervals)
    intervals = np.where(known, setup.intervals, first)
    return AdaptivePolicy(setup.pages, intervals, setup.bounds, setup.seed)


def _thompson(setup: PolicySetup, *, by_importance: bool) -> ThompsonBandit:
    pages = setup.pages
    weights = pages.arm_weights()
    random = np.random.default_rng(setup.seed)
    bandit = ThompsonBandit(weights if by_importance else np.ones(len(weights)), random)
    bandit.changed += np.bincount(pages.arms, pages.changes)
    bandit.unchanged += np.bincount(pages.arms, setup.quiet)
    return bandit


def _ts(setup: PolicySetup) -> PagePolicy:
    return BanditPolicy(setup.pages, _thompson(setup, by_importance=False))


def _ts_importance(setup: PolicySetup) -> PagePolicy:
    return BanditPolicy(setup.pages, _thompson(setup, by_importance=True))


def _agent(setup: PolicySetup) -> FgDqnBandit:
    return FgDqnBandit(setup.pages.arm_weights(), FgDqnOptions(), setup.seed)


def _fgdqn(setup: PolicySetup) -> PagePolicy:
    return BanditPolicy(setup.pages, _agent(setup))


def _ts_then_dqn(setup: PolicySetup) -> PagePolicy:
    left = SWITCH - int(setup.pages.changes.sum() + setup.quiet.sum())
    first = _thompson(setup, by_importance=False)
    return BanditPolicy(setup.pages, SwitchingBandit(first, _agent(setup), left))


def _round_robin(setup: PolicySetup) -> PagePolicy:
    return RoundRobinPolicy(setup.pages)


def _uniform(setup: PolicySetup) -> PagePolicy:
    return UniformPolicy(np.random.default_rng(setup.seed))


POLICIES: Final[dict[str, Callable[[PolicySetup], PagePolicy]]] = {
    "static": _static,
    "fgdqn": _fgdqn,
    "ts": _ts,
    "ts-importance": _ts_importance,
    "ts-then-dqn": _ts_then_dqn,
    "adaptive": _adaptive,
    "round-robin": _round_robin,
    "uniform": _uniform,
}
