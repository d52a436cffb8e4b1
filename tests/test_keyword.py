from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.topic.keyword import KeywordSet, expand
from tres_scrapy.topic.vectors import WordVectors

FOOD = KeywordSet(["cheese", "Wine", "meat"], ["Slow food", "jell-o"])


@pytest.mark.parametrize(
    "text", ["The best CHEESE.", "wine", "on slow, FOOD culture", "Jell-O salad", "meat/fish"]
)
def test_a_text_with_a_keyword_or_phrase_is_found(text: str) -> None:
    assert FOOD.in_text(text)


@pytest.mark.parametrize("text", ["", "cheeses", "swine", "slow cooked food", "yellow foods", "12"])
def test_a_text_without_whole_keywords_is_not_found(text: str) -> None:
    assert not FOOD.in_text(text)


@pytest.mark.parametrize(
    "url",
    [
        "https://wine.example.org/",
        "https://example.org/shop/cheese-board.html",
        "https://www.bestcheeseshop.com/",
        "https://example.org/CH%45ESE",
        "https://example.org/slow_food",
    ],
)
def test_a_keyword_in_host_or_path_is_found(url: str) -> None:
    assert FOOD.in_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/?q=cheese",
        "https://countymeath.ie/swines",
        "https://example.org/#cheese",
        "http://[bad/cheese",
    ],
)
def test_a_keyword_elsewhere_or_a_short_one_inside_a_word_is_not_found(url: str) -> None:
    assert not FOOD.in_url(url)


def test_lines_are_words_or_phrases() -> None:
    keywords = KeywordSet.parse(["Cheese", "", " slow food ", "jell-o", "cheese"])
    assert keywords.words == {"cheese"}
    assert keywords.phrases == ("slow food", "jell-o")


@given(st.integers(0, 10_000))
def test_expansion_is_algorithm_1(seed: int) -> None:
    """P 2.3: b is the mean cosine of ordered keyword pairs, K' the words at b or above."""
    rng = np.random.default_rng(seed)
    words = [f"{a}{b}" for a in "bcdfg" for b in "klmnp"]
    vectors = WordVectors(words, rng.normal(1, 1, size=(25, 5)).astype(np.float32))
    unit = dict(zip(words, vectors.unit(words).astype(np.float64), strict=True))
    keywords = words[:4]
    expanded, b = expand(keywords, [*words[2:], "unknown"], vectors)
    assert b == pytest.approx(np.mean([unit[k] @ unit[m] for k, m in permutations(keywords, 2)]))
    means = {word: np.mean([unit[word] @ unit[k] for k in keywords]) for word in words[4:]}
    assert all((word in expanded) == (mean >= b) for word, mean in means.items())
    assert expanded.isdisjoint(keywords)


def test_stop_words_and_unknown_keywords_take_no_part() -> None:
    vectors = WordVectors(["the", "wine", "beer"], np.ones((3, 2), np.float32))
    expanded, b = expand(["wine", "beer", "missing"], ["the", "wine"], vectors)
    assert expanded == set()
    assert b == pytest.approx(1)


def test_expansion_takes_two_known_keywords() -> None:
    vectors = WordVectors(["wine"], np.ones((1, 2), np.float32))
    with pytest.raises(ValueError, match=r"\['wine'\] are known"):
        expand(["wine", "missing"], ["wine"], vectors)
