from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from conftest import PROJECT
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.page.place import tokenise
from tres_scrapy.topic.keyword import KeywordSet

PARTS = ["aa", "bb", "cc"]
FOOD = KeywordSet(["cheese", "Wine", "meat"], ["Slow food", "jell-o"])


@pytest.mark.parametrize(
    "text", ["The best CHEESE.", "wine", "on slow, FOOD culture", "Jell-O salad", "meat/fish"]
)
def test_keyword_or_phrase_is_found(text: str) -> None:
    assert FOOD.in_text(text)


def test_phrase_of_letters_is_found() -> None:
    assert KeywordSet(["aa"], ["c d", "ee f"]).in_text("b C. d")
    assert not KeywordSet(["aa"], ["c d", "ee f"]).in_text("c f d")


@pytest.mark.parametrize("text", ["", "cheeses", "swine", "slow cooked food", "yellow foods", "12"])
def test_partial_keyword_is_not_found(text: str) -> None:
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
def test_keyword_in_url_is_found(url: str) -> None:
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
def test_short_keyword_inside_word_is_ignored(url: str) -> None:
    assert not FOOD.in_url(url)


@given(
    words=st.sets(st.text("abc+.(|é", min_size=5, max_size=6), max_size=6),
    text=st.text("abc+.(|é", max_size=30),
)
def test_inner_keyword_is_any_part_of_url(words: set[str], text: str) -> None:
    found = KeywordSet(words).in_url(f"http://a.test/{text}")
    assert found == any(word in f"a.test /{text}" for word in words)


def test_lines_are_words_or_phrases() -> None:
    keywords = KeywordSet.parse(["Cheese", "", " slow food ", "jell-o", "cheese"])
    assert keywords.words == {"cheese"}
    assert keywords.phrases == ("slow food", "jell-o")


def test_commas_separate_keywords() -> None:
    given = KeywordSet.parse(["star, black hole ,Planet,", "# one, two", "galaxy"])
    assert given.words == {"star", "planet", "galaxy"}
    assert list(given.phrases) == ["black hole"]


@pytest.mark.parametrize("line", ["---", "2024", "_"])
def test_line_without_letters_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=f"keyword '{line}' must hold letters"):
        KeywordSet.parse(["cheese", line])


def test_no_lines_are_no_keywords() -> None:
    with pytest.raises(ValueError, match="no keyword"):
        KeywordSet.parse(["", "# cheese"])


def test_phrase_without_letters_never_matches() -> None:
    keywords = KeywordSet(["cheese"], ["---"])
    assert not keywords.in_text("")
    assert not keywords.in_text("--- 2024")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_file_may_hold_comments(tmp_path: Path, encoding: str) -> None:
    lines = "K\u00e4se\n\n  # of the menu\nslow food\n"
    (tmp_path / "keywords.txt").write_text(lines, encoding=encoding)
    keywords = KeywordSet.read(tmp_path / "keywords.txt")
    assert (keywords.words, keywords.phrases) == ({"k\u00e4se"}, ("slow food",))


@pytest.mark.parametrize(
    ("content", "reason"),
    [("K\u00e4se".encode("utf-16"), "decode"), (b"cheese\n---\n", "'---'"), (b"", "no keyword")],
)
def test_file_without_keywords_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "keywords.txt").write_bytes(content)
    with pytest.raises(ValueError, match=f"'keywords.txt': .*{reason}"):
        KeywordSet.read(tmp_path / "keywords.txt")


@given(
    st.lists(st.sampled_from(PARTS)),
    st.sets(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(" ".join), min_size=1),
)
def test_find_and_count_agree(words: list[str], entries: set[str]) -> None:
    """P1 3.4: n_kw counts words and phrases, and keywords within phrases."""
    keywords = KeywordSet.parse(entries)
    places = range(len(words))
    spans = [words[a:b] for a in places for b in range(a + 1, min(a + 3, len(words)) + 1)]
    found = [" ".join(span) for span in spans if " ".join(span) in entries]
    assert keywords.counts(words) == Counter(found)
    assert keywords.in_words(words) == keywords.in_text(" ".join(words)) == bool(found)


@pytest.mark.parametrize("text", ["vitamin D tablets", "programming in Java", "ray tracing"])
def test_single_letters_of_a_phrase_count(text: str) -> None:
    keywords = KeywordSet(["wine"], ["vitamin c", "c++ programming", "x-ray"])
    assert not keywords.in_text(text)
    assert not keywords.in_words(tokenise(text))


def test_signs_do_not_split_phrases() -> None:
    words = tokenise("Jell-O and slow, slow FOOD")
    assert FOOD.counts(words) == {"jell-o": 1, "slow food": 1}


@pytest.mark.parametrize("topic", ["food", "sports", "hardware"])
def test_the_paper_starts_from_these_keywords(topic: str) -> None:
    """Table 2: #KS."""
    path = PROJECT / "models" / topic / "keywords.txt"
    keywords = KeywordSet.read(path)
    assert len(keywords.words) == {"food": 10, "sports": 62, "hardware": 11}[topic]
