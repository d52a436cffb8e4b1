from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.surface.acquired import MOST_PLACES, PRIOR, Acquired, Recaptures, Sightings, Token
from tres_scrapy.surface.selector import Features, Trial, expected_new, features, kernel
from tres_scrapy.surface.surfacing import BUDGET, DRY, NO_KEYWORD, Surfacing

ALIKE = Features(np.zeros((1, 6)), np.zeros((1, 2), np.int64))
tokens = st.builds(
    Token, st.sampled_from("abcdefgh"), st.sampled_from(["h1", "p"]), st.integers(0, 9),
    st.sampled_from(["noun", "verb"]),
)  # fmt: skip


def token(word, place="title", depth=1, kind="noun"):
    return Token(word, place, depth, kind)


def acquired_of(*records):
    acquired = Acquired()
    acquired.add([[token(word) for word in record.split()] for record in records])
    return acquired


# What is counted


@given(st.lists(st.lists(st.lists(tokens, max_size=5), max_size=4), max_size=4))
def test_counts_equal_plain_loop(batches):
    acquired = Acquired()
    for batch in batches:
        acquired.add(batch)
    records = [record for batch in batches for record in batch]
    tf = Counter(t.word for record in records for t in record)
    df = Counter(word for record in records for word in {t.word for t in record})
    verbs = Counter(t.word for record in records for t in record if t.kind == "verb")
    assert acquired.records == len(records)
    assert dict(zip(acquired.words, acquired.tf.tolist(), strict=True)) == tf
    assert dict(zip(acquired.words, acquired.df.tolist(), strict=True)) == df
    for number, word in enumerate(acquired.words):
        depths = [t.depth for record in records for t in record if t.word == word]
        assert acquired.depth[number] == pytest.approx(np.mean(depths))
        kinds = acquired.kinds[number]
        assert kinds.sum() == tf[word]
        assert verbs[word] in kinds


def test_far_places_count_as_last():
    acquired = Acquired()
    acquired.add([[token("a", f"p{i}") for i in range(MOST_PLACES + 5)]])
    assert acquired.places[0].tolist() == [1] * (MOST_PLACES - 1) + [6]


def test_room_is_made_for_many_keywords():
    acquired = Acquired()
    acquired.add([[token(f"w{i}") for i in range(5000)]])
    assert len(acquired) == 5000
    assert set(acquired.df.tolist()) == {1}
    assert acquired.spelling[4999].tolist() == [5, 0.8]


# Features and kappa


def test_residual_idf_finds_bursty_words():
    acquired = acquired_of("burst burst burst burst", "even", "even", "even", "even", "x", "y")
    statistical = features(acquired, np.arange(2)).numeric
    assert acquired.tf.tolist()[:2] == [4, 4]
    assert statistical[0, 2] > statistical[1, 2]


def test_features_are_comparable_shares():
    small, large = acquired_of(*["a b", "b"]), acquired_of(*["a b", "b"] * 50)
    first, later = (features(acquired, np.arange(2)) for acquired in (small, large))
    assert first.numeric == pytest.approx(later.numeric)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_kappa_is_normalised_gaussian(n, m, seed):
    random = np.random.default_rng(seed)
    left, right = (Features(random.random((k, 3)), random.integers(0, 2, (k, 2))) for k in (n, m))
    kappa = kernel(left, right)
    for i in range(n):
        squares = [
            ((left.numeric[i] - right.numeric[j]) ** 2).sum()
            + (left.discrete[i] != right.discrete[j]).sum()
            for j in range(m)
        ]
        weights = np.exp(-np.array(squares) / (2 * 0.25**2)) + 1e-9
        assert kappa[i] == pytest.approx(weights / weights.sum(), rel=1e-3, abs=1e-6)


# Recaptures


