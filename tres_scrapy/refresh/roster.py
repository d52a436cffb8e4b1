"""The policies of `scrapy crawl refresh` by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tres_scrapy.lab.fgdqn import FgDqnBandit, FgDqnOptions
from tres_scrapy.refresh.bandit import Floats, SwitchingBandit, ThompsonBandit
from tres_scrapy.refresh.interval import AdaptivePolicy, Bounds, StaticPolicy
from tres_scrapy.refresh.page_policy import (
    BanditPolicy,
    PagePolicy,
    RoundRobinPolicy,
    UniformPolicy,
)
from tres_scrapy.refresh.page_table import PageTable

SWITCH: Final = 1_000  # visits chosen by Thompson sampling before FG-DQN, as the paper advises


@dataclass(frozen=True)
class PolicySetup:
    """What a policy is made from: `pace` in requests a second.

    `quiet` counts the visits of each page without a change, [n]. `intervals` are those kept from
    an earlier run, [n], NaN where unknown.
    """

    pages: PageTable
    pace: float
    bounds: Bounds
    seed: int
    quiet: Floats
    intervals: Floats


def make_policy(name: str, setup: PolicySetup) -> PagePolicy:
    """Return a policy that starts from the results of earlier visits."""
    return POLICIES[name](setup)


def dump_agent(policy: PagePolicy) -> bytes | None:
    """Return the slots and the network of FG-DQN as bytes; None for other policies."""
    agent = _agent_in(policy)
    if agent is None:
        return None
    return agent.slots.to_bytes(8, "big") + agent.weights_vector().astype(np.float32).tobytes()


def restore_agent(policy: PagePolicy, kept: bytes | None) -> None:
    """Restore what `dump_agent` returned, if the policy is FG-DQN with the same arms."""
    agent = _agent_in(policy)
    if agent is None or kept is None:
        return
    with contextlib.suppress(ValueError):  # the arms have changed: it has to learn again
        agent.restore(np.frombuffer(kept[8:], np.float32), int.from_bytes(kept[:8], "big"))


def _agent_in(policy: PagePolicy) -> FgDqnBandit | None:
    bandit = policy.bandit if isinstance(policy, BanditPolicy) else None
    if isinstance(bandit, SwitchingBandit):
        bandit = bandit.second
    return bandit if isinstance(bandit, FgDqnBandit) else None


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


def _agent(setup: PolicySetup) -> FgDqnBandit:
    return FgDqnBandit(setup.pages.arm_weights(), FgDqnOptions(), setup.seed)


def _ts_then_dqn(setup: PolicySetup) -> PagePolicy:
    left = SWITCH - int(setup.pages.changes.sum() + setup.quiet.sum())
    first = _thompson(setup, by_importance=False)
    return BanditPolicy(setup.pages, SwitchingBandit(first, _agent(setup), left))


POLICIES: Final[dict[str, Callable[[PolicySetup], PagePolicy]]] = {
    "static": lambda setup: StaticPolicy(setup.pages, setup.pace, setup.bounds, setup.seed),
    "fgdqn": lambda setup: BanditPolicy(setup.pages, _agent(setup)),
    "ts": lambda setup: BanditPolicy(setup.pages, _thompson(setup, by_importance=False)),
    "ts-importance": lambda setup: BanditPolicy(setup.pages, _thompson(setup, by_importance=True)),
    "ts-then-dqn": _ts_then_dqn,
    "adaptive": _adaptive,
    "round-robin": lambda setup: RoundRobinPolicy(setup.pages),
    "uniform": lambda setup: UniformPolicy(np.random.default_rng(setup.seed)),
}
