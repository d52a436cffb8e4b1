import numpy as np
import pytest

from tres_scrapy.agent import link_learner
from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.config.learning import LinkOptions
from tres_scrapy.config.limit import Cap
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import FEATURES, LINK, STATE
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.links.code import CueGroup, RaggedArray, coded
from tres_scrapy.links.model import KNOWN

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
    said = None if isinstance(cues, int) else RaggedArray.of([[cue] for cue in cues])
    return store.add(parent, Outlinks(urls, [""] * count, actions, said))


def fetch(store, learner, row, reward, grade=0.0):
    """Fetch a row as a crawl does; return the experience."""
    experience = Experience(row, store.features(np.array([row]))[0], reward, grade)
    store.lease(row)
    store.ledger.book_page(store["domain"][row], reward)
    learner.observe(experience)
    store.finish(row, store.path_after(row, reward))
    return experience


def past_of(experiences):
    none = np.zeros(len(experiences), dtype=np.int64)
    x = np.array([each.x for each in experiences], dtype=np.float32).reshape(-1, len(FEATURES))
    rewards = np.array([each.reward for each in experiences], dtype=np.float32)
    rows = np.array([each.row for each in experiences], dtype=np.int64)
    grades = np.array([each.grade for each in experiences], dtype=np.float32)
    return Past(x, rewards, rows, none, none, none, grades)


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
    kept = [(*map(np.ndarray.tolist, link), reward) for link, reward in learner._trainer.kept]
    random = learner._trainer._random.bit_generator.state
    links = [learner._links[name].tolist() for name in ("fetched", "relevant")]
    hosts = np.arange(len(learner._store.hosts.names), dtype=np.int32)
    room = np.full(len(hosts), 99, dtype=np.int32)
    none = np.zeros(len(hosts), dtype=np.float32)
    memory = [
        learner._hosts.logits(hosts).tolist(),
        learner._hosts.gains(hosts, none, room, none > 0).tolist(),
    ]
    return (
        learner.model.state(),
        kept,
        learner._trainer.seen,
        links,
        memory,
        random,
        learner.state(),
    )


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
    rated = store["probability"].take(np.array([row]))[0]
    experience = fetch(store, learner, row, 1.0)
    assert experience.x[LINK] == rated
    learner.rate(np.array([row]))
    assert store["probability"].take(np.array([row]))[0] > rated
    assert experience.x[LINK] == rated, "the experience keeps what was believed"


def test_cues_decide_what_is_learned():
    store = SampleStore(DomainLedger())
    learner = learner_over(store, without=("url", "host", "siblings"))
    rows = add(store, NO_PARENT, [GOOD, BAD] * 30)
    for row in rows[:40].tolist():
        fetch(store, learner, row, float(row % 2 == 0))
    learner.rate(rows[40:])
    rated = store["probability"].take(rows[40:])
    assert rated[::2].min() > 0.7
    assert rated[1::2].max() < 0.3


def test_links_without_cues_are_rated():
    """A spider's own requests have no cues: their URLs and anchor texts are read."""
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    actions = np.array([[0, 0, 0.1], [1, 1, 0.9]], dtype=np.float32)
    rows = add(store, NO_PARENT, 2, actions)
    learner.rate(rows)
    rated = store["probability"].take(rows)
    assert 0 < rated[0] < rated[1] < 1
    for _ in range(10):
        row = int(add(store, NO_PARENT, 1, actions[:1])[0])
        fetch(store, learner, row, 1.0)
    learner.rate(rows)
    assert store["probability"].take(rows)[0] > rated[0]


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
    for learner_, count in ((learner, 2), (without, 0)):
        learner_._links = learner._links
        known = learner_.links(last).known[:, KNOWN.index("siblings")]
        assert np.count_nonzero(known) == count


