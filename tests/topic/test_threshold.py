import numpy as np
import pytest

from tres_scrapy.topic.threshold import find_threshold


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
    found = find_threshold(scores, 200, *NONE)
    assert (scores >= found.place).sum() == pytest.approx(200, abs=5)
    assert found.recall.high - found.recall.low > 0.3


def test_answers_move_the_threshold(rng):
    scores, labels = drawn(rng)
    asked = np.flatnonzero(scores > 0.5)[:100]
    found = find_threshold(scores, 600, scores[asked], labels[asked])
    assert found.place == pytest.approx(1.5, abs=0.3)


def test_blurred_scores_call_more_pages_relevant(rng):
    """Where F1 is highest, fewer than half of the pages may be relevant."""
    scores = rng.normal(size=4000)
    labels = rng.random(4000) < 1 / (1 + np.exp(-2 * (scores - 1.5)))
    asked = rng.choice(4000, 400, replace=False)

    def f1(place):
        called = scores >= place
        return 2 * (labels & called).sum() / (labels.sum() + called.sum())

    place = find_threshold(scores, 600, scores[asked], labels[asked]).place
    best = max(map(f1, np.linspace(-1, 2.5, 100)))
    assert f1(place) > best - 0.02 > f1(1.5) + 0.02
    assert place < 1.2


def test_no_answer_yes_calls_nothing_relevant(rng):
    scores, _ = drawn(rng)
    asked = np.argsort(-scores)[:30]
    found = find_threshold(scores, 100, scores[asked], np.zeros(30, dtype=bool))
    assert found.place > scores.max()


def test_intervals_hold_in_most_cases(rng):
    inside = []
    for _ in range(30):
        scores, labels = drawn(rng)
        asked = rng.choice(np.flatnonzero(scores > 0.5), 20, replace=False)
        found = find_threshold(scores, 200, scores[asked], labels[asked])
        called = scores >= found.place
        for share, true in (
            (found.precision, labels[called].mean()),
            (found.recall, labels[called].sum() / labels.sum()),
        ):
            assert share.low <= share.middle <= share.high
            inside.append(share.low <= true <= share.high)
    assert np.mean(inside) > 0.7


def test_nothing_is_relevant_where_nothing_is_expected(rng):
    scores, _ = drawn(rng)
    assert find_threshold(scores, 0.0, *NONE).place > scores.max()


def test_equal_scores_are_no_error():
    found = find_threshold(np.zeros(30), 5, np.zeros(2), np.array([True, False]))
    assert found.place == pytest.approx(0.0, abs=0.5)
    assert str(found.precision).endswith(" %)")
