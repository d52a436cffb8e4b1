"""The Tree-Frontier: an online decision tree over experience and frontier samples (P 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.learning import TreeOptions
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.feature import FEATURES, bucket
from tres_scrapy.frontier.sampling import LeafPool

_ROOT = 0
_NOISE = 1e-12  # a smaller reduction of variance is rounding
# The children of a node are those for x >= c and x < c; both of a leaf are the leaf itself.
_NODE = np.dtype([("feature", "i4"), ("threshold", "f4"), ("children", "i4", (2,)), ("leaf", "i4")])
_EXPERIENCE = np.dtype([("x", "f4", (len(FEATURES),)), ("reward", "f4")])


class Split(NamedTuple):
    """The partition x[feature] < threshold | x[feature] >= threshold; its variance reduction VR."""

    feature: int
    threshold: float
    reduction: float


class Rule(NamedTuple):
    """The split of the leaf with number `leaf`."""

    leaf: int
    split: Split


@dataclass(slots=True)
class Leaf:
    """A leaf: its node, its depth and the numbers of its experience samples."""

    node: int
    depth: int
    experiences: list[int]


class TreeFrontier:
    """A binary tree whose leaves hold experience samples (x, r) and frontier samples (rows).

    Leaves are numbered from 0. When a leaf splits, the left child (x < c) keeps its number and the
    right child gets the next one. `features` returns the current x [n, 9] of rows: it decides the
    leaf of a frontier sample on insertion and when that leaf splits.
    """

    def __init__(
        self,
        features: Callable[[Rows], NDArray[np.float32]],
        options: TreeOptions | None = None,
    ) -> None:
        self.options = options or TreeOptions()
        self.pool = LeafPool()
        self._features = features
        self._nodes = Table(_NODE, capacity=64)
        self._experiences = Table(_EXPERIENCE)
        self._depth = 0  # of the deepest leaf
        self.leaves: list[Leaf] = []
        self.rules: list[Rule] = []  # in the order of the splits
        self._add_leaf(depth=0)

    def __len__(self) -> int:
        """Return the number of leaves."""
        return len(self.leaves)

    @property
    def splits(self) -> int:
        """The number of splits: each adds one leaf."""
        return len(self.rules)

    def leaf_of(self, x: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the leaf of each state-action vector of `x` [n, 9], by the tree's rules."""
        values, start = self._view(x).ravel(), len(FEATURES) * np.arange(len(x))
        names = ("feature", "threshold", "children", "leaf")
        feature, threshold, children, leaf = (self._nodes[name].ravel() for name in names)
        node = np.full(len(x), _ROOT, dtype=np.int32)
        for _ in range(self._depth):  # rows that are at a leaf stay there
            # `take` because it is three times as fast as an index
            below = values.take(start + feature.take(node)) < threshold.take(node)
            node = children.take(2 * node + below)
        return leaf.take(node).astype(np.int64)

    def add_experience(self, x: NDArray[np.float32], reward: float) -> Split | None:
        """Add e_new = (x [9], r) and split its leaf if a split helps (Algorithm 3)."""
        number = self._experiences.extend(1).start
        self._experiences["x"][number] = self._view(x[None])[0]
        self._experiences["reward"][number] = reward
        leaf = int(self.leaf_of(x[None])[0])
        self.leaves[leaf].experiences.append(number)
        return self._split(leaf)

    def insert(self, rows: Rows) -> None:
        """Insert new frontier samples by the tree's rules (Algorithm 3, line 5)."""
        leaves = self.leaf_of(self._features(rows))
        for leaf in np.unique(leaves):
            self.pool.extend(int(leaf), rows[leaves == leaf])

    def restore(
        self, rules: Sequence[Rule], x: NDArray[np.float32], rewards: NDArray[np.float32]
    ) -> None:
        """Grow an empty tree by saved rules and add experience samples.

        `x` [n, 9] and `rewards` [n] are in order, oldest first. Raise ValueError if the rules do
        not form a tree.
        """
        nothing = np.zeros(0, dtype=np.bool_)
        for rule in rules:
            if not (0 <= rule.leaf < len(self) and 0 <= rule.split.feature < len(FEATURES)):
                raise ValueError(f"{rule} is not a split of this tree")
            self._grow(rule.leaf, rule.split, nothing)
        where = self._experiences.extend(len(x))
        self._experiences["x"][where] = self._view(x)
        self._experiences["reward"][where] = rewards
        leaves = self.leaf_of(x)
        order = np.argsort(leaves, kind="stable")
        ends = np.searchsorted(leaves[order], np.arange(len(self)), side="right")
        for leaf, numbers in zip(self.leaves, np.split(order, ends[:-1]), strict=True):
            leaf.experiences = numbers.tolist()

    def rewards(self, leaf: int) -> NDArray[np.float32]:
        """Return the rewards of the experience samples of a leaf."""
        return self._experiences["reward"][self.leaves[leaf].experiences]

    def _view(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return bucket(x) if self.options.bucketed else x

    def _split(self, leaf: int) -> Split | None:
        parent = self.leaves[leaf]
        if len(parent.experiences) < self.options.min_samples:
            return None
        if parent.depth >= self.options.max_depth:
            return None
        x = self._experiences["x"][parent.experiences]
        split = best_split(x, self.rewards(leaf), self.options.min_share)
        if split is not None:
            self._grow(leaf, split, x[:, split.feature] < split.threshold)
        return split

    def _grow(self, leaf: int, split: Split, below: NDArray[np.bool_]) -> None:
        """Turn a leaf into a branch; `below` marks its experience samples that go left."""
        parent = self.leaves[leaf]
        branch, experiences = parent.node, np.array(parent.experiences)
        right = self._add_leaf(parent.depth + 1)
        left = self._add_node(leaf)
        self._nodes["feature"][branch] = split.feature
        self._nodes["threshold"][branch] = split.threshold
        self._nodes["children"][branch] = self.leaves[right].node, left
        self.leaves[right].experiences = experiences[~below].tolist()
        self.leaves[leaf] = Leaf(left, parent.depth + 1, experiences[below].tolist())
        self.rules.append(Rule(leaf, split))
        self._part(leaf, right, split)

    def _part(self, leaf: int, right: int, split: Split) -> None:
        """Move the frontier samples of a split leaf with x >= c to the right child."""
        rows = self.pool.rows(leaf)
        x = self._view(self._features(rows))
        above = x[:, split.feature] >= split.threshold
        self.pool.keep(leaf, ~above)
        self.pool.extend(right, rows[above])

    def _add_leaf(self, depth: int) -> int:
        leaf = self.pool.add_leaf()
        self._depth = max(self._depth, depth)
        self.leaves.append(Leaf(self._add_node(leaf), depth, []))
        return leaf

    def _add_node(self, leaf: int) -> int:
        node: int = self._nodes.extend(1).start
        self._nodes["leaf"][node] = leaf
        self._nodes["children"][node] = node
        return node


def best_split(
    x: NDArray[np.float32], rewards: NDArray[np.float32], min_share: float = 0.0
) -> Split | None:
    """Return the split of experience samples with the highest positive VR, or None (P 2.6).

    `x` [n, features], `rewards` [n]. Thresholds lie midway between neighbouring values. Among equal
    reductions, the lowest threshold of the first feature wins. Each side keeps at least the share
    `min_share` of the samples.
    """
    count = len(rewards)
    if np.var(rewards, dtype=np.float64) <= _NOISE:
        return None
    order = np.argsort(x, axis=0, kind="stable")
    values = np.take_along_axis(x, order, axis=0)
    sums = np.cumsum(rewards[order], axis=0, dtype=np.float64)
    squares = np.cumsum(np.square(rewards[order]), axis=0, dtype=np.float64)
    n_left = np.arange(1, count)[:, None]
    n_right = count - n_left
    # n V = sum of squares - squared sum / n; row i is the cut after the i + 1 lowest values
    left = squares[:-1] - sums[:-1] ** 2 / n_left
    right = (squares[-1] - squares[:-1]) - (sums[-1] - sums[:-1]) ** 2 / n_right
    whole = squares[-1] - sums[-1] ** 2 / count
    reduction = (whole - left - right) / count
    possible = (values[:-1] < values[1:]) & (np.minimum(n_left, n_right) >= min_share * count)
    reduction = np.where(possible, reduction, -np.inf).T  # [features, n - 1]
    best, cut = np.unravel_index(np.argmax(reduction), reduction.shape)
    if not reduction[best, cut] > _NOISE:
        return None
    threshold = _between(values[cut, best], values[cut + 1, best])
    return Split(int(best), threshold, float(reduction[best, cut]))


def _between(low: np.float32, high: np.float32) -> float:
    """Return a float32 c with low < c <= high, the middle if float32 can represent it."""
    middle = np.float32((float(low) + float(high)) / 2)
    return float(middle if low < middle else high)
