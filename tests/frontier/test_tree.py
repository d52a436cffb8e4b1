import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tres_scrapy.config.learning import TreeOptions
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.tree import TreeFrontier, best_split

VALUES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
SIZE = len(FEATURES)
VECTOR = st.lists(VALUES, min_size=SIZE, max_size=SIZE)


class ObviousTree:
    """Algorithm 3 with nested lists and no arrays: the slow reference."""

    def __init__(self, options):
        self.options = options
        self.root = {"depth": 0, "experiences": [], "rows": []}

    def leaf(self, x):
        node = self.root
        while "split" in node:
            split = node["split"]
            node = node["left"] if x[split.feature] < split.threshold else node["right"]
        return node

    def add_experience(self, x, reward):
        node = self.leaf(x)
        node["experiences"].append((x, reward))
        if len(node["experiences"]) < self.options.min_samples:
            return
        if node["depth"] == self.options.max_depth:
            return
        xs, rewards = map(np.array, zip(*node["experiences"], strict=True))
        split = best_split(xs, rewards.astype(np.float32), self.options.min_share)
        if split is None:
            return
        for name in ("left", "right"):
            node[name] = {"depth": node["depth"] + 1, "experiences": [], "rows": []}
        node["split"] = split
        for sample in node.pop("experiences"):
            self.leaf(sample[0])["experiences"].append(sample)
        for sample in node.pop("rows"):
            self.leaf(sample[0])["rows"].append(sample)

    def insert(self, row, x):
        self.leaf(x)["rows"].append((x, row))

    def leaves(self, node=None):
        node = node or self.root
        if "split" in node:
            return self.leaves(node["left"]) + self.leaves(node["right"])
        rows = sorted(row for _, row in node["rows"])
        return [(sorted(reward for _, reward in node["experiences"]), rows)]


def tree_over(vectors, **options):
    """A tree whose row i has the vector i of a list that may still grow."""
    return TreeFrontier(
        lambda rows: np.array([vectors[row] for row in rows], dtype=np.float32).reshape(-1, SIZE),
        TreeOptions(**options),
    )


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("experience"), VECTOR, st.booleans()),
            st.tuples(st.just("frontier"), st.lists(VECTOR, max_size=6), st.none()),
        ),
        max_size=80,
    ),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.2]),
)
def test_equals_the_obvious_tree(events, max_depth, min_share):
    vectors = []
    tree = tree_over(vectors, max_depth=max_depth, min_samples=3, min_share=min_share)
    reference = ObviousTree(tree.options)
    for kind, payload, reward in events:
        if kind == "experience":
            x = np.array(payload, dtype=np.float32)
            tree.add_experience(x, float(reward))
            reference.add_experience(x, float(reward))
        else:
            rows = np.arange(len(vectors), len(vectors) + len(payload))
            vectors.extend(np.array(x, dtype=np.float32) for x in payload)
            tree.insert(rows)
            for row in rows:
                reference.insert(int(row), vectors[row])
    leaves = [
        (sorted(tree.rewards(leaf).tolist()), sorted(tree.pool.rows(leaf).tolist()))
        for leaf in range(len(tree))
    ]
    assert sorted(leaves) == sorted(reference.leaves())


def test_only_touched_leaf_may_split():
    tree = tree_over([], min_samples=2)
    low, high = np.zeros(SIZE, dtype=np.float32), np.ones(SIZE, dtype=np.float32)
    assert tree.add_experience(low, 0.0) is None
    assert tree.add_experience(high, 1.0) is not None
    assert tree.splits == 1
    assert tree.add_experience(high, 1.0) is None
    assert [tree.rewards(leaf).tolist() for leaf in range(2)] == [[0.0], [1.0, 1.0]]


def test_split_uses_features_of_now():
    vectors = [np.zeros(SIZE), np.zeros(SIZE)]
    tree = tree_over(vectors, min_samples=2)
    tree.insert(np.array([0, 1]))
    vectors[1] = np.ones(SIZE)  # a live feature has moved since
    tree.add_experience(np.zeros(SIZE, dtype=np.float32), 0.0)
    tree.add_experience(np.ones(SIZE, dtype=np.float32), 1.0)
    assert [tree.pool.rows(leaf).tolist() for leaf in range(2)] == [[0], [1]]


def test_depth_is_limited():
    tree = tree_over([], max_depth=1, min_samples=2)
    for i in range(8):
        x = np.full(SIZE, i / 8, dtype=np.float32)
        tree.add_experience(x, float(i % 2))
    assert len(tree) == 2


def test_buckets_hide_differences_within_a_tenth():
    low, high = np.zeros(SIZE, dtype=np.float32), np.zeros(SIZE, dtype=np.float32)
    low[6], high[6] = 0.51, 0.59
    for bucketed, leaves in ((False, 2), (True, 1)):
        tree = tree_over([], min_samples=2, bucketed=bucketed)
        tree.add_experience(low, 0.0)
        tree.add_experience(high, 1.0)
        assert len(tree) == leaves


def test_empty_insert_is_allowed():
    tree = tree_over([])
    tree.insert(np.zeros(0, dtype=np.int64))
    assert len(tree.pool) == 0


@pytest.mark.parametrize("count", [1, 4])
def test_small_root_does_not_split(count):
    tree = tree_over([])
    for i in range(count):
        tree.add_experience(np.full(SIZE, i, dtype=np.float32), float(i % 2))
    assert len(tree) == 1
