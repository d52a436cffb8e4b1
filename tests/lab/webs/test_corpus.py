from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from conftest import DATA
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.lab.webs.corpus import CorpusWeb

WIKI = DATA / "wiki.jsonl.xz"
FOOD = ["Everyday_life.Food_and_agriculture"]
ROWS = [
    {"id": "Cheese", "title": "Cheese", "categories": FOOD, "links": ["Milk", "Rome", "Gone"],
     "text": "Cheese\n\n It is made of milk & time.\n Milk again."},
    {"id": "Milk", "title": "Milk", "categories": FOOD, "links": [], "text": "White."},
    {"id": "Rome", "title": "Rome", "categories": ["Geography.Europe"], "links": ["C%C3%B4te"],
     "text": "A city."},
    {"id": "C%C3%B4te", "title": "Côte", "categories": [], "links": ["Rome"], "text": "Coast."},
]  # fmt: skip


@pytest.fixture
def web(tmp_path: Path) -> CorpusWeb:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    return CorpusWeb(path, "food")


def anchors(web: CorpusWeb, url: str) -> list[tuple[str, str | None]]:
    tree = LexborHTMLParser(web.answer(url).body)
    return [(node.text(), node.attributes["href"]) for node in tree.css("a")]


def test_first_category_is_the_domain(web: CorpusWeb) -> None:
    assert web.seeds == ("http://food-and-agriculture-everyday-life.test/Cheese",)
    assert {"europe-geography.test", "uncategorised.test"} <= web.hosts


def test_categories_decide_relevance(web: CorpusWeb) -> None:
    answers = {d.title: web.answer(d.url) for d in web.documents.values()}
    labels = {title: answer.relevant for title, answer in answers.items()}
    assert labels == {"Cheese": True, "Milk": True, "Rome": False, "Côte": False}
    assert {answer.kind for answer in answers.values()} == {"page"}


def test_labels_are_those_of_the_answers(web: CorpusWeb) -> None:
    urls = [d.url for d in web.documents.values()]
    urls += [f"{urls[0]}#top", "http://uncategorised.test/Côte", "http://paris.test/"]
    answers = [web.answer(url) for url in urls]
    assert web.labels(urls) == [a.kind == "page" and a.relevant for a in answers]


def test_link_stands_at_its_title(web: CorpusWeb) -> None:
    assert anchors(web, web.seeds[0]) == [
        ("milk", "http://food-and-agriculture-everyday-life.test/Milk"),
        ("Rome", "http://europe-geography.test/Rome"),
    ]
    body = web.answer(web.seeds[0]).body.decode()
    assert "milk</a> &amp; time." in body
    assert body.index("See also") < body.index(">Rome</a>")


def test_escaped_id_is_found(web: CorpusWeb) -> None:
    assert anchors(web, "http://europe-geography.test/Rome")[0][1] == (
        "http://uncategorised.test/C%C3%B4te"
    )
    assert web.answer("http://uncategorised.test/Côte").kind == "page"


@pytest.mark.parametrize(
    ("url", "status"),
    [("http://europe-geography.test/Paris", 404), ("http://paris.test/", 502)],
)
def test_unknown_document_is_missing(web: CorpusWeb, url: str, status: int) -> None:
    answer = web.answer(url)
    assert (answer.status, answer.kind, answer.relevant) == (status, "missing", False)


def test_compressed_corpus_is_the_same(tmp_path: Path, web: CorpusWeb) -> None:
    path = tmp_path / "corpus.jsonl.xz"
    path.write_bytes(lzma.compress("\n".join(json.dumps(row) for row in ROWS).encode()))
    assert CorpusWeb(path, "food").documents == web.documents


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file at data='.*none\.jsonl'"):
        CorpusWeb(tmp_path / "none.jsonl", "food")


@pytest.mark.parametrize("line", ["{", '{"id": "A"}', "[]"])
def test_bad_corpus_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(f"{json.dumps(ROWS[0])}\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.jsonl line 2 is not a document"):
        CorpusWeb(path, "food")


def test_topic_matches_category_names(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    rows = [
        {
            "id": "A",
            "title": "Aria",
            "categories": ["Music.Opera_and_song"],
            "links": [],
            "text": "",
        },
        {"id": "B", "title": "Tosca", "categories": ["Opera"], "links": ["A", "C"], "text": ""},
        {"id": "C", "title": "Rock", "categories": ["Science.Geology"], "links": ["A"], "text": ""},
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    web = CorpusWeb(path, "opera")
    assert [document.relevant for document in web.documents.values()] == [True, True, False]
    assert web.seeds == (web.documents["B"].url,)
    both = CorpusWeb(path, "opera+geology")
    assert all(document.relevant for document in both.documents.values())


def test_document_keeps_its_url(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    urls = [f"http://a.test/index.php?page={number}" for number in range(2)]
    rows = [
        {"url": url, "title": url, "categories": ["food"], "links": urls, "text": ""}
        for url in urls
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    web = CorpusWeb(path, "food")
    assert web.urls == urls
    assert [url for _, url in anchors(web, urls[0])] == [urls[1]]
    assert web.labels(urls) == [True, True]
    assert web.answer("http://a.test/index.php?page=2").kind == "missing"


def test_unknown_topic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps(ROWS[2]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"no document has a category with topic='food'"):
        CorpusWeb(path, "food")


@pytest.mark.skipif(not WIKI.exists(), reason="needs shared/data/wiki.jsonl.xz")
@pytest.mark.long
def test_wikipedia_links_lead_to_pages() -> None:
    web = CorpusWeb(WIKI, "food")
    relevant = [d for d in web.documents.values() if d.relevant]
    links = [url for d in relevant[:20] for _, url in anchors(web, d.url)]
    assert web.seeds[0].endswith("/Cheese")
    assert (len(web.pages), len(relevant)) == (4598, 112)
    assert {web.answer(url or "").status for url in links} == {200}
