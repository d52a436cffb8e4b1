import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tres_scrapy.config.limit import Cap
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.queue import Shortlist
from tres_scrapy.frontier.store import NO_PARENT, Eligibility, SampleStore

HOSTS = ["a.test", "b.test", "c.test"]
SIZE = 8
ENOUGH = SIZE // 4  # so many of the best are always in the list
RATINGS = st.integers(0, 1000).map(lambda number: number / 1000)


def add(store, urls):
    none = np.zeros((len(urls), 3), dtype=np.float32)
    return store.add(NO_PARENT, Outlinks(urls, [""] * len(urls), none))


def rate(store, rows, values):
    store["probability"][rows] = np.array(values, dtype=np.float32)


class ShortlistEqualsSorting(RuleBasedStateMachine):
    """The list, compared with sorting all samples that can be fetched."""

    def __init__(self):
        super().__init__()
        self.store = SampleStore(DomainLedger(Cap(12, 12)))
        self.list = Shortlist(self.store, SIZE)

    @rule(ratings=st.lists(RATINGS, max_size=12), host=st.sampled_from(HOSTS))
    def add(self, ratings, host):
        first = len(self.store)
        rows = add(self.store, [f"http://{host}/{first + i}" for i in range(len(ratings))])
        rate(self.store, rows, ratings[: len(rows)])
        self.list.offer(rows)

    @rule(data=st.data())
    def rate_again(self, data):
        pending = self.store.pending_rows().tolist()
        rows = data.draw(st.lists(st.sampled_from(pending), unique=True)) if pending else []
        ratings = data.draw(st.lists(RATINGS, min_size=len(rows), max_size=len(rows)))
        rate(self.store, np.array(rows, dtype=np.int64), ratings)
        self.list.offer(np.array(rows, dtype=np.int64))

    @rule(share=st.sampled_from([0.1, 0.5]))
    def rate_all_lower(self, share):
        rows = self.store.pending_rows()
        rate(self.store, rows, share * self.store["probability"].take(rows))
        self.list.offer(rows)

    @rule(best=st.booleans(), data=st.data())
    def fetch(self, best, data):
        ready = self.ready()
        if not ready:
            return
        row = ready[0] if best else data.draw(st.sampled_from(ready))
        self.store.lease(row)
        self.store.ledger.book_page(self.store["domain"][row], 0.0)
        self.store.finish(row)

    def ready(self, busy=()):
        """Return all ready rows, the best first."""
        rows = self.store.pending_rows()
        rows = rows[self.store.eligibility(rows, Availability(busy)) == Eligibility.READY]
        return rows[np.argsort(-self.store["probability"].take(rows))].tolist()

    @invariant()
    def the_best_are_listed(self):
        listed, best = self.list.ready().tolist(), self.ready()
        assert len(listed) <= 2 * SIZE
        assert set(listed) <= set(best)
        assert len(set(listed)) == len(listed)
        every = np.arange(len(self.store))
        assert set(every[self.list.has(every)].tolist()) >= set(listed)
        assert self.list.has(every).sum() <= 2 * SIZE
        values = self.values(listed)
        enough = min(ENOUGH, len(best))
        assert values[:enough] == self.values(best)[:enough]

    @invariant()
    def busy_ones_wait(self):
        busy = [
            self.store.hosts.names.index(host)
            for host in HOSTS[:2]
            if host in self.store.hosts.names
        ]
        listed = self.list.ready(Availability(busy)).tolist()
        assert set(listed) <= set(self.ready(busy))
        assert set(self.list.ready().tolist()) >= set(listed)

    def values(self, rows):
        rated = self.store["probability"].take(np.array(rows, dtype=np.int64))
        return sorted(rated.tolist(), reverse=True)


TestShortlistEqualsSorting = ShortlistEqualsSorting.TestCase


def full_list(values, cap=None):
    store = SampleStore(DomainLedger(cap))
    rows = add(store, [f"http://{i % 2}.test/{i}" for i in range(len(values))])
    rate(store, rows, values)
    shortlist = Shortlist(store, SIZE)
    shortlist.offer(rows)
    return store, shortlist


@pytest.mark.parametrize("count", [3, 2 * SIZE, 2 * SIZE + 1, 200])
def test_list_holds_the_best(count):
    values = np.random.default_rng(0).permutation(count) / count
    _, shortlist = full_list(values)
    kept = count if count <= 2 * SIZE else SIZE
    assert sorted(shortlist.ready()) == np.sort(np.argsort(-values)[:kept]).tolist()


def test_dead_samples_do_not_fill_the_list():
    """The best links of a domain that has MAX pages would hide all others."""
    values = np.linspace(1, 0.1, 100) - np.arange(100) % 2 * 0.05
    store, shortlist = full_list(values, Cap(1, 1))
    store.ledger.book_page(store["domain"][0], 1.0)
    listed = shortlist.ready()
    assert len(listed) >= ENOUGH
    assert set((listed % 2).tolist()) == {1}
    asked, pending_rows = [], store.pending_rows
    store.pending_rows = lambda: asked.append(1) or pending_rows()
    shortlist.ready()
    assert not asked, "the list is not filled at each choice"


def test_sunk_samples_do_not_lower_the_bar():
    store, shortlist = full_list(np.linspace(0.9, 0.1, 100))
    new = add(store, [f"http://new.test/{i}" for i in range(SIZE + 1)])
    rate(store, new, np.full(SIZE + 1, 0.99))
    shortlist.offer(new[:SIZE])
    sunk = shortlist.ready()
    assert len(sunk) == 2 * SIZE
    rate(store, sunk, np.full(2 * SIZE, 0.05))
    shortlist.offer(new[SIZE:])
    store.lease(int(new[SIZE]))
    assert sorted(shortlist.ready()) == list(range(SIZE, 2 * SIZE))


def test_list_is_filled_when_it_has_sunk():
    store, shortlist = full_list(np.linspace(1, 0.1, 100))
    rows = shortlist.ready()
    assert rows.tolist() == list(range(SIZE))
    rate(store, rows, np.full(SIZE, 0.05))
    shortlist.offer(rows)
    assert sorted(shortlist.ready()) == list(range(SIZE, 2 * SIZE))
