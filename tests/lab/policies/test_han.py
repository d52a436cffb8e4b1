import numpy as np
import pytest
from judged import judged

from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.policies import han
from tres_scrapy.lab.policies.han import AsyncPolicy
from tres_scrapy.lab.policies.inputs import RivalInputs


def cosines(texts):
    return np.array([float(text or 0) for text in texts], dtype=np.float32)


def start(anchors, seed=0):
    """Start a crawl whose seed links to one page per anchor; the anchor is its cosine."""
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, AsyncPolicy(store, RivalInputs(seed, similarity=cosines)))
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    book(crawl, crawl.next().row, 1.0, anchors)
    return crawl


def book(crawl, row, reward, anchors):
    urls = [f"http://{i}.test/{row}" for i in range(len(anchors))]
    actions = np.zeros((len(anchors), 3), dtype="f4")
    return crawl.book(row, judged(reward), Outlinks(urls, anchors, actions)).outlinks


@pytest.fixture
def greedy(monkeypatch):
    monkeypatch.setattr(han, "EPSILON", 0.0)


@pytest.mark.usefixtures("greedy")
def test_sarsa_matches_hand_computation():
    crawl = start(["0.5"])
    weights = crawl.policy.weights
    row = crawl.next().row
    # the seed: x = (1, 0, 0, 0, 0), r = 1, all Q are 0
    np.testing.assert_allclose(weights, [0.05, 0, 0, 0, 0])
    book(crawl, row, 0.0, ["1"])
    crawl.next()
    # x = (1, 1, 1, 1, 0.5), r = 0, Q(x) = 0.05; x' = (1, 0, 0.5, 0.5, 1), Q(x') = 0.05
    step = 0.05 * (0.5 * 0.05 - 0.05)
    np.testing.assert_allclose(weights, [0.05 + step, step, step, step, 0.5 * step], rtol=1e-6)


@pytest.mark.usefixtures("greedy")
def test_every_experience_is_learned():
    crawl = start(["0", "0", "0"])
    rows = [crawl.next().row, crawl.next().row]
    before = crawl.policy.weights.copy()
    for row in rows:
        book(crawl, row, 1.0, [])
    assert (crawl.policy.weights == before).all(), "the next action is not known yet"
    crawl.next()
    one = before.copy()
    for _ in rows:
        x = np.array([1, 1, 1, 1, 0])
        one += 0.05 * (1 + 0.5 * x @ one - x @ one) * x
    np.testing.assert_allclose(crawl.policy.weights, one)


@pytest.mark.usefixtures("greedy")
def test_arrival_value_is_never_refreshed():
    crawl = start(["0.1", "0.9", "0.5"])
    crawl.policy.weights[:] = [0, 0, 0, 0, 1]
    rows = book(crawl, crawl.next().row, 1.0, ["0.2", "0.7", "0.4"])
    crawl.policy.weights[:] = [0, 0, 0, 0, -1]
    later = [crawl.next().row for _ in range(5)]
    assert later == [rows[1], rows[2], rows[0], 2, 3], "the first links were worth 0"


def test_exploration_is_uniform(monkeypatch):
    monkeypatch.setattr(han, "EPSILON", 1.0)
    firsts = []
    for seed in range(200):
        crawl = start(["0"] * 4, seed)
        order = [crawl.next().row for _ in range(4)]
        assert sorted(order) == [1, 2, 3, 4]
        assert crawl.next() is None
        assert crawl.store.pending == 0
        firsts.append(order[0])
    assert np.bincount(firsts, minlength=5)[1:].min() > 30


def test_early_sample_is_not_repeated(monkeypatch):
    crawl = start(["0"] * 30)
    monkeypatch.setattr(han, "EPSILON", 1.0)
    drawn = [crawl.next().row for _ in range(10)]
    monkeypatch.setattr(han, "EPSILON", 0.0)
    rest = [crawl.next().row for _ in range(20)]
    assert sorted(drawn + rest) == list(range(1, 31))
    assert rest == sorted(rest)
    assert crawl.store.pending == 0


def test_han_seed_decides_order():
    orders = []
    for seed in (1, 1, 2):
        crawl = start(["0"] * 100, seed)
        orders.append([crawl.next().row for _ in range(100)])
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.usefixtures("greedy")
def test_learns_that_the_cosine_matters():
    crawl, random = start(["0.5"] * 10), np.random.default_rng(0)
    rewards = []
    for _ in range(400):
        row = crawl.next().row
        reward = float(random.random() < float(crawl.store.anchors[row]) ** 2)
        rewards.append(reward)
        book(crawl, row, reward, [f"{c:.2f}" for c in random.random(10)])
    assert crawl.policy.weights[4] > 0
    assert np.mean(rewards[200:]) > 0.6, "a link of random cosine is relevant one time in three"


def test_a_policy_without_samples_gives_none():
    policy = AsyncPolicy(SampleStore(DomainLedger()), RivalInputs(similarity=cosines))
    assert [policy.select() for _ in range(50)] == [None] * 50
