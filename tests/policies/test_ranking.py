"""One ranking for a few choices."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_link_choice import CueWeb

from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.outlink import Outlinks
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.policies import tres
from tres_scrapy.policies.ranking import SHARE, Ranking

HOSTS = ["a.test", "www.a.test", "b.test", "c.test", "d.test"]
NUMBERS = st.integers(0, len(HOSTS) - 1)


def ranking_of(rows, bounds, *, further=1):
    bounds = np.array(bounds, dtype=np.float32)
    return Ranking(0, rows % 3, rows, bounds / 2, bounds, -np.inf, further)


def store_of(hosts):
    store = SampleStore(DomainLedger())
    urls = [f"http://{HOSTS[host]}/{number}" for number, host in enumerate(hosts)]
    return store, store.add(NO_PARENT, Outlinks(urls, urls, np.zeros((len(urls), 3), "f4")))


@given(st.data(), st.lists(NUMBERS, min_size=1, max_size=12), st.lists(NUMBERS), st.lists(NUMBERS))
def test_rest_equals_a_loop(data, hosts, busy, soon):
    store, rows = store_of(hosts)
    bounds = data.draw(
        st.lists(st.floats(-1, 1, width=32), min_size=len(hosts), max_size=len(hosts))
    )
    chosen, *leased = data.draw(st.lists(st.sampled_from(rows.tolist()), min_size=1, unique=True))
    for row in (chosen, *leased):
        store.lease(row)
    busy, soon = (
        [store.host_number(HOSTS[each]) for each in some if each in hosts] for some in (busy, soon)
    )
    other = [row for row in rows.tolist() if store.domain(row) != store.domain(chosen)]
    left = [row for row in other if row not in leased and store.host(row) not in busy]
    found = ranking_of(rows, bounds).rest(store, chosen, busy, soon)
    if not left:
        assert found is None
        return
    assert found.rows.tolist() == left
    assert found.bounds.tolist() == [bounds[row] for row in left]
    assert found.q_values.tolist() == [bounds[row] / 2 for row in left]
    assert found.leaves.tolist() == [row % 3 for row in left]
    assert found.later == max((bounds[r] for r in other if store.host(r) in soon), default=-np.inf)
    assert found.further == 0
    assert found.rest(store, left[0]) is None, "it has served its choices"


def test_a_link_may_be_in_a_ranking_twice():
    store, rows = store_of([0, 2])
    store.lease(0)
    rest = ranking_of(np.concatenate([rows, rows]), np.arange(4)).rest(store, 0)
    assert rest.rows.tolist() == [1, 1]


@pytest.mark.parametrize("under_way", [1, SHARE, 5 * SHARE])
def test_pages_under_way_share_a_ranking(monkeypatch, under_way):
    web, drawings = CueWeb(), []
    draw = tres.representatives
    monkeypatch.setattr(
        tres, "representatives", lambda *args, **more: drawings.append(1) or draw(*args, **more)
    )
    leased = []
    web.run(40)
    while len(leased) < under_way:
        leased.append(web.crawl.next().row)
    drawings.clear()
    chosen = []
    for _ in range(60):
        web.book(leased.pop(0))
        chosen.append(web.crawl.next().row)
        leased.append(chosen[-1])
    served = 1 + (under_way - 1) // SHARE
    assert len(drawings) == pytest.approx(60 / served, abs=1)
    assert len(set(chosen)) == len(chosen)


def test_choices_of_a_ranking_go_to_different_domains():
    web = CueWeb()
    web.run(40)
    decisions = [web.crawl.next() for _ in range(20)]
    shared = 0
    for before, decision in itertools.pairwise(decisions):
        if set(decision.choice.rows) < set(before.choice.rows):
            shared += 1
            assert web.store.domain(decision.row) != web.store.domain(before.row)
    assert shared > 5
