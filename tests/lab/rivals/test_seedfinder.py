import re
from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import judged
from rivals import seedfinder
from rivals.inputs import SearchInputs
from rivals.seedfinder import RelevanceFeedback, Results, SeedFinderPolicy

from tres_scrapy.agent.policy import PageText
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import SampleStore

SEARCH = "http://search.test/?q={query}"
PAGES = {
    "http://a.test/1": "cheese cheese brie rind",
    "http://b.test/1": "cheese gouda gouda holes",
    "http://c.test/1": "cheese milk brie",
    "http://d.test/1": "cheese cars",
    "http://e.test/1": "brie wine",
    "http://f.test/1": "gouda wine crackers",
}
IRRELEVANT = {"http://d.test/1"}


class Web:
    """A few pages, and a search engine that returns three of them at a time."""

    def __init__(self, pages=PAGES, cap=None, per_page=3, failing=()):
        self.pages, self.per_page, self.failing = pages, per_page, failing
        self.store = SampleStore(DomainLedger(cap))
        policy = SeedFinderPolicy(
            self.store, SearchInputs(search=SEARCH, keywords=("Cheese", "milk"))
        )
        self.crawl = Crawl(self.store, policy)
        self.add("http://seed.test/")
        self.order = []

    def add(self, url):
        self.crawl.add_seeds(Outlinks([url], [""], np.zeros((1, 3), dtype=np.float32)))

    @property
    def queries(self):
        return [parse_qs(urlsplit(url).query)["q"][0] for url in self.order if "search" in url]

    def links(self, url):
        """Return the URLs and anchors on a page."""
        if url.endswith("/more"):
            return [], []
        if "search.test" not in url:
            return [f"{url}/more", "http://search.test/about"], ["more", "next search"]
        asked = parse_qs(urlsplit(url).query)
        query, start = set(asked["q"][0].split()), int(asked.get("start", ["0"])[0])
        found = [page for page, text in self.pages.items() if query & set(text.split())]
        urls = ["http://search.test/about", *found[start : start + self.per_page]]
        if start + self.per_page < len(found):
            urls.append(re.sub("&.*", "", url) + f"&start={start + self.per_page}")
        return urls, ["Next" if "start=" in link else "x" for link in urls]

    def run(self, steps=100):
        for _ in range(steps):
            decision = self.crawl.next()
            if decision is None:
                break
            self.fetch(decision.row)
        return self

    def fetch(self, row):
        url = self.store.url(row)
        self.order.append(url)
        if url in self.failing:
            self.crawl.book(row, Failure("http_500"))
            return
        urls, anchors = self.links(url)
        reward = float(url in self.pages and url not in IRRELEVANT)
        text = PageText(self.pages.get(url, "nothing"), dict.fromkeys(urls, ""))
        none = np.zeros((len(urls), 3), dtype=np.float32)
        self.crawl.book(row, judged(reward, text), Outlinks(urls, anchors, none))


@pytest.mark.parametrize("search", [None, "http://search.test/"])
def test_missing_search_endpoint_is_named(search):
    with pytest.raises(ValueError, match=r"search_url.*TRES_SEARCH_URL"):
        SeedFinderPolicy(
            SampleStore(DomainLedger()), SearchInputs(search=search, keywords=("cheese",))
        )


def test_queries_precede_links():
    web = Web().run(10)
    assert web.order[:6] == [
        "http://seed.test/",
        "http://search.test/?q=cheese",
        "http://a.test/1",
        "http://b.test/1",
        "http://c.test/1",
        "http://search.test/?q=cheese&start=3",
    ]
    assert web.order[6] == "http://d.test/1"


def test_later_queries_bring_new_results():
    web = Web().run()
    assert {"http://e.test/1", "http://f.test/1"} <= set(web.order)
    assert web.queries[:2] == ["cheese", "cheese"], "the second asks for more results"
    assert len(set(web.queries[2:])) == len(web.queries) - 2
    assert web.crawl.figures()["queries"] == len(web.queries) - 1


def test_crawl_continues_after_queries():
    web = Web().run(1000)
    assert web.crawl.next() is None
    assert web.store.pending == 0
    assert {f"{url}/more" for url in PAGES} <= set(web.order)
    assert len(web.order) == len(set(web.order))


def test_results_page_is_not_a_page():
    web = Web(cap=Cap(1, 1)).run()
    pages = [url for url in web.order if "search" not in url]
    assert len(web.queries) > 1, "the engine's domain is not exhausted by its first page"
    assert web.crawl.pages == len(pages)
    assert web.crawl.relevant == sum(url in PAGES and url not in IRRELEVANT for url in pages)
    assert "http://search.test/about" not in web.order


