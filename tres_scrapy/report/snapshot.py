"""Snapshots of what a policy has learned: its tree, and how Q depends on each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Policy
from tres_scrapy.frontier.feature import FEATURES, TABLE
from tres_scrapy.frontier.split import Split
from tres_scrapy.frontier.tree import Rule, TreeFrontier

TREE, DEPENDENCE, LINKS = "tree", "dependence", "links"


@dataclass(slots=True)
class Node:
    """A node of the tree: its split, if any, and the totals of the leaves below it."""

    leaf: int | None
    split: Split | None = None
    children: tuple[Node, ...] = ()
    fetched: int = 0  # experiences
    reward: float = 0.0  # their sum
    samples: int = 0  # of the frontier
    leaves: int = 1


def tree_of(policy: Policy) -> TreeFrontier | None:
    """Return the Tree-Frontier of a policy, None if it has none."""
    tree = getattr(policy, "tree", None)
    return tree if isinstance(tree, TreeFrontier) else None


def link_learner_of(policy: Policy) -> LinkLearner | None:
    """Return what a policy has learned from links, None if it has no link model."""
    learner = getattr(policy, "link_learner", None)
    return learner if isinstance(learner, LinkLearner) else None


def snapshot_of(tree: TreeFrontier) -> dict[str, Any]:
    """Return the number of splits, and (experiences, reward, samples) of each leaf."""
    samples = tree.pool.sizes().tolist()
    leaves = [
        (len(leaf.experiences), float(tree.rewards(number).sum()), samples[number])
        for number, leaf in enumerate(tree.leaves)
    ]
    return {"splits": tree.splits, "leaves": leaves}


def dependence(policy: Policy, x: NDArray[np.float32]) -> dict[str, list[tuple[float, float]]]:
    """Return (value, mean Q over x [n, 9] with the feature set to that value) by feature."""
    grids = [feature.grid for feature in TABLE]
    asked = [_set(x, feature, grid) for feature, grid in enumerate(grids)]
    values = policy.value(np.concatenate(asked)).reshape(-1, len(x)).mean(axis=1)
    parts = np.split(values, np.cumsum([len(grid) for grid in grids])[:-1])
    return {
        name: list(zip(grid, part.tolist(), strict=True))
        for name, grid, part in zip(FEATURES, grids, parts, strict=True)
    }


def tree_of_splits(rules: Sequence[Rule], leaves: Sequence[tuple[int, float, int]]) -> Node:
    """Return the root of a tree, from its splits and (fetched, reward, samples) of each leaf."""
    root = Node(0)
    at, order = {0: root}, [root]
    for number, (leaf, split) in enumerate(rules, 1):
        branch, children = at[leaf], (Node(leaf), Node(number))
        branch.leaf, branch.split, branch.children = None, split, children
        at[leaf], at[number] = children
        order += children
    for number, (fetched, reward, samples) in enumerate(leaves):
        at[number].fetched, at[number].reward, at[number].samples = fetched, reward, samples
    for node in reversed(order):
        for child in node.children:
            node.fetched += child.fetched
            node.reward += child.reward
            node.samples += child.samples
        node.leaves = sum(child.leaves for child in node.children) or 1
    return root


def _set(x: NDArray[np.float32], feature: int, grid: Sequence[float]) -> NDArray[np.float32]:
    """Repeat x [n, 9] for each value of the grid: [len(grid) * n, 8]."""
    repeated = np.tile(x, (len(grid), 1))
    repeated[:, feature] = np.repeat(grid, len(x))
    return repeated
