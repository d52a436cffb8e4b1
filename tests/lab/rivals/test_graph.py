from __future__ import annotations

import numpy as np
import pytest
from comparing.library import Library
from conftest import DATA
from hypothesis import given
from hypothesis import strategies as st
from rivals.graph import HOPS, NO_PAGE, Graph, read_graph

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.webs.recorded import RecordedWeb
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer

UNIVERSITY = DATA / "university.warc.gz"
LIMITS = ReadingLimits()
UNDECLARED = (("Content-Type", "text/html"),)  # no encoding


class Web:
    """A web of pages and redirects, all given by their URLs; a relevant page says so."""

    name, seeds, search, https, notes = "few", ("http://a.test/",), "", False, ()

    def __init__(self, pages, redirects=(), unknown=()):
        self.pages = {f"http://a.test/{path}": html for path, html in pages.items()}
        self.redirects = {f"http://a.test/{path}": to for path, to in dict(redirects).items()}
        self.unknown = {f"http://a.test/{path}" for path in unknown}
        self.asked = []

    @property
    def urls(self):
        return [url for url in [*self.pages, *self.redirects] if url not in self.unknown]

    def answer(self, url):
        self.asked.append(url)
        if url in self.redirects:
            return Answer(301, b"", (("location", self.redirects[url]),), "redirect")
        if url in self.pages:
            body = self.pages[url]
            return Answer(
                200, body if isinstance(body, bytes) else body.encode(), UNDECLARED, "page"
            )
        return Answer(404, b"<a href='/'>home</a>", HTML, "missing")

    def labels(self, urls):
        return ["relevant" in str(self.pages[url]) for url in urls]


def links(*paths):
    return "".join(f"<a href='{path}'>{path}</a>" for path in paths)


def linked(graph):
    """Return each link of a graph as the paths of two pages."""
    sources, targets = graph.inlinks(np.arange(len(graph)))
    paths = [url.removeprefix("http://a.test/") for url in graph.urls]
    return {(paths[s], paths[t]) for s, t in zip(sources.tolist(), targets.tolist(), strict=True)}


def test_graph_has_pages_and_their_links():
    web = Web({"": links("/b", "/gone", "#top", "/b"), "b": links("/", "/c"), "c": "relevant"})
    graph = read_graph(web, LIMITS)
    assert linked(graph) == {("", "b"), ("b", ""), ("b", "c")}
    assert [graph.urls[page] for page in np.flatnonzero(graph.relevant)] == ["http://a.test/c"]
    assert graph.page("http://a.test/gone") == NO_PAGE
    assert len(set(web.asked)) == len(web.asked), "each URL is fetched once"


def test_redirects_lead_to_their_page():
    pages, redirects = {"": links("/1"), "end": links("/")}, {"1": "/2", "2": "end"}
    graph = read_graph(Web(pages, redirects), LIMITS)
    assert linked(graph) == {("", "end"), ("end", "")}
    assert {graph.page(f"http://a.test/{path}") for path in ("1", "2", "end")} == {1}


@pytest.mark.parametrize(("hops", "found"), [(HOPS, True), (HOPS + 1, False)])
def test_redirects_are_followed_as_in_a_crawl(hops, found):
    redirects = {str(i): f"/{i + 1}" for i in range(hops)}
    graph = read_graph(Web({str(hops): "end"}, redirects, unknown=redirects.keys() - {"0"}), LIMITS)
    assert (graph.page("http://a.test/0") != NO_PAGE) == found


def test_circle_of_redirects_has_no_page():
    redirects = {"1": "/2", "2": "/3", "3": "/2", "out": "mailto:x@a.test", "none": ""}
    graph = read_graph(Web({"": links("/1", "/out")}, redirects), LIMITS)
    assert len(graph) == 1
    assert graph.page("http://a.test/1") == graph.page("http://a.test/out") == NO_PAGE


def test_urls_that_are_only_linked_are_read():
    graph = read_graph(
        Web({"": links("/b?sid=1"), "b?sid=1": links("/")}, unknown=["b?sid=1"]), LIMITS
    )
    assert linked(graph) == {("", "b?sid=1"), ("b?sid=1", "")}


def test_missing_page_leads_nowhere():
    graph = read_graph(
        Web({"": links("/b"), "b": f"<title>404 not found</title>{links('/')}"}), LIMITS
    )
    assert linked(graph) == {("", "b")}


def test_pages_are_decoded_and_cut_as_in_a_crawl():
    html = "<meta charset={0}><a href='/käse'>x</a>"
    latin, utf_8 = (html.format(each).encode(each) for each in ("latin-1", "utf-8"))
    pages = {"": latin, "k%C3%A4se": links("/", "/b"), "b": utf_8}
    assert linked(read_graph(Web(pages), LIMITS)) == {
        ("", "k%C3%A4se"), ("k%C3%A4se", ""), ("k%C3%A4se", "b"), ("b", "k%C3%A4se"),
    }  # fmt: skip
    assert linked(read_graph(Web(pages), ReadingLimits(links=1))) == {
        ("", "k%C3%A4se"), ("k%C3%A4se", ""), ("b", "k%C3%A4se"),
    }  # fmt: skip


def test_graph_of_a_web_is_read_once():
    web = Web({"": "page"})
    assert read_graph(web, LIMITS) is read_graph(web, LIMITS)
    assert len(web.asked) == 1


def test_other_kinds_of_answers_are_no_pages():
    web = Web({"": links("/x.txt")})
    answer = web.answer
    web.answer = lambda url: Answer(200, b"soup", TEXT, "other") if "txt" in url else answer(url)
    assert len(read_graph(web, LIMITS)) == 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.sets(st.integers(0, 5)))
def test_inlinks_are_the_links_to_pages(pairs, pages):
    graph = Graph([f"http://{i}.test/" for i in range(6)], pairs, [False] * 6)
    sources, targets = graph.inlinks(np.array(sorted(pages), dtype=np.int64))
    found = list(zip(sources.tolist(), targets.tolist(), strict=True))
    assert sorted(found) == sorted({(s, t) for s, t in pairs if s != t and t in pages})


@pytest.mark.skipif(not UNIVERSITY.exists(), reason=f"{UNIVERSITY} is not there")
@pytest.mark.long
def test_real_pages_have_the_links_of_the_crawl():
    web = RecordedWeb(UNIVERSITY)
    graph, library = read_graph(web, LIMITS), Library(web, None, LIMITS)
    sources, targets = graph.inlinks(np.arange(len(graph)))
    assert len(sources) > 5_000
    for page, url in enumerate(graph.urls):
        found = {graph.page(link) for link in library.fetch(url, POLICIES["random"]).links.urls}
        assert set(targets[sources == page].tolist()) == found - {NO_PAGE, page}
