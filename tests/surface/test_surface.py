from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.lab.surface_selectors import (
    GenericFrequency,
    Paper,
    Random,
    YieldRatio,
    Zipf,
    df_ranks,
    q_values,
    recaptured_total,
    response_sizes,
    rewards,
    zipf_mandelbrot,
)
from tres_scrapy.lab.surface_simulation import Oracle, Search, SimulatedDatabase, surface
from tres_scrapy.surface.acquired import MOST_PLACES, PRIOR, Acquired, Recaptures, Sightings, Token
from tres_scrapy.surface.keyword_feature import Features, features, kernel, statistical_features
from tres_scrapy.surface.selector import Recapture, Trial, Trials
from tres_scrapy.surface.settings import SELECTORS
from tres_scrapy.surface.surfacing import BUDGET, DRY, NO_KEYWORD, Surfacing

TITLES_ONLY, FULL_TEXT = Search(full_text=False, cap=50), Search(full_text=True, cap=None)
ALIKE = Features(np.zeros((1, 6)), np.zeros((1, 2), np.int64))
UNSEEN = Sightings(*np.zeros((3, 1, MOST_PLACES)), np.zeros((1, 2)))
tokens = st.builds(
    Token, st.sampled_from("abcdefgh"), st.sampled_from(["h1", "p"]), st.integers(0, 9),
    st.sampled_from(["noun", "verb"]),
)  # fmt: skip


def token(word, place="title", depth=1, kind="noun"):
    return Token(word, place, depth, kind)


def trials_of(*rows):
    """Trials of keywords that are all alike, each (share, known, found, new)."""
    trials = Trials()
    for number, row in enumerate(rows):
        trials.add(Trial(number, ALIKE, *row, UNSEEN))
    return trials


def acquired_of(*records):
    acquired = Acquired()
    acquired.add([[token(word) for word in record.split()] for record in records])
    return acquired


@pytest.fixture(scope="module")
def database():
    return SimulatedDatabase(0, records=2000)


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
    statistical = statistical_features(acquired, np.arange(2)).numeric
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


# Eq. 5 to 7


def test_eq_5_and_6():
    sizes = response_sizes(np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([40.0, 80.0]))
    assert sizes.tolist() == [70, 40]
    assert rewards(sizes, np.array([20, 45]), 1000).tolist() == [0.05, -0.005]


@given(st.integers(2, 7), st.integers(0, 999), st.floats(0.1, 1))
def test_eq_7_excludes_own_keyword(n, seed, gamma):
    random = np.random.default_rng(seed)
    total, acquired = 1000.0, int(random.integers(1, 1000))
    df = random.integers(0, 200, n)
    r = rewards(random.random(n) * 500, df, total)
    expected = []
    for i in range(n):
        following = acquired + r[i] * total
        brackets = [
            df[j] / total + r[j] - following * (df[j] + r[j] * total) / total**2
            for j in range(n)
            if j != i
        ]
        expected.append(r[i] + gamma * max(brackets))
    assert q_values(r, df, acquired, total, gamma) == pytest.approx(expected)


def test_lookahead_rarely_changes_ranking():
    """The consequence of Eq. 7: dQ/dr > 0 whatever the keyword, so that h = 1 gains nothing."""
    random = np.random.default_rng(1)
    df = random.integers(0, 100, 50)
    r = rewards(random.random(50) * 300, df, 10_000)
    others = np.delete(np.arange(50), (df / 10_000 + r).argmax())
    q = q_values(r, df, 2000, 10_000)
    assert np.argsort(q[others]).tolist() == np.argsort(r[others]).tolist()


def test_single_keyword_has_no_lookahead():
    assert q_values(np.array([0.1]), np.array([3]), 10, 100).tolist() == [0.1]


# Selectors


def asked(database, search, selector, queries=25):
    """Return the keywords that a selector queries."""
    answers, words = database.index(search), []
    surfacing = Surfacing(selector, database.seeds(5, np.random.default_rng(0)), budget=queries)
    known = {}
    while (word := surfacing.next()) is not None:
        words.append(word)
        found = answers.get(word, np.zeros(0, np.int64)).tolist()
        again = [known[row] for row in found if row in known]
        new = [row for row in found if row not in known]
        known |= {row: number for number, row in enumerate(new, len(known))}
        surfacing.book(word, [database.records[row] for row in new], again)
    return words


