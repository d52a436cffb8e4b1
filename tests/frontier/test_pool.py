import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tres_scrapy.frontier.sampling import LeafPool


class PoolEqualsLists(RuleBasedStateMachine):
    """The pool, compared with a list of lists."""

    def __init__(self):
        super().__init__()
        self.pool = LeafPool(capacity=4)
        self.lists = []
        self.next_row = 0

    @rule()
    def add_leaf(self):
        assert self.pool.add_leaf() == len(self.lists)
        self.lists.append([])

    @precondition(lambda self: self.lists)
    @rule(data=st.data(), count=st.integers(0, 20))
    def extend(self, data, count):
        leaf = data.draw(st.integers(0, len(self.lists) - 1))
        rows = np.arange(self.next_row, self.next_row + count)
        self.next_row += count
        self.pool.extend(leaf, rows)
        self.lists[leaf].extend(rows.tolist())

    @precondition(lambda self: any(self.lists))
    @rule(data=st.data())
    def remove(self, data):
        leaf = data.draw(st.sampled_from([i for i, rows in enumerate(self.lists) if rows]))
        position = data.draw(st.integers(0, len(self.lists[leaf]) - 1))
        self.pool.remove(leaf, position)
        self.lists[leaf][position] = self.lists[leaf][-1]
        self.lists[leaf].pop()

    @precondition(lambda self: any(self.lists))
    @rule(data=st.data())
    def discard(self, data):
        """Rows may have moved since they were drawn, so any position may be given."""
        leaf = data.draw(st.sampled_from([i for i, rows in enumerate(self.lists) if rows]))
        row = data.draw(st.sampled_from(self.lists[leaf]))
        true = self.lists[leaf].index(row)
        drawn = data.draw(st.just(true) | st.integers(0, len(self.lists[leaf]) + 3))
        self.pool.discard(leaf, row, drawn)
        self.lists[leaf][true] = self.lists[leaf][-1]
        self.lists[leaf].pop()

    @precondition(lambda self: self.lists)
    @rule(data=st.data(), position=st.integers(0, 5))
    def discard_nothing(self, data, position):
        leaf = data.draw(st.integers(0, len(self.lists) - 1))
        with pytest.raises(ValueError, match="is not in leaf"):
            self.pool.discard(leaf, self.next_row, position)

    @precondition(lambda self: self.lists)
    @rule(data=st.data())
    def keep(self, data):
        leaf = data.draw(st.integers(0, len(self.lists) - 1))
        size = len(self.lists[leaf])
        kept = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
        self.pool.keep(leaf, np.array(kept, dtype=bool))
        self.lists[leaf] = [row for row, keep in zip(self.lists[leaf], kept, strict=True) if keep]

    @invariant()
    def holds_the_same_rows(self):
        assert [self.pool.rows(leaf).tolist() for leaf in range(len(self.lists))] == self.lists
        assert len(self.pool) == sum(map(len, self.lists))
        assert self.pool.occupied().tolist() == [i for i, rows in enumerate(self.lists) if rows]

    @invariant()
    def draws_a_row_of_each_leaf(self):
        leaves = self.pool.occupied()
        positions, rows = self.pool.draw(leaves, np.random.default_rng(0))
        for leaf, position, row in zip(leaves, positions, rows, strict=True):
            assert self.lists[leaf][position] == row


TestPoolEqualsLists = PoolEqualsLists.TestCase


def test_draw_is_uniform_within_a_leaf():
    pool = LeafPool()
    leaf = pool.add_leaf()
    pool.extend(leaf, np.arange(4))
    random = np.random.default_rng(1)
    drawn = [int(pool.draw(pool.occupied(), random)[1][0]) for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(drawn) / 4000, 0.25, atol=0.03)
