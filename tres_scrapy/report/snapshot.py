"""What a policy has learned, small enough to be kept in a record now and then."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.crawl.policy import Policy, Valuing
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.tree import TreeFrontier

TREE, DEPENDENCE = "tree", "dependence"
_GRID: Final = np.linspace(0, 1, 21)
_GRIDS: Final = {  # of the features that take a few values
    "parent_reward": np.array([0.0, 1.0]),
    "path_closeness": np.array([0.1, 0.125, 0.2, 0.25, 1 / 3, 0.5, 1.0]),
    "keyword_in_url": np.array([0.0, 1.0]),
    "keyword_in_anchor": np.array([0.0, 1.0]),
    "domain_known": np.array([0.5, 1.0]),
}


def tree_of(policy: Policy) -> TreeFrontier | None:
    """Return the Tree-Frontier of a policy that has one."""
    tree = getattr(policy, "tree", None)
    return tree if isinstance(tree, TreeFrontier) else None


def picture_of(tree: TreeFrontier) -> dict[str, Any]:
    """Return the number of splits and of each leaf its experiences, their reward, its samples."""
    samples = tree.pool.sizes().tolist()
    leaves = [
        (len(leaf.experiences), float(tree.rewards(number).sum()), samples[number])
        for number, leaf in enumerate(tree.leaves)
    ]
    return {"splits": tree.splits, "leaves": leaves}


def dependence(policy: Valuing, x: NDArray[np.float32]) -> dict[str, list[tuple[float, float]]]:
    """Return by feature (value, mean Q): the feature set to the value in all of x [n, 8]."""
    grids = [_GRIDS.get(name, _GRID) for name in FEATURES]
    asked = [_set(x, feature, grid) for feature, grid in enumerate(grids)]
    values = policy.value(np.concatenate(asked)).reshape(-1, len(x)).mean(axis=1)
    parts = np.split(values, np.cumsum([len(grid) for grid in grids])[:-1])
    return {
        name: list(zip(grid.tolist(), part.tolist(), strict=True))
        for name, grid, part in zip(FEATURES, grids, parts, strict=True)
    }


def _set(x: NDArray[np.float32], feature: int, grid: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return x [n, 8] once for each value of the grid, [len(grid) * n, 8]."""
    repeated = np.tile(x, (len(grid), 1))
    repeated[:, feature] = np.repeat(grid, len(x))
    return repeated