@given(
    st.lists(st.lists(st.lists(tokens, max_size=5), max_size=3), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_recaptures_equal_plain_loop(batches, random):
    acquired, times, tried, hits = Acquired(), [], Counter(), Counter()
    records = []
    for batch in batches:
        number = acquired.number("a")
        again = [i for i in range(len(records)) if random.random() < 0.5]
        stands = [next((t.place for t in record if t.word == "a"), None) for record in records]
        tried.update(filter(None, stands))
        hits.update(filter(None, (stands[i] for i in again)))
        for i in again:
            times[i] += 1
        acquired.recaptures.again(number, again)
        acquired.add(batch)
        records += batch
        times += [1] * len(batch)
    for word in acquired.words:
        seen = acquired.recaptures.sightings(np.array([acquired.number(word)]))
        holds = [any(t.word == word for t in record) for record in records]
        of_word = [n for n, held in zip(times, holds, strict=True) if held]
        counts = [column.sum() for column in seen[:3]]
        assert counts == [len(of_word), sum(of_word), of_word.count(1)]
        assert seen.every.tolist() == [[sum(times), times.count(1)]]
    mean = (hits.total() + 1) / (tried.total() + 1)
    rates = acquired.recaptures.rates.tolist()
    for place in tried:
        assert pytest.approx((hits[place] + mean) / (tried[place] + 1)) in rates


def test_keyword_places_are_learnt():
    recaptures = Recaptures(places=2)
    for _ in range(50):
        recaptures.add(np.array([0, 1]), np.array([0, 1]))  # one in the title, one in the body
    recaptures.again(0, range(50))
    recaptures.again(1, [])
    title, body = recaptures.rates
    assert title > 0.95
    assert body < 0.05
    seen = recaptures.sightings(np.array([0, 1]))
    expected = seen.expected(recaptures.rates)
    assert expected[0] > 15 * expected[1]


def test_repeated_records_promise_less():
    """Good-Turing: the unknown share is the share of records captured once."""
    singles = np.array([[50.0], [0.0]])
    seen = Sightings(
        df=np.full((2, 1), 50.0),
        captures=np.array([[50.0], [150.0]]),
        singles=singles,
        every=np.full((2, 2), [199.0, 99.0]),
    )
    unknown = (singles[:, 0] + PRIOR / 2) / (np.array([50.0, 150.0]) + PRIOR)
    assert seen.expected(np.ones(1)) == pytest.approx(50 * unknown / (1 - unknown))
    assert unknown.tolist() == pytest.approx([60 / 70, 10 / 170])


def test_recapture_weighs_past_promises():
    acquired = acquired_of(*["a b"] * 2, *["b"] * 6)
    every = np.array([[9.0, 4.0]])
    first, second = (
        Sightings(np.full((1, MOST_PLACES), n), *np.zeros((2, 1, MOST_PLACES)), every)
        for n in (1.0, 3.0)
    )
    trials = [Trial(2, ALIKE, first, 8), Trial(3, ALIKE, second, 4)]
    values = expected_new(acquired, trials, np.array([0, 1]))
    promise = 24 * 0.5 / 0.5  # of one record in each place, found by any query
    scale = (8 + 4) / (promise * (1 + 3))
    own = acquired.recaptures.sightings(np.array([0, 1])).expected(acquired.recaptures.rates)
    assert values == pytest.approx(own * scale, rel=0.01)


# The crawl of one database


def test_seeds_first_no_repeats():
    surfacing = Surfacing(["x", "y", "x"], budget=9)
    assert surfacing.next() == "x"
    surfacing.book("x", [[token("x"), token("often")], [token("often"), token("rare")]])
    assert surfacing.next() == "y"
    surfacing.book("y", [])
    assert surfacing.next() == "often"
    surfacing.book("often", [], [0, 1])
    assert surfacing.next() == "rare"
    surfacing.book("rare", [], [1])
    assert surfacing.next() is None
    assert surfacing.ended == NO_KEYWORD


def test_later_seeds_are_last_resort():
    surfacing = Surfacing(["x", "y", "word"], first=1, budget=9)
    assert surfacing.next() == "x"
    surfacing.book("x", [[token("word")]])
    assert surfacing.next() == "word"
    surfacing.book("word", [], [0])
    assert surfacing.next() == "y"
    surfacing.book("y", [])
    assert surfacing.next() is None


def test_rare_words_are_last_resort():
    surfacing = Surfacing(["x"], budget=9)
    surfacing.next()
    surfacing.book("x", [[token("twice"), token("once")], [token("twice")]])
    words = [surfacing.acquired.words[number] for number in surfacing.candidates()]
    assert words == ["twice"]
    assert surfacing.next() == "twice"
    surfacing.book("twice", [], [0, 1])
    assert surfacing.next() == "once"


def test_it_ends_with_its_budget():
    surfacing = Surfacing("abc", budget=2)
    for word in ("a", "b"):
        assert surfacing.next() == word
        surfacing.book(word, [])
    assert surfacing.next() is None
    assert surfacing.ended == BUDGET


def test_ten_poor_queries_end_it():
    surfacing = Surfacing([f"s{i}" for i in range(20)], first=20, budget=30, min_yield=1)
    counts = [5] + [1] * 5 + [0] * 14
    for i in range(20):
        word = surfacing.next()
        if word is None:
            break
        surfacing.book(word, [[token(f"w{i}{j}")] for j in range(counts[i])])
    assert surfacing.ended == DRY
    assert i == 11  # queries 1 to 10 returned ten records; queries 2 to 11, five


def test_features_freeze_at_issue():
    surfacing = Surfacing(["x", "y"], budget=9)
    surfacing.next()
    surfacing.book("x", [[token("y")], [token("z")], [token("z")]])
    surfacing.next()
    surfacing.book("y", [[token("y")]] * 50)
    trial = surfacing.trials[1]
    assert trial.new == 50
    now = features(surfacing.acquired, np.array([trial.number]))
    assert trial.features.numeric[0, 1] < now.numeric[0, 1]
