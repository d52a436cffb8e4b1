"""The choices of TRES with the link model."""

import numpy as np
import pytest
from judged import judged

from tres_scrapy.agent import tres
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import ACTION, LINK
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore, State
from tres_scrapy.links.code import CueGroup, RaggedArray, coded

GOOD, BAD = (coded(CueGroup.ANCHOR, [word])[0] for word in ("leek", "login"))
HOSTS = 12
FEW_UPDATES = LearningOptions(update_period=10, batch_size=16)


class CueWeb:
    """Pages whose relevance shows in what their links say, and in no other feature."""

    def __init__(self, name="tres", *, seed=0, cap=None, link_model=True, learning=FEW_UPDATES):
        self.store = SampleStore(DomainLedger(cap))
        setup = PolicyInputs(seed, learning=learning, links=LinkOptions(enabled=link_model))
        self.crawl = Crawl(self.store, make_policy(name, self.store, setup))
        self.policy = self.crawl.policy
        self.bookings = []
        none = np.zeros((1, 3), dtype=np.float32)
        self.crawl.add_seeds(Outlinks(["http://h0.test/good"], [""], none))

    def run(self, pages, book=None):
        """Crawl a number of pages; return the decisions."""
        decisions = []
        while len(decisions) < pages and (decision := self.crawl.next()) is not None:
            decisions.append(decision)
            (book or self.book)(decision.row)
        return decisions

    def book(self, row, *, relevant=None, links=8):
        random = np.random.default_rng(row)
        hosts, good = random.integers(HOSTS, size=links), random.random(links) < 0.3
        urls = [
            f"http://h{host}.test/{row}-{i}{'x' * is_good}"
            for i, (host, is_good) in enumerate(zip(hosts, good.tolist(), strict=True))
        ]
        actions = random.random((links, 3)).astype(np.float32)
        cues = RaggedArray.of([[GOOD if is_good else BAD] for is_good in good])
        if relevant is None:
            relevant = self.is_relevant(row)
        outlinks = Outlinks(urls, urls, actions, cues)
        self.bookings.append(self.crawl.book(row, judged(relevant), outlinks))

    def is_relevant(self, row):
        return self.store.url(row).endswith("x")

    def past(self):
        experiences = [booking.experience for booking in self.bookings]
        rows, x, rewards, grades = (np.array(column) for column in zip(*experiences, strict=True))
        counts = np.array([len(booking.outlinks) for booking in self.bookings])
        firsts = np.array([booking.outlinks[0] for booking in self.bookings])
        return Past(
            x,
            rewards.astype(np.float32),
            rows,
            firsts,
            counts,
            np.full(len(rows), -1),
            grades.astype(np.float32),
        )

    def order(self, decisions):
        return [self.store.url(decision.row) for decision in decisions]


@pytest.fixture(scope="module")
def crawled():
    web = CueWeb()
    return web, web.run(150)


def test_model_learns_what_features_do_not_show(crawled):
    web, _ = crawled
    others = CueWeb(link_model=False)
    others.run(150)
    assert web.crawl.harvest_rate > 1.5 * others.crawl.harvest_rate


def test_chosen_row_is_never_drawn_again(crawled):
    web, decisions = crawled
    assert len(set(web.order(decisions))) == len(decisions)
    chosen = set()
    for decision in decisions[1:]:
        drawn = set(decision.choice.rows.tolist())
        assert not drawn & chosen
        chosen.add(decision.row)
    listed = set(web.policy._best.ready().tolist())
    assert listed
    assert not listed & chosen
    assert all(web.store["state"][row] == State.PENDING for row in listed)


def test_choice_knows_its_row(crawled):
    _, decisions = crawled
    for decision in decisions[1:]:
        place = decision.choice.rows.tolist().index(decision.row)
        assert decision.choice.leaves[place] == decision.leaf
        assert decision.choice.q_values[place] == np.float32(decision.q_value)


@pytest.mark.parametrize("cap", [None, Cap(3, 3)])
def test_crawl_ends_with_an_empty_frontier(cap):
    web = CueWeb(cap=cap)
    web.run(24)
    rest = web.run(10_000, book=lambda row: web.book(row, links=0))
    assert web.crawl.next() is None
    assert web.store.pending == len(web.store.pending_rows()) == 0
    assert rest
    assert not len(web.policy._best.ready())
    if cap is not None:
        assert web.crawl.pages == 3 * HOSTS


def test_same_seed_makes_same_order(crawled):
    web, decisions = crawled
    again, other = CueWeb(), CueWeb(seed=1)
    order = web.order(decisions)[:40]
    assert again.order(again.run(40)) == order
    assert other.order(other.run(40)) != order


