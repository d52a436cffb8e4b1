import numpy as np
import pytest

from tres_scrapy.agent import link_learner
from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.config.link_option import LinkOptions
from tres_scrapy.crawl.policy import Experience
from tres_scrapy.crawl.resumption import Past
from tres_scrapy.frontier.feature import FEATURES, LINK
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.outlink import Outlinks
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.links.code import CueGroup, Ragged, coded

OPTIONS = LinkOptions(replays=3, replay_capacity=7)
GOOD, BAD = (coded(CueGroup.ANCHOR, [word])[0] for word in ("leek", "login"))


def learner_over(store, seed=0, **options):
    return LinkLearner(store, LinkOptions(**options) if options else OPTIONS, seed)


def add(store, parent, cues, actions=None):
    """Add links with a code each, or with no codes if `cues` is a number of links."""
    count = cues if isinstance(cues, int) else len(cues)
    first = len(store)
    urls = [f"http://h{number % 7}.test/{number}" for number in range(first, first + count)]
    if actions is None:
        actions = np.full((count, 3), 0.5, dtype=np.float32)
    said = None if isinstance(cues, int) else Ragged.of([[cue] for cue in cues])
    return store.add(parent, Outlinks(urls, [""] * count, actions, said))


def fetch(store, learner, row, reward):
    """Fetch a row as a crawl does; return the experience."""
    experience = Experience(row, store.features(np.array([row]))[0], reward)
    store.lease(row)
    store.ledger.book_page(store.domain(row), reward)
    learner.observe(experience)
    store.finish(row, store.path_after(row, reward))
    return experience


def past_of(experiences):
    none = np.zeros(len(experiences), dtype=np.int64)
    x = np.array([each.x for each in experiences], dtype=np.float32).reshape(-1, len(FEATURES))
    rewards = np.array([each.reward for each in experiences], dtype=np.float32)
    rows = np.array([each.row for each in experiences], dtype=np.int64)
    return Past(x, rewards, rows, none, none, none)


def crawl_of(store, learner, pages=20):
    """Fetch some pages; yield each experience and the state after it."""
    random = np.random.default_rng(1)
    learner.rate(add(store, NO_PARENT, 1))
    for _ in range(pages):
        pending = store.pending_rows()
        row = int(random.choice(pending))
        if row % 5 == 3:
            store.redirect(row, f"http://moved.test/{row}")
        says_good = GOOD in store.cues.take(np.array([row])).codes
        experience = fetch(store, learner, row, float(says_good))
        codes = [GOOD if good else BAD for good in random.random(4) < 0.5]
        learner.rate(add(store, row, codes if row % 3 else 4))
        yield experience, learner.state()


def all_of(learner):
    """Return everything that decides about the future of a learner."""
    kept = [(*map(np.ndarray.tolist, link), reward) for link, reward in learner._kept]
    random = learner._random.bit_generator.state
    return learner.model.state(), kept, learner._seen, learner._children, random, learner.state()


@pytest.mark.parametrize("checkpoint", [1, 6, 1000])
def test_restored_learner_goes_on_alike(monkeypatch, checkpoint):
    monkeypatch.setattr(link_learner, "CHECKPOINT", checkpoint)
    store = SampleStore(DomainLedger())
    whole, experiences = learner_over(store), []
    for experience, state in crawl_of(store, whole):
        experiences.append(experience)
        restored = learner_over(store, seed=5 if state else 0)  # the state holds the generator
        restored.restore(past_of(experiences), state)
        assert all_of(restored) == all_of(whole)
    assert bool(state) == (checkpoint < 1000)
    rows = store.pending_rows()
    for learner in (whole, restored):
        learner.observe(Experience(int(rows[0]), store.features(rows[:1])[0], 1.0))
    assert all_of(restored) == all_of(whole)


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: b"",
        lambda state: state[:-1],
        lambda state: state.replace(b"\n", b"", 1),
        lambda state: state.replace(b'"seen": 4', b'"seen": 5'),
        lambda state: state.replace(b'"seen": 4', b'"seen": -1'),
        lambda state: state.replace(b'"seen": 4', b'"seen": "all"'),
        lambda state: b"{}" + state[state.index(b"\n") :],
        lambda state: state.replace(b"PCG64", b"PCG65"),
    ],
    ids=["empty", "cut", "joined", "more", "less", "text", "no facts", "generator"],
)
def test_damaged_state_is_refused(monkeypatch, damage):
    monkeypatch.setattr(link_learner, "CHECKPOINT", 4)
    store = SampleStore(DomainLedger())
    experiences, states = zip(*crawl_of(store, learner_over(store), pages=4), strict=True)
    state = states[-1]["links"]
    restored = learner_over(store)
    if damage(state) == b"":
        restored.restore(past_of(experiences), {"links": b""})
        assert restored.state() == states[-1], "all is learned again"
        return
    with pytest.raises((ValueError, LookupError)):
        restored.restore(past_of(experiences), {"links": damage(state)})


