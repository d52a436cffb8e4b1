import numpy as np
import pytest

from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import (
    ACTION,
    BUCKETED,
    LINK,
    NEIGHBOURHOOD,
    NO_PATH,
    SEED_PATH,
    STATE,
    STATIC,
    TABLE,
    Unit,
    bucket,
)
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore


def test_figure_1_of_the_paper():
    """Seed, A relevant, C not; D is on a domain with 3 relevant pages of 4, classifier says 0.3."""
    store = SampleStore(DomainLedger())
    no_features = np.zeros((1, 3), dtype=np.float32)
    row = NO_PARENT
    for name, reward in (("seed", 1.0), ("a", 1.0), ("c", 0.0)):
        (row,) = store.add(row, Outlinks([f"http://{name}.test/"], [""], no_features))
        store.lease(row)
        store.finish(row, store.path_after(row, reward))
    wikipedia = store.domain_of("http://en.wikipedia.org/")
    for reward in (1.0, 1.0, 1.0, 0.0):
        store.ledger.book_page(wikipedia, reward)
    d = store.add(
        row,
        Outlinks(["http://en.wikipedia.org/d"], ["d"], np.array([[0, 0, 0.3]], dtype=np.float32)),
    )
    np.testing.assert_allclose(
        store.features(d)[0], [0, 1 / 2, 2 / 3, 0, 0, 0.3, 3 / 4, 1, 0], rtol=1e-6
    )


def test_answer_that_is_no_page_counts_as_relevant():
    assert SEED_PATH.features == (1, 1, 1)


def test_seed_is_chosen_without_a_path():
    assert NO_PATH.features == (0, 0, 0)


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ((1, 0, 0, 1, 0), [1, 1 / 2, 1 / 3, 1, 1 / 2]),
        ((0, 0, 1, 0), [0, 0, 1, 1 / 2]),  # before the first relevant page
    ],
)
def test_distance_restarts_at_relevant_page(rewards, expected):
    path, closeness = NO_PATH, []
    for reward in rewards:
        path = path.extended(reward)
        closeness.append(path.features[1])
    assert closeness == expected
    assert path.features[2] == sum(rewards) / len(rewards)


@pytest.mark.parametrize(
    ("value", "edge"), [(0.0, 0.0), (0.05, 0.0), (0.1, 0.1), (0.3, 0.3), (2 / 3, 0.6), (1.0, 0.9)]
)
def test_buckets_cover_three_features(value, edge):
    x = np.full((1, len(TABLE)), value, dtype=np.float32)
    expected = x.copy()
    expected[0, [1, 2, 6]] = edge
    np.testing.assert_allclose(bucket(x), expected, rtol=1e-6)


def test_columns_follow_the_table():
    assert (slice(0, 3), slice(3, 6), slice(6, 8)) == (STATE, ACTION, NEIGHBOURHOOD)
    assert (STATIC, BUCKETED, LINK) == (6, (1, 2, 6), 8)
    assert [feature.number for feature in TABLE] == [1, 2, 3, 4, 5, 6, 7, 8, None]


@pytest.mark.parametrize("feature", TABLE, ids=lambda feature: feature.name)
def test_feature_has_words_and_grid(feature):
    is_binary = feature.unit is Unit.BINARY
    assert len(feature.rule) == len(feature.brief) == 1 + is_binary
    assert all(("{}" in words) is not is_binary for words in (*feature.rule, *feature.brief))
    assert feature.label
    assert feature.meaning
    assert list(feature.grid) == sorted(set(feature.grid))
    assert feature.live is (TABLE.index(feature) >= STATIC)