def test_only_queries_are_marked_as_such():
    web = Web()
    marks = {}
    while (decision := web.crawl.next()) is not None:
        web.fetch(decision.row)
        marks[web.order[-1]] = decision.is_query
    assert {url for url, mark in marks.items() if mark} == {u for u in marks if "search" in u}


def test_poor_results_end_a_query():
    web = Web(
        dict.fromkeys(IRRELEVANT, "cheese cars") | {"http://b.test/1": "cheese gouda"}, per_page=1
    )
    web.run()
    assert web.queries == ["cheese", "milk"], "the second page of cheese would bring gouda"


def test_keywords_bridge_missing_terms():
    web = Web(PAGES | dict.fromkeys(IRRELEVANT, "cheese"), failing=["http://search.test/?q=cheese"])
    assert web.run().queries[:3] == ["cheese", "milk", "brie"]


def test_failed_query_does_not_block():
    failing = ["http://search.test/?q=cheese&start=3", "http://a.test/1"]
    web = Web(failing=failing).run()
    assert len(web.queries) > 2
    dead_engine = Web(failing=["http://search.test/?q=cheese"]).run()
    assert dead_engine.queries[:2] == ["cheese", "milk"]
    assert dead_engine.order[-1].endswith("/more")


def test_unfetchable_result_does_not_block():
    """Two results of one domain under MAX 1: the second is dropped when it is met."""
    pages = {
        "http://a.test/1": "cheese rind",
        "http://a.test/2": "cheese",
        "http://e.test/": "rind",
    }
    web = Web(pages, cap=Cap(1, 1)).run()
    assert "http://a.test/2" not in web.order
    assert "rind" in web.queries
    assert web.store.pending == 0


def test_busy_engine_does_not_block():
    web = Web()
    web.fetch(web.crawl.next().row)
    engine = web.store.hosts.names.index("search.test")
    assert web.store.url(web.crawl.next(Availability([engine])).row) == "http://seed.test//more"
    query = web.crawl.next().row
    web.fetch(query)
    busy = web.store.hosts.names.index("a.test")
    assert web.store.url(web.crawl.next(Availability([busy])).row) == "http://b.test/1"
    assert web.store.url(web.crawl.next().row) == "http://a.test/1"


def test_queries_finish_before_links():
    web = Web()
    web.fetch(web.crawl.next().row)
    query = web.crawl.next().row
    assert web.crawl.next() is None
    web.fetch(query)
    results = [web.crawl.next().row, web.crawl.next().row]
    assert [web.store.url(row) for row in results] == ["http://a.test/1", "http://b.test/1"]
    while (decision := web.crawl.next()) is not None:
        results.append(decision.row)
    assert all(web.store.url(row) in PAGES for row in results)
    for row in results:
        web.fetch(row)
    assert web.crawl.next().is_query


def test_query_limit_holds(monkeypatch):
    monkeypatch.setattr(seedfinder, "MAX_QUERIES", 2)
    web = Web().run()
    assert len(set(web.queries)) == 2


def obvious_query(query, results, scores, used):
    """Build the next query as ACHE describes, occurrence by occurrence."""
    used |= set(query)
    precision = sum(r for _, r in results.pages) / len(results.pages) if results.pages else 0.0
    if precision > 0.5:
        for text, relevant in results.pages:
            terms = text.split()
            for term in terms:
                scores[term] += (1 if relevant else -1) * terms.count(term) / len(terms)
    for term in query:
        scores[term] = scores.get(term, 0.01) * precision
    size = len(query)
    if precision < 0.5:
        size += 1
    elif results.new < 0.5 * results.found or not results.found:
        size -= 1
    best = sorted(scores, key=lambda term: -scores[term])[: max(size, 1) - 1]
    used |= set(best)
    unused = sorted((term for term in scores if term not in used), key=lambda t: -scores[t])
    return [*best, unused[0]] if unused else []


pages = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "ff"]), max_size=6).map(" ".join),
        st.booleans(),
    ),
    max_size=4,
)


@given(st.lists(st.tuples(pages, st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6))
def test_queries_equal_slow_reference(answers):
    feedback, scores, used = RelevanceFeedback(), defaultdict(float), set()
    query = ["cheese"]
    for brought, new, old in answers:
        results = Results(new + old, new, brought)
        expected = obvious_query(query, results, scores, used)
        actual = feedback.next_query(query, results) or []
        assert feedback.scores == pytest.approx(scores)
        if actual != expected:  # then the scores of two terms are equal but for rounding
            assert len({round(score, 9) for score in scores.values()}) < len(set(scores.values()))
            return
        if not actual:
            return
        query = actual


def test_stop_words_are_no_terms():
    feedback = RelevanceFeedback()
    assert feedback.next_query(["cheese"], Results(1, 1, [("The cheese and the rind", True)])) == [
        "rind"
    ]
