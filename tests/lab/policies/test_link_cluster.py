from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.lab.policies.sb_classifier import (
    DIMENSIONS,
    SIMILARITY,
    LinkClusters,
    vector_of,
)

MENU = "html body div.#main ul.menu li a"
TEXT = "html body div.#main p a"


def dense(path):
    """Return the vector of a path, written out."""
    vector = np.zeros(DIMENSIONS)
    vector[vector_of(path).dimensions] = vector_of(path).values
    return vector


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


def test_vector_is_the_share_of_each_pair():
    vector = vector_of("html body div div div a")
    assert vector.values.sum() == pytest.approx(1)
    assert sorted(vector.values * 7) == pytest.approx([1, 1, 1, 1, 1, 2])
    assert (np.diff(vector.dimensions) > 0).all()
    assert vector.dimensions.max() < DIMENSIONS


def test_order_and_ends_of_a_path_count():
    assert cosine(dense("a b c"), dense("c b a")) == 0
    assert cosine(dense("a b"), dense("a b c")) == pytest.approx(2 / np.sqrt(3 * 4))


def test_equal_paths_are_one_cluster():
    clusters = LinkClusters()
    assert [clusters.add(path) for path in (MENU, TEXT, MENU, "", TEXT, "")] == [0, 1, 0, 2, 1, 2]
    assert len(clusters) == 3


def test_names_part_clusters():
    first, second = (f"html body div.#{name} ul.{name} li.{name} a.{name}" for name in "xy")
    clusters = LinkClusters()
    assert [clusters.add(first), clusters.add(second)] == [0, 1]
    assert clusters.add(first.replace(" a.x", " a")) == 0, "two of seven pairs differ"


def test_near_path_moves_the_centroid():
    """The third path is near the second alone, but joins it because the centroid has moved."""
    paths = ["a b c d e f g h", "x b c d e f g h", "x y c d e f g h"]
    assert cosine(dense(paths[0]), dense(paths[2])) < SIMILARITY
    clusters = LinkClusters()
    assert [clusters.add(path) for path in paths] == [0, 0, 0]


def test_many_clusters_are_kept():
    clusters, paths = LinkClusters(), [f"t{i} u{i} v{i}" for i in range(200)]
    assert [clusters.add(path) for path in paths] == list(range(200))
    assert [clusters.add(path) for path in paths] == list(range(200))


STEPS = st.lists(st.sampled_from(["div", "ul", "li.x", "li.y", "p", "div.#z"]), max_size=6)


@given(st.lists(STEPS.map(lambda steps: " ".join(["html", *steps, "a"])), max_size=40))
def test_links_join_the_nearest_centroid(paths):
    """Against means of whole vectors, each compared with each."""
    clusters, members = LinkClusters(), []
    for path in paths:
        vector = dense(path)
        cosines = [cosine(vector, np.mean(each, axis=0)) for each in members]
        found = clusters.cosines(vector_of(path))
        assert found == pytest.approx(cosines, abs=1e-5)
        cluster = clusters.add(path)
        best = max(cosines, default=0)
        if abs(best - SIMILARITY) > 1e-5:  # else rounding may decide
            assert (cluster == len(members)) == (best < SIMILARITY)
        if cluster == len(members):
            members.append([])
        else:
            assert cosines[cluster] == pytest.approx(best, abs=1e-5)
        members[cluster].append(vector)
