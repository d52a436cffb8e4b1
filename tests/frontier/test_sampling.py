import math
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.config.limit import Cap
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.sampling import LeafPool, counts, representatives
from tres_scrapy.frontier.store import NO_PARENT, SampleStore, State


def frontier(urls_by_leaf, cap=None):
    """A store and a pool whose leaves hold samples of the given URLs, rows in order."""
    store, pool = SampleStore(DomainLedger(cap)), LeafPool()
    for urls in urls_by_leaf:
        actions = np.zeros((len(urls), 3), dtype=np.float32)
        pool.extend(pool.add_leaf(), store.add(NO_PARENT, Outlinks(urls, urls, actions)))
    return store, pool


def draw(store, pool, busy=(), seed=0, each=1):
    return representatives(pool, store, np.random.default_rng(seed), Availability(busy), each=each)


def test_one_of_each_non_empty_leaf():
    store, pool = frontier([["http://a.test/"], [], ["http://b.test/", "http://c.test/"]])
    drawn = draw(store, pool)
    assert drawn.leaves.tolist() == [0, 2]
    assert drawn.rows[0] == 0
    assert drawn.rows[1] in {1, 2}
    assert len(pool) == 3, "representatives stay, only the chosen one leaves"


def test_leaf_draw_is_uniform():
    urls = [f"http://a.test/{i}" for i in range(6)]
    counts = Counter()
    for seed in range(1500):
        store, pool = frontier([urls])
        store.lease(0)
        pool.remove(0, 0)
        other = store.add(
            NO_PARENT, Outlinks(urls[1:], urls[1:], np.zeros((5, 3), dtype=np.float32))
        )
        store.lease(int(other[0]))  # closes the URL of row 1, which is in the pool
        counts[int(draw(store, pool, seed=seed).rows[0])] += 1
    assert set(counts) == {2, 3, 4, 5}
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_dead_samples_are_dropped_once():
    store, pool = frontier([["http://a.test/1", "http://a.test/2"]], Cap(1, 1))
    store.ledger.book_page(store["domain"][0], 1.0)
    assert draw(store, pool).rows.tolist() == []
    assert len(pool) == 0
    assert [store["state"][row] for row in (0, 1)] == [State.DONE] * 2
    assert store.pending == 0


@pytest.mark.parametrize("seed", range(20))
def test_ready_sample_is_always_found(seed):
    urls = [f"http://slow.test/{i}" for i in range(200)]
    store, pool = frontier([[*urls, "http://free.test/"], urls])
    busy = [store.hosts.names.index("slow.test")]
    drawn = draw(store, pool, busy, seed)
    assert drawn.leaves.tolist() == [0]
    assert drawn.rows.tolist() == [200]
    assert len(pool) == 401, "what is busy stays"


def test_busy_leaf_waits():
    store, pool = frontier([["http://slow.test/"], ["http://free.test/"]])
    assert draw(store, pool, [store.hosts.names.index("slow.test")]).leaves.tolist() == [1]


@pytest.mark.parametrize("each", [1, 3])
def test_every_leaf_gives_its_share(each):
    store, pool = frontier([[f"http://a.test/{leaf}/{i}" for i in range(9)] for leaf in range(5)])
    store.lease(0)
    drawn = draw(store, pool, each=each)
    assert Counter(drawn.leaves.tolist()) == dict.fromkeys(range(5), each)
    for leaf, row, position in zip(*drawn, strict=True):
        assert pool.rows(leaf)[position] == row


@given(st.lists(st.integers(1, 10**6), min_size=1), st.integers(2, 9), st.integers(0, 500))
def test_big_leaves_give_more(sizes, each, most):
    found = counts(np.array(sizes), each, most)
    wished = [max(each, math.ceil(math.sqrt(size))) for size in sizes]
    if sum(wished) <= most:
        assert found.tolist() == wished
    assert found.min() >= 1
    assert found.sum() <= max(most, len(sizes))
    assert [found[i] for i in np.argsort(sizes)] == sorted(found)


def test_paper_takes_one_per_leaf():
    assert counts(np.array([1, 10**6]), 1, 10).tolist() == [1, 1]


@given(
    dead=st.lists(st.lists(st.booleans(), max_size=9), max_size=4),
    each=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_only_dead_samples_are_dropped(dead, each, seed):
    urls = [[f"http://a.test/{leaf}/{i}" for i in range(len(d))] for leaf, d in enumerate(dead)]
    store, pool = frontier(urls)
    flat = np.array([flag for flags in dead for flag in flags], dtype=bool)
    closed = [url for url, flag in zip(chain.from_iterable(urls), flat, strict=True) if flag]
    others = store.add(
        NO_PARENT, Outlinks(closed, closed, np.zeros((len(closed), 3), dtype=np.float32))
    )
    for row in others.tolist():
        store.lease(row)  # closes the URL of the row that is in the pool
    drawn = draw(store, pool, seed=seed, each=each)
    held = [row for leaf in range(len(dead)) for row in pool.rows(leaf).tolist()]
    assert len(held) == len(set(held)) == store.pending
    assert set(np.flatnonzero(~flat)) <= set(held)
    assert not flat[drawn.rows].any()
    each_size = zip(
        counts(np.array([len(flags) for flags in dead]), each, math.inf), dead, strict=True
    )
    alive = {leaf: n for leaf, (n, flags) in enumerate(each_size) if not all(flags)}
    assert Counter(drawn.leaves.tolist()) == alive
    for leaf, flags in enumerate(dead):
        if all(flags):
            assert not len(pool.rows(leaf))
    for number in np.unique(drawn.rows, return_index=True)[1].tolist():
        leaf, row = drawn.take(number, pool)
        held.remove(row)
        assert row not in pool.rows(leaf)
    assert sorted(held) == sorted(row for leaf in range(len(dead)) for row in pool.rows(leaf))