def test_rating_is_older_than_the_reward():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    (row,) = add(store, NO_PARENT, [GOOD])
    learner.rate(np.array([row]))
    rated = store.rated(np.array([row]))[0][0]
    experience = fetch(store, learner, row, 1.0)
    assert experience.x[LINK] == rated
    learner.rate(np.array([row]))
    assert store.rated(np.array([row]))[0][0] > rated
    assert experience.x[LINK] == rated, "the experience keeps what was believed"


def test_cues_decide_what_is_learned():
    store = SampleStore(DomainLedger())
    learner = learner_over(store, without=("url", "host", "siblings"))
    rows = add(store, NO_PARENT, [GOOD, BAD] * 30)
    for row in rows[:40].tolist():
        fetch(store, learner, row, float(row % 2 == 0))
    learner.rate(rows[40:])
    rated, doubts = store.rated(rows[40:])
    assert rated[::2].min() > 0.7
    assert rated[1::2].max() < 0.3
    assert (doubts > 0).all()


def test_links_without_cues_are_rated():
    """A spider's own requests have no cues: their URLs and anchor texts are read."""
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    actions = np.array([[0, 0, 0.1], [1, 1, 0.9]], dtype=np.float32)
    rows = add(store, NO_PARENT, 2, actions)
    learner.rate(rows)
    rated = store.rated(rows)[0]
    assert 0 < rated[0] < rated[1] < 1
    for _ in range(10):
        row = int(add(store, NO_PARENT, 1, actions[:1])[0])
        fetch(store, learner, row, 1.0)
    learner.rate(rows)
    assert store.rated(rows)[0][0] > rated[0]


def test_siblings_tell_of_each_other():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    seeds = add(store, NO_PARENT, 3)
    for seed in seeds.tolist():
        fetch(store, learner, seed, 1.0)
    pages = [add(store, seed, 3) for seed in seeds.tolist()]
    for rows, reward in zip(pages, (1.0, 0.0), strict=False):
        for row in rows[:2].tolist():
            fetch(store, learner, row, reward)
    last = np.array([rows[2] for rows in pages])
    assert learner._siblings(last).tolist() == pytest.approx([1 / 4, -1 / 4, 0])
    assert learner._siblings(seeds).tolist() == [0, 0, 0], "seeds have no siblings"
    without = learner_over(store, without=("siblings",))
    without._children = learner._children
    assert without._siblings(last).tolist() == [0, 0, 0]


def test_waiting_links_are_rated_in_turn():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    rows = add(store, NO_PARENT, 10)
    store.lease(4)
    turns = [learner.rate_again(4).tolist() for _ in range(4)]
    assert turns == [[0, 1, 2, 3], [5, 6, 7], [8, 9], [0, 1, 2, 3]]
    rated = store.rated(rows)[0]
    assert rated[4] == 0
    assert (np.delete(rated, 4) > 0).all()
    assert learner.rate_again(0).tolist() == []


def test_no_links_are_rated_again_before_the_first():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    assert learner.rate_again(5).tolist() == []
    add(store, NO_PARENT, 2)
    assert learner.rate_again(5).tolist() == [0, 1]


def test_chances_are_drawn_from_the_doubt():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    rows = add(store, NO_PARENT, 4000)
    means = np.repeat(np.array([0.1, 0.9], dtype=np.float32), 2000)
    doubts = np.tile(np.array([0.0, 1.0], dtype=np.float32), 2000)
    store.rate(rows, means, doubts)
    drawn = learner.chances(rows, 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(drawn[doubts == 0], 0, atol=1e-6)
    p = drawn[doubts == 1] + means[doubts == 1]
    logits = np.log(p / (1 - p)).reshape(2, -1)
    np.testing.assert_allclose(logits.mean(axis=1), np.log([1 / 9, 9]), atol=0.15)
    np.testing.assert_allclose(logits.std(axis=1), 1, atol=0.1)
    assert not learner.chances(rows, 0.0, np.random.default_rng(0)).round(6).any()
    again = learner.chances(rows, 1.0, np.random.default_rng(0))
    assert again.tolist() == drawn.tolist()
