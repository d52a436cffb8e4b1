from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.lab.webs.grammar import Word, headline, lead, lexicon, sentence, short
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.vocabulary import tables
from tres_scrapy.page.text import STOP_WORDS, tokenise

WEB = SyntheticWeb("food", seed=1)
KNOWN = sorted(word for word in lexicon().values() if word.kind != "stray")
LINES = st.lists(st.sampled_from(KNOWN), min_size=1, max_size=14)


def words(*texts: str) -> list[Word]:
    return [lexicon()[text] for text in texts]


def content(text: str) -> list[str]:
    return sorted(word for word in tokenise(text) if word not in STOP_WORDS)


@pytest.mark.parametrize("write", [sentence, headline])
@given(line=LINES, seed=st.integers(0, 2**63))
def test_grammar_keeps_words(write, line: list[Word], seed: int) -> None:
    """The reward model reads the same words as without a grammar."""
    assert content(write(line, seed)) == content(" ".join(word.text for word in line))


@given(LINES, st.integers(0, 2**63))
def test_sentences_have_capital_and_stop(line: list[Word], seed: int) -> None:
    text = sentence(line, seed)
    assert re.fullmatch(r"[^a-z].*\.", text)
    assert "  " not in text
    assert " ," not in text


def test_same_seed_writes_same_sentence() -> None:
    line = words("soup", "grated", "serve", "cheese", "creamy", "oven", "bakes")
    assert sentence(line, 3) == sentence(line, 3)
    assert len({sentence(line, seed) for seed in range(20)}) > 5


def test_verb_agrees_with_subject() -> None:
    for seed in range(20):
        assert re.search(r"(?i)recipes serve ", sentence(words("recipes", "serve", "cheese"), seed))
        text = sentence(words("recipe", "serve", "cheese"), seed)
        assert re.search(r"recipe (can|will|may|should|must) serve ", text)


def test_article_fits_next_word() -> None:
    texts = " ".join(sentence(words("oven", "recipe"), seed) for seed in range(40))
    assert re.search(r"\ban oven\b", texts, re.IGNORECASE)
    assert re.search(r"\ba recipe\b", texts, re.IGNORECASE)
    assert not re.search(r"\ba oven\b|\ban recipe\b", texts, re.IGNORECASE)


def test_shown_title_is_short() -> None:
    full = words("crispy", "tofu", "bake", "quickly", "garlic", "oven", "grated")
    kept = [word.text for word in short(full)]
    assert kept == ["crispy", "tofu", "bake", "garlic"]
    assert {headline(short(full), seed) for seed in range(50)} >= {
        "How to bake crispy tofu with garlic",
        "Bake tofu and crispy garlic",
    }
    assert short(words("crispy", "bake")) == []


@given(LINES, st.integers(0, 2**63))
def test_first_sentence_has_the_title_alone(line: list[Word], seed: int) -> None:
    title = headline(line, seed)
    assert content(lead(title)) == content(title)


@pytest.mark.parametrize(
    ("title", "first"),
    [
        ("How to cook marinade", "Here is how to cook marinade."),
        ("Crispy tofu with garlic", "This is all about crispy tofu with garlic."),
        ("Italy and cheese", "This is all about Italy and cheese."),
        ("Soup", "This is all about soup."),
    ],
)
def test_first_sentence_names_the_title(title: str, first: str) -> None:
    assert lead(title) == first


def test_pages_show_their_topic_in_title_and_first_sentence() -> None:
    sites = np.flatnonzero((WEB.sites.size > 50) & (WEB.sites.density > 0.3))[:60].tolist()
    pages = [page for site in sites if (page := WEB.pages.one(site, 20)).relevant[0]]
    titles = [WEB.documents.prose.headings(page)[0] for page in pages]
    food = set(tables()["food"])
    assert np.mean([bool(food & set(tokenise(title))) for title in titles]) > 0.9
    html = WEB.documents.page(pages[0], "")
    assert f"<h1>{titles[0]}</h1><p>{lead(titles[0])}" in html


def test_headline_joins_phrases() -> None:
    found = {headline(words("smoked", "fish", "lemon"), seed) for seed in range(20)}
    assert "Smoked fish with lemon" in found
    assert "Fish and smoked lemon" in found


def test_name_is_written_as_usual() -> None:
    assert "NASA" in sentence(words("nasa", "launched", "spacecraft"), 1)


def test_each_content_word_has_a_kind() -> None:
    known = {word for table in tables().values() for word in table}
    assert known - STOP_WORDS == lexicon().keys()


def test_pages_are_written_in_sentences() -> None:
    sites = np.flatnonzero(WEB.sites.size > 50)[:20].tolist()
    for page in (WEB.pages.one(site, 20) for site in sites):
        lines = WEB.documents.prose.sentences(page, 60)
        assert len(lines) == 5
        assert all(line[0] == line[0].upper() and line.endswith(".") for line in lines)
        shares = [len(content(line)) / len(tokenise(line)) for line in lines]
        assert 0.3 < np.mean(shares) < 0.8