def test_rl_reduces_to_zipf(database):
    """The first degenerate case in the paper."""

    class Sized(Zipf):
        def values(self, acquired, trials, candidates):
            ranks = df_ranks(acquired.df)
            self._fit(ranks[trials.numbers], trials.found)
            sizes = np.exp(zipf_mandelbrot(ranks[candidates], *self.law))
            return rewards(sizes, acquired.df[candidates], len(database))

    assert asked(database, TITLES_ONLY, Sized()) == asked(database, TITLES_ONLY, Zipf())


def test_rl_reduces_to_gf(database):
    """The second degenerate case: R^ := DF, and Eq. 6 without DF."""

    class Frequent(GenericFrequency):
        def values(self, acquired, trials, candidates):
            nothing = np.zeros(len(candidates), np.int64)
            return rewards(acquired.df[candidates].astype(float), nothing, len(database))

    frequent = asked(database, TITLES_ONLY, Frequent())
    assert frequent == asked(database, TITLES_ONLY, GenericFrequency())


def test_yield_ratio_learns_from_alike():
    acquired = acquired_of(*["a b"] * 2, *["b"] * 6)
    alike = type("Alike", (YieldRatio,), {})(describe=lambda acquired, n: Features(
        np.zeros((len(n), 6)), np.zeros((len(n), 2), np.int64)
    ))  # fmt: skip
    trials = trials_of((0.1, 10, 40, 30), (0.2, 20, 40, 20))
    values = alike.values(acquired, trials, np.array([0, 1]))
    assert values == pytest.approx([0.25 * (300 + 100) / 2, 1.0 * (300 + 100) / 2], rel=1e-5)


def test_known_total_corrects_yield():
    acquired = acquired_of(*["a b"] * 2, *["b"] * 6)
    constant = Features(np.zeros((2, 6)), np.zeros((2, 2), np.int64))
    selector = YieldRatio(lambda *_: 100.0, cap=20, ahead=False, describe=lambda *_: constant)
    values = selector.values(acquired, trials_of((0.1, 50, 9, 8)), np.array([0, 1]))
    ratio = 8 / (0.1 * 0.5)
    assert values == pytest.approx(np.array([0.2, 0.2]) * 0.92 * ratio / 100, rel=1e-5)


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
    trials = Trials()
    trials.add(Trial(2, ALIKE, 0.1, 10, 9, 8, first))
    trials.add(Trial(3, ALIKE, 0.1, 10, 9, 4, second))
    values = Recapture().values(acquired, trials, np.array([0, 1]))
    promise = 24 * 0.5 / 0.5  # of one record in each place, found by any query
    scale = (8 + 4) / (promise * (1 + 3))
    own = acquired.recaptures.sightings(np.array([0, 1])).expected(acquired.recaptures.rates)
    assert values == pytest.approx(own * scale, rel=0.01)


def test_literal_reading_recomputes_features():
    """Executed full-text queries then have DF = |R|, so the model learns that no record is new."""
    selector = Paper(lambda *_: 1000.0, ahead=False)
    surfacing = Surfacing(selector, ["a"])
    surfacing.book(surfacing.next(), [[token("a"), token(f"b{i % 2}")] for i in range(8)])
    values = selector.values(surfacing.acquired, surfacing.trials, surfacing.candidates())
    assert values == pytest.approx([(8 - 4) / 1000] * 2)


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_values_each_candidate(name):
    surfacing = Surfacing(SELECTORS[name](0), ["x"])
    surfacing.book(surfacing.next(), [[token("a"), token("b")], [token("b")], [token("c")]])
    values = SELECTORS[name](0).values(surfacing.acquired, surfacing.trials, surfacing.candidates())
    assert values.shape == (3,)
    assert np.isfinite(values).all()
    assert surfacing.next() in {"a", "b", "c"}


def test_zipf_fit_recovers_law():
    zipf, ranks = Zipf(), np.array([1.0, 5, 20, 80, 300])
    zipf._fit(ranks, 900 * (ranks + 10) ** -0.8)
    assert np.exp(zipf.law[0]) == pytest.approx(900, rel=0.01)
    assert zipf.law[1:] == pytest.approx([10, 0.8], rel=0.01)
    before = zipf.law
    zipf._fit(ranks, np.zeros(5))
    assert zipf.law is before


def test_recapture_estimates_database_size():
    random, known, trials = np.random.default_rng(0), set(), []
    for _ in range(60):
        drawn = set(random.choice(1000, 50, replace=False).tolist())
        trials.append((0.1, len(known), 50, len(drawn - known)))
        known |= drawn
    assert recaptured_total(trials_of(*trials), len(known)) == pytest.approx(1141, rel=0.15)
    assert recaptured_total(trials_of((0.1, 0, 5, 5)), 5) == np.inf


