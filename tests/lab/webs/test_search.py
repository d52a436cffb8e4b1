from __future__ import annotations

import json
from collections import Counter
from math import log
from pathlib import Path
from urllib.parse import quote_plus, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tres_scrapy.lab.webs.corpus import CorpusWeb
from tres_scrapy.lab.webs.search import LENGTH_SHARE, MOST, SATURATION, Engine, Index
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.web import Answer, Web
from tres_scrapy.page.text import STOP_WORDS

WEB = SyntheticWeb("food", seed=1)
SHELF = [f"brown bread {'rye ' * (n % 4)}number {n}" for n in range(25)]
TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), min_size=1, max_size=12)


def results_on_shelf(found: list[int]) -> list[tuple[str, str]]:
    return [(f"http://shelf.test/?n={n}&x=1", f"<{SHELF[n]}>") for n in found]


ENGINE = Engine(lambda: SHELF, results_on_shelf)


def anchors(answer: Answer) -> list[LexborNode]:
    return LexborHTMLParser(answer.body).css("a")


def results(web: Web | Engine, query: str) -> list[tuple[str, str]]:
    """Return (URL, title) of every result, read by following "next"."""
    url, found = f"http://search.test/?q={quote_plus(query)}", []
    while url:
        nodes, here, url = anchors(web.answer(url)), url, ""
        if nodes and nodes[-1].text() == "next":
            url = urljoin(here, nodes.pop().attributes["href"])
        found += [(node.attributes["href"] or "", node.text()) for node in nodes]
    return found


def slow_scores(texts: list[list[str]], words: set[str]) -> list[float]:
    """Score every text by BM25, term by term."""
    mean, scores = sum(map(len, texts)) / len(texts), []
    for text in texts:
        score, counts = 0.0, Counter(text)
        for word in sorted(words & counts.keys()):
            holding = sum(word in other for other in texts)
            rarity = log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / mean)
            score += rarity * counts[word] * (SATURATION + 1) / (counts[word] + norm)
        scores.append(score)
    return scores


@given(TEXTS.filter(any), st.lists(st.sampled_from("abcdexyz"), max_size=4))
def test_texts_are_ranked_by_bm25(texts: list[list[str]], words: list[str]) -> None:
    scores = slow_scores(texts, set(words))
    best = Index(texts).best(words)
    assert set(best) == {n for n, score in enumerate(scores) if score}
    assert [scores[n] for n in best] == pytest.approx(sorted(filter(None, scores), reverse=True))


def test_equal_matches_keep_order() -> None:
    assert Index([["a", "b"]] * 200).best(["a"]) == list(range(MOST))


def test_results_come_by_ten() -> None:
    pages = [ENGINE.answer(f"http://search.test/?q=bread&page={n}") for n in (1, 2, 3, 4)]
    assert [len(LexborHTMLParser(page.body).css("li a")) for page in pages] == [10, 10, 5, 0]
    assert [anchors(page)[-1:] and anchors(page)[-1].text() == "next" for page in pages] == [
        True, True, False, [],
    ]  # fmt: skip
    assert len(set(results(ENGINE, "bread"))) == 25
    assert {(page.status, page.kind, page.relevant) for page in pages} == {(200, "search", False)}


def test_result_is_link_with_title() -> None:
    assert results(ENGINE, "number 7")[0] == ("http://shelf.test/?n=7&x=1", f"<{SHELF[7]}>")


@pytest.mark.parametrize("query", ["unheard", "!?", "<b>", "&"])
def test_unknown_words_have_no_results(query: str) -> None:
    assert results(ENGINE, query) == []


@given(st.text(max_size=20), st.text(max_size=6))
def test_any_query_has_an_answer(query: str, page: str) -> None:
    escaped = [quote_plus(text, errors="ignore") for text in (query, page)]
    answer = ENGINE.answer("http://search.test/?q={}&page={}".format(*escaped))
    assert (answer.status, answer.kind) == (200, "search")


def test_index_waits_for_first_query() -> None:
    engine = Engine(pytest.fail, results_on_shelf)
    home = engine.answer("http://search.test/")
    assert home.kind == "search"
    assert LexborHTMLParser(home.body).css_first("form input[name=q]") is not None
    assert engine.answer("http://search.test/robots.txt").body == b"User-agent: *\nDisallow:\n"
    assert engine.answer("http://search.test/x?q=bread").status == 404


@pytest.mark.slow
@pytest.mark.parametrize("query", ["cheese", "sugar butter flour", "water"])
def test_synthetic_results_have_titles(query: str) -> None:
    for url, title in results(WEB, query)[::5]:
        answer = WEB.answer(url)
        assert (answer.status, answer.kind) == (200, "page")
        shown = LexborHTMLParser(answer.body).css_first("h1").text().lower()
        assert set(shown.split()) - STOP_WORDS <= set(title.lower().split())
        assert set(query.split()) & set(title.lower().split())


@pytest.mark.slow
def test_more_words_rank_higher() -> None:
    titles = [set(title.lower().split()) for _, title in results(WEB, "cheese recipe")]
    both = [{"cheese", "recipe"} <= title for title in titles]
    assert 0 < sum(both) < len(both)
    assert both == sorted(both, reverse=True)


@pytest.mark.slow
def test_query_results_are_stable() -> None:
    again = SyntheticWeb("food", seed=1)
    first, second = results(WEB, "cheese recipe"), results(WEB, "cheese bread")
    assert results(again, "Recipe, cheese") == first
    assert 0 < len(set(first) & set(second)) < len(first)


def test_common_word_spans_topics() -> None:
    def topics(query: str) -> set[int]:
        places = [WEB.routes.split(url) for url, _ in results(WEB, query)]
        return set(WEB.addresses.find(places)[1].topic.tolist())

    assert len(topics("water")) > 8
    assert len(topics("cheese")) < 4


def test_engine_is_outside_the_web() -> None:
    assert WEB.addresses.site("search.test") is None
    assert WEB.answer("http://search.test:80/").kind == "search"
    assert WEB.labels(["http://search.test/", WEB.search.format(query="cheese")]) == [False] * 2


def test_corpus_search_ignores_topic(tmp_path: Path) -> None:
    texts = {"Cheese": "Made of milk.", "Milk": "White.", "Cow": "Gives milk and more milk."}
    categories = {"Cheese": ["Food_and_drink"], "Milk": ["Sports"], "Cow": ["Sports"]}
    rows = [
        {"id": t, "title": t, "links": [], "text": text, "categories": categories[t]}
        for t, text in texts.items()
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    webs = [CorpusWeb(path, topic) for topic in ("food", "sports")]
    found = [results(web, "milk") for web in webs]
    assert [title for _, title in found[0]] == ["Milk", "Cow", "Cheese"]
    assert found[0] == found[1]
    assert {webs[0].answer(url).kind for url, _ in found[0]} == {"page"}
