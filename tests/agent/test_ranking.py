"""One ranking for a few choices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_link_choice import CueWeb

from tres_scrapy.agent import tres
from tres_scrapy.agent.ddqn import learns_at
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.tres import MIN_GAIN, PAGES_A_CHOICE, Ranking
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

HOSTS = ["a.test", "www.a.test", "b.test", "c.test", "d.test"]
NUMBERS = st.integers(0, len(HOSTS) - 1)
MANY = 20  # pages under way


def store_of(urls, under_way=0):
    """Return a store with links, and more of other domains, of which so many are under way."""
    store = SampleStore(DomainLedger())
    others = [f"http://other{number}.test/" for number in range(under_way)]
    urls = [*urls, *others]
    rows = store.add(NO_PARENT, Outlinks(urls, urls, np.zeros((len(urls), 3), "f4")))
    for row in rows[len(urls) - under_way :].tolist():
        store.lease(row)
    return store, rows[: len(urls) - under_way]


def ranking_of(rows, bounds, *, further=1):
    bounds = np.array(bounds, dtype=np.float32)
    return Ranking(
        0, rows % 3, rows, bounds / 2, bounds, np.ones(len(rows), dtype=bool), -np.inf, further
    )


@given(st.data(), st.lists(NUMBERS, min_size=1, max_size=12), st.lists(NUMBERS), st.lists(NUMBERS))
def test_after_equals_a_loop(data, hosts, busy, soon):
    urls = [f"http://{HOSTS[host]}/{number}" for number, host in enumerate(hosts)]
    store, rows = store_of(urls, MANY)
    size = len(hosts)
    bounds = data.draw(st.lists(st.sampled_from([0.0, 0.05, 0.5]), min_size=size, max_size=size))
    chosen, *leased = data.draw(st.lists(st.sampled_from(rows.tolist()), min_size=1, unique=True))
    for row in (chosen, *leased):
        store.lease(row)
    busy, soon = (
        [store.hosts.find(HOSTS[each]) for each in some if each in hosts] for some in (busy, soon)
    )
    left = [row for row in rows.tolist() if row not in {chosen, *leased}]
    free = [row for row in left if store["host"][row] not in busy]
    ready = [row for row in free if store["domain"][row] != store["domain"][chosen]]
    found = ranking_of(rows, bounds).after(store, chosen, Availability(busy, soon))
    if not ready or max(bounds[r] for r in free) > max(bounds[r] for r in ready) + MIN_GAIN:
        assert found is None
        return
    assert rows[found.ready].tolist() == ready
    assert found.best({}) in ready
    assert bounds[found.best({})] == max(bounds[row] for row in ready)
    later = [bounds[row] for row in left if store["host"][row] in soon]
    assert found.later == np.float32(max(later, default=-np.inf))
    assert found.domains == (store["domain"][chosen],)
    assert found.after(store, ready[0]) is None, "it has served its choices"


def test_ranking_remembers_its_domains():
    store, rows = store_of(["http://a.test/1", "http://b.test/", "http://a.test/2"], MANY)
    ranking = ranking_of(rows, [0.5, 0.5, 0.5], further=3)
    store.lease(0)
    ranking = ranking.after(store, 0)
    store.lease(1)
    assert ranking.best({}) == 1
    assert ranking.after(store, 1) is None, "only a link of the first domain is left"


def test_priority_chooses_between_equals():
    _, rows = store_of([f"http://{name}.test/" for name in "abcd"], MANY)
    ranking = ranking_of(rows, [0.4, 0.5, 0.5, 0.5])
    assert [ranking.best(each) for each in ({}, {0: 9}, {2: 1, 3: 1}, {1: -1})] == [1, 1, 2, 2]


def test_few_pages_under_way_need_no_ranking():
    store, rows = store_of(["http://a.test/", "http://b.test/"], PAGES_A_CHOICE - 2)
    store.lease(0)
    assert ranking_of(rows, [0.5, 0.5]).after(store, 0) is None
    store, rows = store_of(["http://a.test/", "http://b.test/"], PAGES_A_CHOICE - 1)
    store.lease(0)
    assert ranking_of(rows, [0.5, 0.5]).after(store, 0) is not None


@pytest.mark.parametrize("under_way", [1, PAGES_A_CHOICE, 5 * PAGES_A_CHOICE])
def test_pages_under_way_share_a_ranking(monkeypatch, under_way):
    monkeypatch.setattr("tres_scrapy.agent.tres.MIN_GAIN", np.inf)
    web, drawings = CueWeb(), []
    draw = tres.representatives
    monkeypatch.setattr(
        tres, "representatives", lambda *args, **more: drawings.append(1) or draw(*args, **more)
    )
    web.run(40)
    leased = [web.crawl.next().row for _ in range(under_way)]
    assert web.store.ledger.leased == web.crawl.leased == under_way
    drawings.clear()
    chosen = []
    for _ in range(60):
        web.book(leased.pop(0))
        chosen.append(web.crawl.next().row)
        leased.append(chosen[-1])
    served = 1 + (under_way - 1) // PAGES_A_CHOICE
    assert len(drawings) == pytest.approx(60 / served, abs=1)
    assert len(set(chosen)) == len(chosen)


def test_choices_of_a_ranking_go_to_different_domains(monkeypatch):
    monkeypatch.setattr("tres_scrapy.agent.tres.MIN_GAIN", np.inf)
    drawings = []
    draw = tres.representatives
    monkeypatch.setattr(
        tres, "representatives", lambda *args, **more: drawings.append(1) or draw(*args, **more)
    )
    web = CueWeb()
    web.run(40)
    domains, shared = set(), 0
    for _ in range(20):
        before = len(drawings)
        domain = int(web.store["domain"][web.crawl.next().row])
        if len(drawings) == before:
            shared += 1
            assert domain not in domains
            domains.add(domain)
        else:
            domains = {domain}
    assert shared > 5


def policy_over(urls, anchors):
    """Return a policy over links whose anchors have given P(relevant); many are under way."""
    store, _ = store_of([], MANY)
    policy = make_policy("tres", store, PolicyInputs(learning=LearningOptions(breadth=0.0)))
    add(store, policy, urls, anchors)
    return store, policy


def add(store, policy, urls, anchors):
    actions = np.zeros((len(urls), 3), dtype=np.float32)
    actions[:, 2] = anchors
    policy.readmit(store.add(NO_PARENT, Outlinks(urls, [""] * len(urls), actions)))


def chosen_by(store, policy, count):
    found = []
    for _ in range(count):
        decision = policy.select()
        found.append(store.url(decision.row).split("/")[2])
        store.lease(decision.row)
    return found


def test_much_better_links_of_one_domain_are_all_taken():
    good = [f"http://h{number}.good.test/" for number in range(6)]
    bad = [f"http://bad{number}.test/" for number in range(6)]
    store, policy = policy_over([*bad, *good], [0.0] * 6 + [1.0] * 6)
    assert all(host.endswith("good.test") for host in chosen_by(store, policy, 6))


def test_patient_crawl_waits_for_the_domain_of_a_ranking():
    """The host of the best links rests after each request; links elsewhere are worth less."""
    good = [f"http://good.test/{number}" for number in range(6)]
    bad = [f"http://bad{number}.test/" for number in range(6)]
    store, policy = policy_over([*bad, *good], [0.0] * 6 + [1.0] * 6)
    assert chosen_by(store, policy, 1) == ["good.test"]
    host = store.hosts.find("good.test")
    assert policy.select(Availability([host], [host])) is None
    assert chosen_by(store, policy, 1) == ["good.test"]


def test_new_links_end_a_ranking():
    hosts = [f"http://host{number}.test/" for number in range(6)]
    store, policy = policy_over(hosts, [0.0] * 6)
    chosen_by(store, policy, 1)
    add(store, policy, ["http://good.test/"], [1.0])
    assert chosen_by(store, policy, 1) == ["good.test"]


@pytest.mark.parametrize(("starts", "period", "expected"), [(0, 1, 12), (5, 1, 8), (5, 3, 3)])
def test_gradient_steps_are_due(starts, period, expected):
    options = LearningOptions(learning_starts=starts, update_period=period)
    assert sum(learns_at(options, step) for step in range(1, 13)) == expected