def test_topic_of_now_corrects_what_was_learned():
    """Of a page that turned relevant, links, siblings and host count as if it had been so."""
    learned = []
    for first, then in ((0.0, 1.0), (1.0, 1.0)):
        store = SampleStore(DomainLedger())
        learner = learner_over(store, replays=0)
        (seed,) = add(store, NO_PARENT, 1).tolist()
        fetch(store, learner, seed, 1.0, grade=1.0)
        rows = add(store, seed, [GOOD, BAD, GOOD])
        fetch(store, learner, int(rows[0]), first, grade=0.5)
        links = add(store, int(rows[0]), 2)
        fetch(store, learner, int(rows[1]), 0.0)  # a copy of the same page: it earns nothing
        said = {int(rows[0]): (then, 1.0), int(rows[1]): (1.0, 1.0), 99: (1.0, 1.0)}
        assert learner.relearn(said) == (first != then)
        assert not learner.relearn(said)
        assert [target for _, target in learner._trainer.kept] == [1.0, 1.0, 0.0]
        states = store.features(np.append(links, add(store, int(rows[0]), 1)))[:, STATE]
        assert states[:, 0].tolist() == [1.0, 1.0, 1.0]
        hosts = store["host"].take(rows)
        learned.append((learner._siblings(rows), learner._hosts.logits(hosts), states))
    for found, expected in zip(*learned, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_distrusted_lesson_keeps_its_share_when_it_is_learned_again(monkeypatch):
    store = SampleStore(DomainLedger())
    learner = learner_over(store, replays=0)
    (row,) = add(store, NO_PARENT, 1).tolist()
    fetch(store, learner, row, 0.0, grade=0.1)
    monkeypatch.setattr(learner._trainer, "_earned", lambda rows: np.full(len(rows), 0.25))
    fitted = []
    monkeypatch.setattr(learner.model, "fit", lambda link, target: fitted.append(target))
    learner.relearn({row: (1.0, 0.8)})
    assert fitted == [0.2]


def test_lesson_that_changed_is_learned_again():
    store = SampleStore(DomainLedger())
    learner = learner_over(store, replays=0)
    rows = add(store, NO_PARENT, [GOOD, BAD, GOOD, BAD])
    for row in rows[:2].tolist():
        fetch(store, learner, row, 0.0, grade=0.2)
    learner.rate(rows[2:])
    before = store["probability"].take(rows[2:])
    learner.relearn({int(rows[0]): (1.0, 1.0), int(rows[1]): (0.0, 0.2)})
    learner.rate(rows[2:])
    gained = store["probability"].take(rows[2:]) - before
    assert gained[0] > gained[1] > 0  # the second has the same host


def test_waiting_links_are_rated_in_turn():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    rows = add(store, NO_PARENT, 10)
    store.lease(4)
    turns = [learner.rate_again(4).tolist() for _ in range(4)]
    assert turns == [[0, 1, 2, 3], [5, 6, 7], [8, 9], [0, 1, 2, 3]]
    rated = store["probability"].take(rows)
    assert rated[4] == 0
    assert (np.delete(rated, 4) > 0).all()
    assert learner.rate_again(0).tolist() == []


def test_sample_that_is_drawn_twice_is_rated_once():
    """Sampling draws with replacement."""
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    add(store, NO_PARENT, 3)
    once = learner.refresh(np.array([0, 1, 2]), 2)
    for best in (2, 30):
        np.testing.assert_array_equal(
            learner.refresh(np.array([1, 1, 2, 1]), best), once[[1, 1, 2, 1]]
        )


def test_no_links_are_rated_again_before_the_first():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    assert learner.rate_again(5).tolist() == []
    add(store, NO_PARENT, 2)
    assert learner.rate_again(5).tolist() == [0, 1]


def test_last_results_of_a_host_count():
    store = SampleStore(DomainLedger())
    learner, without = learner_over(store), learner_over(store, without=("record",))
    rows = add(store, NO_PARENT, 8)  # two of the same host, the first and the last
    column = KNOWN.index("host_logit")
    assert not learner.links(rows).known[:, column].any()
    for each in (learner, without):
        fetch(store, each, int(rows[0]), 1.0)
    known = learner.links(rows).known[:, column]
    assert known.nonzero()[0].tolist() == [0, 7]
    assert known[7] == pytest.approx(np.log(1.5 / 0.5))
    assert not without.links(rows).known[:, column].any()


def test_refreshed_rating_equals_a_new_one():
    """The codes are as they were rated, the facts are those of now."""
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    rows = add(store, NO_PARENT, [GOOD, BAD] * 8)
    learner.rate(rows)
    learner._hosts.note_fetch(0, 1.0)
    store.ledger.book_page(store["domain"][int(rows[0])], 1.0)
    x = learner.refresh(rows[1:], 3)
    found = store["probability"].take(rows)
    np.testing.assert_array_equal(x, store.features(rows[1:]))
    learner.rate(rows)
    np.testing.assert_allclose(found[1:], store["probability"].take(rows)[1:], rtol=1e-5)
    assert found[7] > found[5], "the others of the host"
    assert found[0] != store["probability"].take(rows)[0]


def test_page_that_came_near_raises_its_like():
    store = SampleStore(DomainLedger())
    learners = [learner_over(store, without=("record", "siblings")) for _ in range(2)]
    rows = add(store, NO_PARENT, [GOOD, BAD] * 10)
    for row in rows[:16].tolist():
        x = store.features(np.array([row]))[0]
        for learner, grade in zip(learners, (0.0, 0.6), strict=True):
            learner.observe(Experience(row, x, 0.0, grade if row % 2 == 0 else 0.0))
    p = []
    for learner in learners:
        learner.rate(rows[16:])
        p.append(store["probability"].take(rows[16:]))
    assert p[1][0] > 2 * p[0][0]
    assert p[1][0] > 2 * p[1][1]


def test_bonus_is_for_hosts_that_are_hardly_known():
    store = SampleStore(DomainLedger(cap=Cap(9, 9)))
    rows = add(store, NO_PARENT, 14)  # two of each of seven hosts
    learner = learner_over(store)
    store["probability"][rows] = np.full(14, 0.01, dtype=np.float32)
    assert learner.bonus(rows) == pytest.approx(learner.bonus(rows)[0])
    for row in rows[:3].tolist():
        fetch(store, learner, row, 0.0)
    bonus = learner.bonus(rows)
    assert (bonus[[0, 1, 2, 7, 8, 9]] < bonus[3] / 2).all()
    store.ledger.note_progress(99, 100)
    store.lease(int(rows[3]))
    under_way = learner.bonus(rows)[[3, 10]]
    assert under_way == pytest.approx(bonus[[3, 10]] / 9 / 2), "a fetch of their host runs"
    store.release(int(rows[3]))
    left = np.full(14, 9) - np.isin(rows % 7, [0, 1, 2])
    assert learner.bonus(rows) == pytest.approx(bonus / left), "one page of the crawl is left"


def test_best_links_are_read_again():
    store = SampleStore(DomainLedger())
    learner = learner_over(store)
    rows = add(store, NO_PARENT, [BAD, GOOD, BAD, GOOD])
    learner.rate(rows)
    before = learner._links["logit"].copy()
    store["probability"][rows] = np.zeros(4, dtype=np.float32)
    learner.model.weights[GOOD] += 1
    learner._links["logit"][rows[[1, 2]]] += 5
    learner.refresh(rows, 2)
    read = learner._links["logit"] - before
    assert read.tolist() == pytest.approx([0, 1, 0, 0], abs=1e-6), "the best two"
    learner.refresh(rows[3:], 2)
    assert (learner._links["logit"] - before)[3] == pytest.approx(1)


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_pages_that_lost_their_rewards_are_learned_again_without(monkeypatch, share):
    store = SampleStore(DomainLedger())
    learner, asked = learner_over(store, replays=5, replay_capacity=50), []

    def earned(rows):
        asked.extend(rows.tolist())
        return np.full(len(rows), share, dtype=np.float32)

    monkeypatch.setattr(learner._trainer, "_earned", earned)
    rows = add(store, NO_PARENT, [GOOD] * 40)
    learner.rate(rows)
    for row in rows[:-1].tolist():
        fetch(store, learner, row, 1.0)
    learner.rate(rows[-1:])
    assert set(asked) <= set(rows.tolist())
    assert len(set(asked)) > 10
    assert (store["probability"][rows[-1]] > 0.7) == bool(share)
