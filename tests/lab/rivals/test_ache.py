from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import judged
from rivals import ache
from rivals.ache import (
    AchePolicy,
    Neighbourhood,
    Neighbourhoods,
    frequent_words,
    train,
)

from tres_scrapy.agent.policy import PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore

WORDS = ("cheese", "brie", "rind", "news", "cars", "golf", "shoes", "trains")
RELEVANT = 3  # of the words, the first are on links to relevant pages


def crawl_web(pages=600, seed=0, words=WORDS):
    """Crawl pages with random links; a word in the anchor and URL shows whether one is relevant."""
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, AchePolicy(store, PolicyInputs(seed)), pages)
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    random, rewards = np.random.default_rng(7), []
    while (decision := crawl.next()) is not None:
        kinds = random.integers(len(words), size=10)
        urls = [f"http://h.test/{words[k]}/{decision.row}x{i}" for i, k in enumerate(kinds)]
        anchors = [f"more {words[k]}" for k in kinds]
        rewards.append(store.url(decision.row).split("/")[3] in WORDS[:RELEVANT])
        none = np.zeros((10, 3), dtype=np.float32)
        crawl.book(decision.row, judged(float(rewards[-1])), Outlinks(urls, anchors, none))
    return crawl, rewards


@pytest.fixture
def learns_soon(monkeypatch):
    monkeypatch.setattr(ache, "LEARNING_LIMIT", 100)


def links_of(*links):
    neighbourhoods = Neighbourhoods()
    rows = np.arange(len(links))
    neighbourhoods.add(rows, [Neighbourhood(*link) for link in links])
    return neighbourhoods, rows


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_batch_size_does_not_matter(monkeypatch, at_once):
    links, rows = links_of(*(("http://a.test/leek", "soup " * (i % 3), "") for i in range(7)))
    classifier = ache.LinkClassifier(np.arange(3) + 0.5, -0.25)
    whole = classifier.decide(links, rows[::-1])
    assert len(set(whole.tolist())) == 2
    monkeypatch.setattr(ache, "_AT_ONCE", at_once)
    assert classifier.decide(links, rows[::-1]).tolist() == whole.tolist()
    assert classifier.decide(links, rows[:0]).tolist() == []


@pytest.mark.usefixtures("learns_soon")
def test_link_words_are_learned():
    crawl, rewards = crawl_web()
    assert np.mean(rewards[:100]) < 0.6
    assert np.mean(rewards[200:]) > 0.95
    assert crawl.policy.figures() == {"link_trainings": 6}


@pytest.mark.usefixtures("learns_soon")
def test_one_class_keeps_the_baseline():
    crawl, _ = crawl_web(pages=250, words=WORDS[RELEVANT:] * 2)
    assert crawl.policy.trainings == 0


@pytest.mark.usefixtures("learns_soon")
def test_ache_seed_decides_order():
    orders = [
        [crawl.store.url(row) for row in range(len(crawl.store))]
        for crawl, _ in (crawl_web(250, seed) for seed in (1, 1, 2))
    ]
    assert orders[0] == orders[1] != orders[2]


def test_first_links_follow_relevant_pages():
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, AchePolicy(store, PolicyInputs()))
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    none = np.zeros((20, 3), dtype=np.float32)
    links, others = (
        Outlinks([f"http://{host}.test/{i}" for i in range(20)], [""] * 20, none) for host in "ab"
    )
    seed = crawl.next().row
    good = crawl.book(seed, judged(1.0, PageText(probability=0.8)), links).outlinks
    first = crawl.next().row
    crawl.book(first, judged(0.0, PageText(probability=0.2)), others)
    order = [first]
    while (decision := crawl.next()) is not None:
        order.append(decision.row)
    assert sorted(order[:20]) == good.tolist() != order[:20]


