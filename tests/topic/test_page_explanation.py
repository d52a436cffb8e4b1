from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tres_scrapy.page.text import Page
from tres_scrapy.topic.bilstm import BiLstm, Network
from tres_scrapy.topic.classifier import TFIDF, BagOfWords, Calibration, Text, WordVectors
from tres_scrapy.topic.explanation import Totals, explain, moving_words
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack

WORDS = ["cheese", "wine", "disk", "cable"]
KEYWORDS = KeywordSet(["cheese", "wine"], ["slow food", "Jell-O mold", "3 +"])


@pytest.fixture
def pack() -> Pack:
    """A linear pack: cheese and wine speak for the topic, disk and cable against it."""
    weights = np.array([[1, 1.5, 1, 2], [2, 1, -2, -1]], dtype=np.float32)
    return Pack(
        "food",
        threshold=0.5,
        keywords=KEYWORDS,
        classifier=BagOfWords(TFIDF, WORDS, weights, 0.25),
        calibration=Calibration(1.5, -0.5),
        language="en",
    )


def document(text: str, title: str = "", language: str = "en", url: str = "a.html") -> Page:
    return Page(url, title, text, (), language)


def test_linear_words_add_up(pack: Pack) -> None:
    (found,) = explain(pack, [document("wine disk disk unknown", "Cheese")], words=9)
    odds = np.log(found.probability / (1 - found.probability))
    assert sum(value for _, value in found.words) == pytest.approx(odds - (1.5 * 0.25 - 0.5))
    assert {word for word, _ in found.words} == {"cheese", "wine", "disk"}


def test_strongest_words_come_first(pack: Pack) -> None:
    (found,) = explain(pack, [document("disk cheese cheese wine")], words=2)
    assert [word for word, _ in found.words] == ["cheese", "disk"]
    assert found.words[0][1] > 0 > found.words[1][1]


def test_network_words_are_found(pack: Pack) -> None:
    vectors = WordVectors(WORDS, np.eye(4, dtype=np.float32))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        pack.classifier = BiLstm(Network(4, hidden=3, dense=3, vocabulary=4), vectors)
    words = moving_words(pack, Text.of("wine disk unknown"), 9)
    assert {word for word, _ in words} == {"wine", "disk"}


def test_zero_words_skip_the_model(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BagOfWords, "contributions", None)
    (found,) = explain(pack, [document("wine")], words=0)
    assert (found.words, found.keywords) == ([], {"wine": 1})


def test_frequent_keywords_come_first(pack: Pack) -> None:
    text = "Wine, slow food: slow food! Cheese wine slow. Wine. A jell-o mold"
    (found,) = explain(pack, [document(text)], words=0)
    assert list(found.keywords.items()) == [
        ("wine", 3),
        ("slow food", 2),
        ("cheese", 1),
        ("jell-o mold", 1),
    ]


def test_documents_are_judged_like_pages(pack: Pack) -> None:
    texts = [Text.of("Cheese wine"), Text.of("Cheese disk disk")]
    found = explain(pack, [document("wine", "Cheese"), document("disk disk", "Cheese")], words=0)
    assert [each.probability for each in found] == pack.probabilities(texts).tolist()
    assert [each.relevant for each in found] == [True, False]


def test_an_empty_document_claims_nothing(pack: Pack) -> None:
    (found,) = explain(pack, [document("", language="")], words=8)
    assert found.words == []
    assert "no text" in found.as_line()
    block = found.as_block()
    assert "no text" in block
    assert "relevant" not in block


@pytest.mark.parametrize(("language", "foreign"), [("de", True), ("en", False), ("", False)])
def test_foreign_language_is_named(pack: Pack, language: str, foreign: bool) -> None:
    (found,) = explain(pack, [document("cheese und wine", language=language)], words=0)
    assert found.is_foreign is foreign
    assert ("the pack reads en" in found.as_block()) is foreign
    assert ("in de" in found.as_line()) is foreign


def test_any_language_pack_has_no_foreign(pack: Pack) -> None:
    pack.language = ""
    (found,) = explain(pack, [document("vin", language="fr")], words=0)
    assert not found.is_foreign


def test_json_has_fixed_order(pack: Pack) -> None:
    (found,) = explain(
        pack, [document("wine disk", "Größe \u202e\x9b", url="http://a.org/")], words=8
    )
    line = found.as_json()
    record = json.loads(line)
    assert list(record) == [
        *("name", "title", "probability", "threshold", "relevant", "language"),
        *("keywords", "words"),
    ]
    assert (record["name"], record["title"]) == ("http://a.org/", "Größe \u202e\x9b")
    assert record["words"] == [[word, pytest.approx(v, abs=1e-4)] for word, v in found.words]
    assert line.isascii()


def test_hostile_title_is_escaped(pack: Pack) -> None:
    title = "\x1b]0;owned\x07 Soup\r\n\x9b2J \u202e \ud800 " + "x " * 500
    (found,) = explain(pack, [document("wine", title, url="\x1b[2J.html")], words=8)
    for text in (found.as_line(), found.as_block().replace("\n", "")):
        assert text.isprintable()
        assert "Soup" in text
        assert len(text) < 400


def test_the_tally_counts_what_was_judged(pack: Pack) -> None:
    tally = Totals()
    assert str(tally) == "0 judged, 0 of them relevant"
    foreign = [document("disk", language=code) for code in ("fr", "de", "de")]
    tally.add(explain(pack, [document("cheese"), document("", language=""), *foreign], words=0))
    tally.unreadable += 2
    assert str(tally) == (
        "5 judged, 1 of them relevant; 3 in a language that the pack does not read: de 2, fr 1; "
        "1 without text; 2 could not be read"
    )


def test_few_keywords_are_shown(pack: Pack) -> None:
    (found,) = explain(pack, [document("wine")], words=0)
    many = replace(found, keywords={f"word{n}": 1 for n in range(13)})
    assert "word9 1 and 3 more" in many.as_block()
