from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from soup import FOOD, OTHER

from tres_scrapy.page.text import read_page
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_topic import KeywordTopic, PageWords
from tres_scrapy.topic.pack import Pack
from tres_scrapy.training import few_labels
from tres_scrapy.training.document import Document
from tres_scrapy.training.few_labels import FewTrained, train_few

KEYWORDS = KeywordSet.parse(["food", "cooking", "recipe", "soup", "bread"])
WORDS = [a + b for a in ("leek", "pea") for b in "abcdefghijkl"]


def document(number):
    relevant = number % 2 == 0
    page = read_page((FOOD if relevant else OTHER).format(WORDS[number]), "http://h.test/")
    return Document(page.title, page.text, "soups", f"h{number // 2}.test", relevant)


@pytest.mark.long
def test_twenty_documents_make_a_pack(tmp_path):
    said = []
    documents = [document(n) for n in range(20)]
    trained = train_few(tmp_path / "soup", KEYWORDS, documents, say=said.append)
    assert [line[:18] for line in said] == [f"words: fold {n} of 5" for n in range(1, 6)]
    pack = Pack.load(tmp_path / "soup")
    page = read_page(FOOD.format("leekz") * 2, "http://new.test/")
    assert pack.judge([page])[0].probability >= pack.threshold
    assert trained.recall.value == 1
    assert trained.recall.low < 0.75
    assert "(72 to 100 %)" in str(trained)


@pytest.mark.parametrize("count", [19, 601])
def test_other_numbers_are_refused(tmp_path, count):
    with pytest.raises(ValueError, match="takes 20 to 600 documents of both labels"):
        train_few(tmp_path / "soup", KEYWORDS, [document(n % 24) for n in range(count)])


def test_chance_is_not_trusted():
    true = np.arange(40) % 2 == 0
    assert "Trust nothing" in FewTrained(np.full(40, 0.9), true, 0).verdict
    assert "Trust nothing" in str(FewTrained(np.full(40, 0.1), true, 0))
    assert "rough" in FewTrained(np.where(true, 0.9, 0.1)[:14], true[:14], 0).verdict
    assert "hold" in FewTrained(np.where(true, 0.9, 0.1), true, 0).verdict


def test_unlabelled_pages_of_tested_hosts_are_left_out(tmp_path, monkeypatch):
    used = []

    def fit(topic, sheets, true, kept, pages):
        used.append(({f"h{row // 2}.test" for row in np.flatnonzero(kept)}, pages))
        return SimpleNamespace(model=None, judge=lambda pages: np.zeros(len([*pages])))

    topic = SimpleNamespace(near=lambda least: [])
    monkeypatch.setattr(KeywordTopic, "in_english", lambda keywords: topic)
    fakes = {"_fit": fit, "topic_facts": lambda *facts: {}}
    for name, fake in (fakes | {"write_pack": lambda *pack: None}).items():
        monkeypatch.setattr(few_labels, name, fake)
    hosts = [f"h{n}.test" for n in range(10)]
    pages = [PageWords(f"http://www.{host}/", "", "", {}) for host in (*hosts, "other.test")]
    train_few(tmp_path / "soup", KEYWORDS, [document(n) for n in range(20)], pages)
    *tests, (_, last) = used
    assert len(tests) == 5
    for kept, given in tests:
        assert {page.url for page in given} == {f"http://www.{h}/" for h in (*kept, "other.test")}
    assert last == pages


@pytest.mark.parametrize("label", [True, False])
def test_label_of_one_host_is_refused(tmp_path, label):
    made = [document(n) for n in range(20)]
    made = [replace(each, host="a.test") if each.relevant is label else each for each in made]
    with pytest.raises(ValueError, match=r"from two hosts or more: .* from 1"):
        train_few(tmp_path / "soup", KEYWORDS, made)