@pytest.mark.slow
def test_random_is_drawn_from_its_seed(database):
    one, again, other = (asked(database, FULL_TEXT, Random(seed)) for seed in (1, 1, 2))
    assert one == again != other


# The crawl of one database


def test_seeds_first_no_repeats():
    surfacing = Surfacing(GenericFrequency(), ["x", "y", "x"])
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
    surfacing = Surfacing(GenericFrequency(), ["x", "y", "word"], first=1)
    assert surfacing.next() == "x"
    surfacing.book("x", [[token("word")]])
    assert surfacing.next() == "word"
    surfacing.book("word", [], [0])
    assert surfacing.next() == "y"
    surfacing.book("y", [])
    assert surfacing.next() is None


def test_rare_words_are_last_resort():
    surfacing = Surfacing(GenericFrequency(), ["x"], min_df=2)
    surfacing.next()
    surfacing.book("x", [[token("twice"), token("once")], [token("twice")]])
    words = [surfacing.acquired.words[number] for number in surfacing.candidates()]
    assert words == ["twice"]
    assert surfacing.next() == "twice"
    surfacing.book("twice", [], [0, 1])
    assert surfacing.next() == "once"


def test_it_ends_with_its_budget():
    surfacing = Surfacing(GenericFrequency(), "abc", budget=2)
    for word in ("a", "b"):
        assert surfacing.next() == word
        surfacing.book(word, [])
    assert surfacing.next() is None
    assert surfacing.ended == BUDGET


def test_ten_poor_queries_end_it():
    surfacing = Surfacing(GenericFrequency(), [f"s{i}" for i in range(20)], min_yield=1)
    counts = [5] + [1] * 5 + [0] * 14
    for i in range(20):
        word = surfacing.next()
        if word is None:
            break
        surfacing.book(word, [[token(f"w{i}{j}")] for j in range(counts[i])])
    assert surfacing.ended == DRY
    assert i == 11  # queries 1 to 10 returned ten records; queries 2 to 11, five


def test_features_freeze_at_issue():
    surfacing = Surfacing(GenericFrequency(), ["x", "y"])
    surfacing.next()
    surfacing.book("x", [[token("y")], [token("z")], [token("z")]])
    surfacing.next()
    surfacing.book("y", [[token("y")]] * 50)
    trial = surfacing.trials.rows[1]
    assert (trial.share, trial.known, trial.found, trial.new) == (pytest.approx(1 / 3), 3, 50, 50)
    now = features(surfacing.acquired, np.array([trial.number]))
    assert trial.features.numeric[0, 1] < now.numeric[0, 1]


# The simulated database


def test_search_is_capped_by_rank(database):
    titles = database.index(Search(full_text=False, cap=None))
    capped = database.index(Search(full_text=False, cap=10))
    word = max(titles, key=lambda word: len(titles[word]))
    holders = {
        i
        for i, record in enumerate(database.records)
        if any(t.word == word and t.place in {"title", "author"} for t in record)
    }
    assert set(titles[word].tolist()) == holders
    assert capped[word].tolist() == sorted(holders, key=lambda i: database.rank[i])[:10]
    assert "category0" not in titles
    assert "category0" in database.index(FULL_TEXT)


@pytest.mark.slow
def test_database_follows_its_seed():
    one, again, other = (SimulatedDatabase(seed, records=50) for seed in (3, 3, 4))
    assert one.records == again.records != other.records


@pytest.mark.slow
def test_yield_ratio_wins_on_titles():
    """The claim of the paper in half the queries: benchmarks/surface.py has the whole."""
    database = SimulatedDatabase(0)
    answers = database.index(Search(full_text=False, cap=100))
    selectors = {
        "recapture": Recapture(),
        "ratio": YieldRatio(),
        "gf": GenericFrequency(),
        "zipf": Zipf(),
        "random": Random(0),
        "oracle": Oracle(answers, len(database)),
    }
    found = {
        name: int(surface(database, answers, selector, 60).acquired[-1])
        for name, selector in selectors.items()
    }
    assert found["oracle"] > found["ratio"] > 1.15 * found["gf"]
    assert found["ratio"] > 3 * max(found["zipf"], found["random"])


def test_outcome_counts_empty_answers(database):
    answers = database.index(TITLES_ONLY)
    outcome = surface(database, answers, Random(0), 30)
    pages = outcome.requests - outcome.acquired[-1]
    assert len(outcome.acquired) == 30
    assert (np.diff(outcome.acquired) >= 0).all()
    assert outcome.empty <= 30 <= pages <= 30 * 5
