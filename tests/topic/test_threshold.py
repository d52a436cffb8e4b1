import numpy as np
import pytest

from tres_scrapy.topic.classifier import sigmoid
from tres_scrapy.topic.threshold import (
    DOUBT,
    PLACES,
    SLOPES,
    STEEPNESS,
    STEEPNESS_DOUBT,
    evidence,
    expected_place,
    find_threshold,
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


NONE = np.zeros(0), np.zeros(0, dtype=bool)


def drawn(rng, count=2000):
    """Scores of pages, and labels by a curve whose threshold is 1.5."""
    scores = rng.normal(size=count)
    return scores, rng.random(count) < 1 / (1 + np.exp(-4 * (scores - 1.5)))


def test_threshold_without_answers_is_the_expected_one(rng):
    scores, _ = drawn(rng)
    guess = expected_place(scores, 200)
    assert (scores >= guess).sum() == pytest.approx(200, abs=5)
    found = find_threshold(scores, guess, *NONE)
    assert found.place == pytest.approx(guess)
    assert (found.precision, found.recall) == (None, None)


def test_pages_like_likely_ones_are_relevant(rng):
    """Few pages have the keywords, but many look like those that have them."""
    scores = np.concatenate([rng.normal(3, 0.3, 400), rng.normal(0, 0.3, 600)])
    likely = np.where((scores > 2) & (rng.random(1000) < 0.2), 0.9, 0.02)
    called = (scores >= expected_place(scores, likely.sum(), likely)).sum()
    assert likely.sum() + 20 < called <= 400


def test_answers_move_the_threshold(rng):
    scores, labels = drawn(rng)
    asked = np.flatnonzero(scores > 0.5)[:100]
    guess = expected_place(scores, 600)
    found = find_threshold(scores, guess, scores[asked], labels[asked])
    assert found.place == pytest.approx(1.5, abs=0.3)


def test_blurred_scores_call_more_pages_relevant(rng):
    """Where F1 is highest, fewer than half of the pages may be relevant."""
    scores = rng.normal(size=4000)
    labels = rng.random(4000) < 1 / (1 + np.exp(-2 * (scores - 1.5)))
    asked = rng.choice(4000, 400, replace=False)

    def f1(place):
        called = scores >= place
        return 2 * (labels & called).sum() / (labels.sum() + called.sum())

    place = find_threshold(scores, expected_place(scores, 600), scores[asked], labels[asked]).place
    best = max(map(f1, np.linspace(-1, 2.5, 100)))
    assert f1(place) > best - 0.02 > f1(1.5) + 0.02
    assert place < 1.2


def test_answers_no_before_a_yes_move_the_threshold_little(rng):
    scores, _ = drawn(rng)
    guess, asked = expected_place(scores, 100), np.argsort(-scores)
    few, many = (
        find_threshold(scores, guess, scores[asked[:count]], np.zeros(count, dtype=bool))
        for count in (5, 100)
    )
    assert guess < few.place < scores.max() < many.place
    assert (few.precision, many.recall) == (None, None)


def test_intervals_hold_in_most_cases(rng):
    inside = []
    for _ in range(30):
        scores, labels = drawn(rng)
        asked = rng.choice(np.flatnonzero(scores > 0.5), 20, replace=False)
        found = find_threshold(scores, expected_place(scores, 200), scores[asked], labels[asked])
        called = scores >= found.place
        for share, true in (
            (found.precision, labels[called].mean()),
            (found.recall, labels[called].sum() / labels.sum()),
        ):
            assert share.low <= share.value <= share.high
            inside.append(share.low <= true <= share.high)
    assert np.mean(inside) > 0.7


def test_nothing_is_relevant_where_nothing_is_expected(rng):
    scores, _ = drawn(rng)
    assert expected_place(scores, 0.0) > scores.max()


def test_equal_scores_are_no_error():
    guess = expected_place(np.zeros(30), 5)
    found = find_threshold(np.zeros(30), guess, np.zeros(2), np.array([True, False]))
    assert found.place == pytest.approx(0.0, abs=0.5)
    assert str(found.precision).endswith(" %)")


def test_evidence_is_for_scores_that_explain_the_answers():
    scores = np.linspace(-2, 2, 40)
    rows, labels = np.array([5, 12, 30, 36]), np.array([False, False, True, True])
    well = evidence(scores, 0.0, scores[rows], labels)
    badly = evidence(scores, 0.0, -scores[rows], labels)
    nothing = evidence(scores, 0.0, scores[:0], labels[:0])
    assert badly < well < nothing == 0.0
    # it is the mean over curves of how likely the answers are, by their prior
    place = PLACES[:, None] * scores.std()
    slope = SLOPES[None, :] / scores.std()
    prior = np.exp(
        -0.5 * (PLACES[:, None] / DOUBT) ** 2
        - 0.5 * (np.log(SLOPES / STEEPNESS)[None, :] / STEEPNESS_DOUBT) ** 2
    )
    likely = np.ones_like(prior)
    for row, label in zip(rows, labels, strict=True):
        p = sigmoid(slope * (scores[row] - place))
        likely = likely * (p if label else 1 - p)
    assert well == pytest.approx(np.log((prior * likely).sum() / prior.sum()))
