"""What a policy has learned: its tree, how Q depends on features, its strongest link weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Policy
from tres_scrapy.frontier.feature import FEATURES, TABLE
from tres_scrapy.frontier.tree import Rule, Split, TreeFrontier
from tres_scrapy.links.code import BITS, CODES, GROUP_SIZE, CueGroup, Names
from tres_scrapy.run.page_row import FETCHED
from tres_scrapy.run.reason import FAINTEST, FEATURE, fact_name, known_name

TREE, DEPENDENCE, LINKS = "tree", "dependence", "links"
DOORS, HOLDER = "doors", "holder"  # of `crawl/share.py`
WEIGHTS: Final = 8  # of a group for a link, and as many against it
_STRONGEST: Final = 100  # weights of a group, of which those with other texts are kept


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


class LinkWeight(NamedTuple):
    """A word, run or fact, its weight, and how many links with it were fetched and relevant.

    A feature, which every link has, has no counts.
    """

    text: str
    weight: float
    fetched: int = 0
    relevant: int = 0


def strongest(learner: LinkLearner, names: Names) -> dict[str, list[LinkWeight]]:
    """Return the strongest weights by group, from most for to most against a link.

    Before the first fetch the result is empty.
    """
    if not learner.fetched.any():
        return {}
    known = enumerate(learner.model.weights[CODES:].tolist())
    features = [LinkWeight(known_name(column), round(weight, 3)) for column, weight in known]
    read = [group for group in CueGroup if group.name.lower() not in learner.options.without]
    found = {group.name.lower(): _of_group(learner, names, group) for group in read}
    found[FEATURE] = [each for each in features if abs(each.weight) >= FAINTEST]
    found[FEATURE].sort(key=lambda each: -each.weight)
    return {group: weights for group, weights in found.items() if weights}


def _of_group(learner: LinkLearner, names: Names, group: CueGroup) -> list[LinkWeight]:
    first = group << BITS
    codes = np.flatnonzero(learner.fetched[first : first + GROUP_SIZE] >= FETCHED) + first
    codes = codes[np.argsort(-learner.model.weights[codes], kind="stable")]
    good = _different(group, _weights_of(learner, names, codes[:_STRONGEST], 1))
    bad = _different(group, _weights_of(learner, names, codes[-_STRONGEST:], -1))
    return [*good, *bad[::-1]]


def _weights_of(
    learner: LinkLearner, names: Names, codes: NDArray[np.int64], sign: int
) -> Iterator[LinkWeight]:
    """Yield the weights of a sign, strongest first, longer texts first among equals."""
    found = []
    for code in codes.tolist():
        fact = code >> BITS == CueGroup.FACT
        text = fact_name(code & (GROUP_SIZE - 1)) if fact else names.text(code)
        weight = round(float(learner.model.weights[code]), 3)
        if text and sign * weight >= FAINTEST:
            counts = int(learner.fetched[code]), int(learner.rewarded[code])
            found.append(LinkWeight(text, weight, *counts))
    yield from sorted(found, key=lambda each: (-sign * each.weight, -len(each.text)))


def _different(group: CueGroup, found: Iterator[LinkWeight]) -> list[LinkWeight]:
    """Return the first weights, without runs that share much with a stronger one."""
    kept: list[LinkWeight] = []
    for each in found:
        if len(kept) == WEIGHTS:
            break
        if not any(_alike(group, each.text, other.text) for other in kept):
            kept.append(each)
    return kept


def _alike(group: CueGroup, text: str, other: str) -> bool:
    return group is CueGroup.URL and any(text[i : i + 3] in other for i in range(len(text) - 2))
