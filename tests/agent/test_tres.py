import numpy as np
import pytest
from judged import judged
from plain_policy import PlainPolicy

from tres_scrapy.agent import tres
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import SampleStore

PAGES = 400


def policy_over(
    store, name="tres", *, seed=0, exploration_steps=50, representatives=1, link_model=False
):
    learning = LearningOptions(representatives, exploration_steps)
    links = LinkOptions(enabled=link_model)
    return make_policy(name, store, PolicyInputs(seed, learning=learning, links=links))


class SmallWeb:
    """Pages whose relevance mostly matches the probability of their anchor."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.relevant = {"http://0.test/": 1.0}

    def outlinks(self, row):
        urls = [f"http://{self.random.integers(40)}.test/{row}/{i}" for i in range(10)]
        actions = self.random.random((10, 3)).astype(np.float32)
        truth = actions[:, 2] + 0.2 * self.random.standard_normal(10) > 0.8
        self.relevant |= dict(zip(urls, truth.astype(float), strict=True))
        return Outlinks(urls, urls, actions)


def crawl_small_web(pages=PAGES, policy_of=policy_over, **options):
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, policy_of(store, **options), pages)
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    web = SmallWeb()
    order = []
    while (decision := crawl.next()) is not None:
        order.append(store.url(decision.row))
        crawl.book(decision.row, judged(web.relevant[order[-1]]), web.outlinks(decision.row))
    return crawl, order


@pytest.fixture(scope="module")
def finished():
    return crawl_small_web()[0]


@pytest.mark.parametrize("link_model", [False, True])
def test_learns_what_a_queue_does_not(finished, link_model):
    crawl = crawl_small_web(link_model=True)[0] if link_model else finished
    plain, _ = crawl_small_web(policy_of=PlainPolicy)
    assert crawl.harvest_rate > 2 * plain.harvest_rate


@pytest.mark.slow
def test_other_seed_other_order():
    orders = [crawl_small_web(pages=60, seed=seed)[1] for seed in (1, 2)]
    assert orders[0] != orders[1]


def test_theorem_2_bounds_evaluations(finished):
    """At most 1 + 3/2 T + T^2/2: at step t the tree has at most t + 1 leaves."""
    steps = finished.pages
    assert finished.policy.figures()["q_evaluations"] <= 1 + 1.5 * steps + steps**2 / 2
    assert finished.policy.figures()["q_evaluations"] < finished.store.pending * steps / 10


@pytest.mark.parametrize(("most", "drawn"), [(10_000, 8), (5, 4), (1, 2)])
def test_many_leaves_mean_fewer_draws(monkeypatch, most, drawn):
    monkeypatch.setattr(tres, "MAX_DRAWN", most)
    store = SampleStore(DomainLedger())
    policy = policy_over(store, exploration_steps=0, representatives=4)
    actions = np.array([[0, 0, 0], [1, 1, 1]], dtype="f4").repeat(9, axis=0)
    rows = store.add(-1, Outlinks([f"http://{i}.test/" for i in range(18)], [""] * 18, actions))
    policy.expand(Experience(0, store.features(rows[:1])[0], 0.0), rows)
    for i in range(6):
        policy.observe(Experience(0, store.features(rows[3 * i : 3 * i + 1])[0], float(i > 2)))
    assert len(policy.tree) == 2
    policy.select()
    assert policy.figures()["q_evaluations"] == drawn


@pytest.mark.parametrize("each", [1, 4])
def test_one_evaluation_a_leaf_and_representative(each):
    store = SampleStore(DomainLedger())
    policy = policy_over(store, exploration_steps=0, representatives=each)
    rows = store.add(
        -1, Outlinks([f"http://{i}.test/" for i in range(9)], [""] * 9, np.eye(9, 3, dtype="f4"))
    )
    policy.expand(Experience(0, store.features(rows[:1])[0], 0.0), rows)
    for i in range(6):  # grows leaves, the first samples having a keyword
        policy.observe(Experience(0, store.features(rows[i : i + 1])[0], float(i % 2)))
    occupied = len(policy.tree.pool.occupied())
    decision = policy.select()
    assert policy.figures()["q_evaluations"] == each * occupied > each
    assert decision.q_value is not None
    choice = decision.choice
    assert (choice.splits, len(choice.rows)) == (policy.tree.splits, each * occupied)
    chosen = choice.rows.tolist().index(decision.row)
    assert (choice.leaves[chosen], choice.q_values[chosen]) == (decision.leaf, decision.q_value)
    assert len(policy.tree.pool) == 8, "the chosen sample has left, the others stay"


def test_exploration_asks_no_q(finished):
    crawl, _ = crawl_small_web(pages=30, exploration_steps=31)
    assert crawl.policy.figures()["q_evaluations"] == 0
    assert crawl.policy.figures()["phase"] == "exploration"
    assert finished.policy.figures()["phase"] == "exploitation"


def test_valuing_is_no_choice(finished):
    policy, x = (
        finished.policy,
        np.full((5, len(FEATURES)), 0.5, dtype=np.float32),
    )
    before = policy.figures()["q_evaluations"]
    assert policy.value(x).shape == (5,)
    assert policy.learns_q
    assert policy.figures()["q_evaluations"] == before


def test_next_sample_joins_last_candidates():
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, policy_over(store))
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    seed = crawl.next().row
    no_actions = np.zeros((2, 3), dtype=np.float32)
    outlinks = crawl.book(
        seed, judged(1.0), Outlinks(["http://1.test/", "http://2.test/"], ["", ""], no_actions)
    ).outlinks
    chosen = crawl.next().row
    batch = crawl.policy._learner._replay.batch(1)
    assert batch.candidates.tolist() == [*outlinks.tolist(), chosen]


def test_busy_hosts_are_passed_over():
    store = SampleStore(DomainLedger())
    policy = policy_over(store)
    rows = store.add(
        -1, Outlinks(["http://a.test/", "http://b.test/"], ["", ""], np.zeros((2, 3), "f4"))
    )
    policy.expand(Experience(0, store.features(rows[:1])[0], 0.0), rows)
    assert policy.select(Availability([0])).row == 1
    assert policy.select(Availability([0])) is None
    assert policy.select().row == 0


def learner_over(store, **options):
    setup = PolicyInputs(learning=LearningOptions(**options), links=LinkOptions(enabled=False))
    return make_policy("tres", store, setup)._learner


def test_first_relevant_page_of_a_domain_earns_more():
    """Resumed or not, the replay holds the intrinsic reward, and only for first pages."""
    store = SampleStore(DomainLedger())
    learner = learner_over(store, breadth=0.2)
    urls = [f"http://{host}.test/{number}" for number, host in enumerate("abaab")]
    rows = store.add(-1, Outlinks(urls, urls, np.zeros((5, 3), dtype=np.float32)))
    rewards = [0.0, 1.0, 1.0, 1.0, 1.0]
    x = store.features(rows)
    for row, reward in zip(rows.tolist(), rewards, strict=True):
        learner.remember(Experience(row, x[row], reward), rows[:0])
    earned = learner._replay._records["reward"][:5].tolist()
    assert earned == [0, 1.25, 1.25, 1, 1]
    state, nothing = learner.state(), np.zeros(5, dtype=np.int64)
    resumed = learner_over(store, breadth=0.2)
    past = Past(
        x,
        np.array(rewards, dtype=np.float32),
        rows,
        nothing,
        nothing,
        nothing,
        np.zeros(len(rows), np.float32),
    )
    resumed.restore(past, state)
    assert resumed._replay._records["reward"][:5].tolist() == earned


def test_new_domains_promise_more():
    store = SampleStore(DomainLedger())
    setup = PolicyInputs(learning=LearningOptions(breadth=0.2))
    learner = make_policy("tres", store, setup)._learner
    urls = ["http://a.test/", "http://b.test/", "http://c.test/"]
    rows = store.add(-1, Outlinks(urls, urls, np.zeros((3, 3), dtype=np.float32)))
    store["probability"][rows] = np.array([0.5, 0.5, 0.5], dtype=np.float32)
    store.ledger.book_page(store["domain"][0], 0.0)
    store.ledger.count_lease(store["domain"][1])
    assert learner.rate(store.features(rows)).tolist() == [0.5, 0.5, 0.625]


def test_many_links_are_rated_again_after_a_change_of_the_topic(monkeypatch):
    monkeypatch.setattr(tres, "RATING_PERIOD", 10_000)
    crawl, _ = crawl_small_web(pages=12, link_model=True)
    policy, turns = crawl.policy, []
    monkeypatch.setattr(
        policy.link_learner, "rate_again", lambda count: turns.append(count) or np.zeros(0, int)
    )
    for lesson, expected in ((1.0, 0), (0.0, tres.HASTE)):  # the seed was relevant
        policy.relearn({0: (lesson, lesson)})
        crawl.limit += tres.HASTE + 5
        while (decision := crawl.next()) is not None:
            crawl.book(decision.row, judged(0.0))
        assert len(turns) == expected
