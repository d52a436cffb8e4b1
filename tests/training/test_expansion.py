from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.topic.classifier import WordVectors
from tres_scrapy.training.recipe import distinctive_words, expand


@given(st.integers(0, 10_000))
def test_expansion_is_algorithm_1(seed: int) -> None:
    """P 2.3: b is the mean cosine of ordered keyword pairs, K' the words at b or above."""
    rng = np.random.default_rng(seed)
    words = [f"{a}{b}" for a in "bcdfg" for b in "klmnp"]
    vectors = WordVectors(words, rng.normal(1, 1, size=(25, 5)).astype(np.float32))
    unit = dict(zip(words, vectors.unit(words).astype(np.float64), strict=True))
    keywords = words[:4]
    expanded, b = expand(keywords, [*words[2:], "unknown"], vectors)
    pairs = permutations(keywords, 2)
    assert b == pytest.approx(np.mean([unit[k] @ unit[m] for k, m in pairs]), abs=1e-6)
    means = {word: np.mean([unit[word] @ unit[k] for k in keywords]) for word in words[4:]}
    assert all((word in expanded) == (mean >= b) for word, mean in means.items())
    assert expanded.isdisjoint(keywords)


def test_frequent_word_is_in_five_texts() -> None:
    texts = [["wine", "milk"], ["wine"], ["wine"], ["wine"], ["milk"] * 9 + ["wine"]]
    assert distinctive_words(texts) == ["wine"]


def test_distinctive_word_has_fourfold_share() -> None:
    relevant = [["wine", "using", "milk"]] * 8 + [[]] * 2
    others = [["milk", "using"]] * 4 + [["using"]] + [[]] * 15
    assert distinctive_words(relevant, others) == ["milk", "wine"]


def test_stop_words_are_ignored() -> None:
    vectors = WordVectors(["the", "wine", "beer"], np.ones((3, 2), np.float32))
    expanded, b = expand(["wine", "beer", "missing"], ["the", "wine"], vectors)
    assert expanded == set()
    assert b == pytest.approx(1)


def test_expansion_takes_two_known_keywords() -> None:
    vectors = WordVectors(["wine"], np.ones((1, 2), np.float32))
    with pytest.raises(ValueError, match=r"\['wine'\] have a vector"):
        expand(["wine", "missing"], ["wine"], vectors)
