"""The policies by name."""

from __future__ import annotations

from tres_scrapy.agent.ddqn import AgentOptions
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.frontier.tree import TreeOptions
from tres_scrapy.policies.policy import Policy
from tres_scrapy.policies.tres import LearningOptions, TresPolicy
from tres_scrapy.policies.uniform import RandomPolicy

POLICIES = ("tres", "random")


def make_policy(
    name: str,
    store: SampleStore,
    *,
    tree: TreeOptions,
    agent: AgentOptions,
    learning: LearningOptions,
    seed: int,
) -> Policy:
    """Return a new policy over `store`; a policy takes those of the options that it knows."""
    if name == "random":
        return RandomPolicy(store, seed)
    return TresPolicy(store, tree=tree, agent=agent, learning=learning, seed=seed)