def test_the_sample_is_balanced_and_bounded(monkeypatch):
    monkeypatch.setattr(ache, "MAX_SAMPLES", 30)
    crawl, rewards = crawl_web(pages=100)
    rows, relevant = crawl.policy.sample()
    assert relevant.sum() == min(30, sum(rewards))
    assert (~relevant).sum() == min(relevant.sum(), len(rewards) - 1 - sum(rewards))
    words = [crawl.store.url(row).split("/")[3] for row in rows]
    assert [word in WORDS[:RELEVANT] for word in words] == relevant.tolist()
    assert 0 not in rows, "a seed is no link"


def test_classes_are_balanced():
    crawl, _ = crawl_web(pages=300, words=(*WORDS, *WORDS[RELEVANT:], *WORDS[RELEVANT:]))
    _, relevant = crawl.policy.sample()
    assert relevant.sum() == (~relevant).sum()


def test_words_come_from_each_field():
    neighbourhoods, rows = links_of(
        ("http://cheese.test/brie?old=brie", "Brie of the week", "is it on a brie"),
        ("http://cheese.test/", "", ""),
    )
    words = neighbourhoods.words(rows)
    assert words.links.tolist() == [0] * 5
    fields = neighbourhoods.fields[words.numbers]
    assert fields.tolist() == [0, 0, 1, 1, 2], "brie, old; brie, week; brie"


@given(st.lists(st.tuples(st.text("ab/", max_size=9), st.text("abc ", max_size=20)), max_size=8))
def test_decision_sums_word_weights(drawn):
    links = [(f"http://h.test/{path}", anchor, "") for path, anchor in drawn]
    neighbourhoods, rows = links_of(*links)
    weights = np.append(np.arange(1.0, 1 + len(neighbourhoods.fields)), 0)
    classifier = ache.LinkClassifier(weights, 0.5)
    values = classifier.decide(neighbourhoods, rows[::-1])
    for row, value in zip(rows[::-1], values, strict=True):
        numbers = neighbourhoods.words(np.array([row])).numbers.tolist()
        assert len(numbers) == len(set(numbers))
        assert value == 0.5 + sum(number + 1 for number in numbers)


def test_words_after_the_training_weigh_nothing():
    neighbourhoods, rows = links_of(*[(f"http://h.test/{w}", w, w) for w in WORDS] * 8)
    classifier = train(neighbourhoods, rows, rows % len(WORDS) < RELEVANT)
    new = np.array([len(rows)])
    neighbourhoods.add(new, [Neighbourhood("http://h.test/gouda", "gouda", "gouda")])
    assert classifier.decide(neighbourhoods, new) == classifier.bias
    decisions = classifier.decide(neighbourhoods, rows)
    assert ((decisions > 0) == (rows % len(WORDS) < RELEVANT)).all()


@given(st.lists(st.integers(0, 11)), st.integers(1, 4))
def test_frequent_words_are_chosen(numbers, limit):
    fields = np.array([0, 1, 2] * 4, dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ache, "MAX_FEATURES", (limit, 2, limit))
        chosen = frequent_words(fields, np.array(numbers, dtype=np.int64)).tolist()
    counts = Counter(numbers)
    for field, most in enumerate((limit, 2, limit)):
        own = {n: c for n, c in counts.items() if n % 3 == field}
        floor = 5 if max(own.values(), default=0) > 10 else 1
        common = sorted((n for n, c in own.items() if c > floor), key=lambda n: (-own[n], n))
        assert [n for n in chosen if n % 3 == field] == common[:most]


def test_link_context_is_learned():
    store = SampleStore(DomainLedger())
    policy = AchePolicy(store, PolicyInputs())
    crawl = Crawl(store, policy)
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    none = np.zeros((1, 3), dtype=np.float32)
    text = PageText("", {"http://1.test/": "ripe cheese"})
    links = Outlinks(["http://1.test/"], [""], none)
    rows = crawl.book(crawl.next().row, judged(1.0, text), links).outlinks
    words = policy._neighbourhoods.words(rows).numbers
    assert policy._neighbourhoods.fields[words].tolist() == [2, 2]