@pytest.mark.parametrize("concurrency", [1, 4])
def test_feature_is_older_than_its_reward(concurrency):
    """Crawls that differ in the reward of one step agree up to that step, feature 9 included."""
    turned = 30
    found = []
    for relevant in (False, True):
        web, seen, leased = CueWeb(), [], []
        observe = web.policy.observe
        web.policy.observe = lambda experience, seen=seen, observe=observe: (
            seen.append(experience) or observe(experience)
        )
        rated = {}
        for _ in range(turned + 10 + concurrency):
            if (decision := web.crawl.next()) is not None:
                leased.append(decision.row)
                rated[decision.row] = float(
                    web.store["probability"].take(np.array([decision.row]))[0]
                )
            if decision is None or len(leased) == concurrency:
                web.book(leased.pop(0), relevant=relevant if len(seen) == turned else None)
        assert all(float(each.x[LINK]) == rated[each.row] for each in seen)
        found.append([(each.row, each.x.tolist(), each.reward) for each in seen])
    first, second = found
    assert first[:turned] == second[:turned]
    assert first[turned][:2] == second[turned][:2]
    assert first[turned][2] != second[turned][2]
    assert first[turned + concurrency :] != second[turned + concurrency :]


def test_best_of_a_big_leaf_is_found(monkeypatch):
    """Among thousands of links of a leaf, the best would hardly ever be drawn."""
    monkeypatch.setattr(tres, "MAX_DRAWN", 10)
    learning = LearningOptions(breadth=0.0)
    store = SampleStore(DomainLedger())
    policy = make_policy("tres", store, PolicyInputs(learning=learning))
    actions = np.zeros((3_000, 3), dtype=np.float32)
    actions[:, 2] = np.random.default_rng(0).permutation(3_000) / 3_000
    urls = [f"http://h.test/{number}" for number in range(3_000)]
    policy.readmit(store.add(NO_PARENT, Outlinks(urls, [""] * 3_000, actions)))
    for _ in range(5):
        best = store.pending_rows()[np.argmax(store["probability"].take(store.pending_rows()))]
        decision = policy.select()
        assert len(decision.choice.rows) < 3_000
        assert store["probability"].take(np.array([decision.row])) == store["probability"].take(
            np.array([best])
        )
        store.lease(decision.row)


def test_busy_links_wait():
    store = SampleStore(DomainLedger())
    policy = make_policy("tres", store, PolicyInputs())
    rows = store.add(
        NO_PARENT, Outlinks(["http://a.test/", "http://b.test/"], ["", ""], np.eye(2, 3))
    )
    policy.readmit(rows)
    chosen = []
    for busy in ([0, 1], [0], [0], []):
        decision = policy.select(Availability(busy))
        chosen.append(decision and decision.row)
        if decision is not None:
            store.lease(decision.row)
    assert chosen == [None, 1, None, 0]


def test_patient_crawl_waits_for_the_host_of_a_better_link():
    chosen = {}
    for soon in ((), (0,)):
        store = SampleStore(DomainLedger())
        policy = make_policy("tres", store, PolicyInputs())
        actions = np.array([[0, 0, 1], [0, 0, 0]], dtype=np.float32)  # of the anchor text
        rows = store.add(NO_PARENT, Outlinks(["http://a.test/", "http://b.test/"], "  ", actions))
        policy.readmit(rows)
        decision = policy.select(Availability([0], soon))
        chosen[soon] = decision and decision.row
        assert policy.waits == (decision is None)
        assert store.pending == 2
        assert policy.select().row == 0
    assert chosen == {(0,): None, (): 1}


def test_readmitted_link_is_chosen_again():
    web = CueWeb(cap=Cap(2, 2))
    first = web.run(1000, book=lambda row: web.book(row, links=8 if row < 30 else 0))
    assert web.crawl.pages == 2 * HOSTS
    back = web.crawl.change_cap(None)
    assert len(back)
    then = web.run(1000, book=lambda row: web.book(row, links=0))
    assert {decision.row for decision in then} == set(back.tolist())
    assert not {decision.row for decision in first} & set(back.tolist())


def test_link_described_again_is_rated_again():
    web = CueWeb()
    web.run(60)
    rows = web.store.pending_rows()[:1]
    for row, x in zip(web.past().rows, web.past().x, strict=True):  # anchors tell everything now
        said = x.copy()
        said[ACTION.stop - 1] = web.is_relevant(int(row))
        web.policy._links.observe(Experience(int(row), said, float(web.is_relevant(int(row)))))
    web.crawl.revise(rows, np.array([[0, 0, 0.0]], dtype=np.float32))
    before = float(web.store["probability"].take(rows)[0])
    web.crawl.revise(rows, np.array([[0, 0, 1.0]], dtype=np.float32))
    assert float(web.store["probability"].take(rows)[0]) > before


def test_restored_links_are_rated():
    """A link that was being fetched at a kill is rated too, because it is fetched first."""
    web = CueWeb()
    web.run(20)
    store, policy = web.store, web.policy
    rows = store.pending_rows()
    policy._links.rate(rows)
    rated = store["probability"].take(rows)
    store["probability"][rows] = np.zeros(len(rows), dtype=np.float32)  # as in a restored store
    restored = make_policy("tres", store, PolicyInputs(learning=FEW_UPDATES))
    restored.restore(web.past(), policy.rules, policy.state(), rows[1:])
    np.testing.assert_allclose(store["probability"].take(rows), rated, rtol=1e-5)
    assert rows[0] not in restored.tree.pool.rows(0)
