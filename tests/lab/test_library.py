import numpy as np
import pytest
from comparing import library as module
from comparing.library import Library

from tres_scrapy.agent.policy import PageText
from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.crawl.failure import NOT_HTML, Failure
from tres_scrapy.crawl.registry import kind_of
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer
from tres_scrapy.links.code import CueGroup, coded
from tres_scrapy.page.text import read_page
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Judged

PAGE = "<title>Soup</title><p>Leek soup and <a href='/b'>more soup</a> with bread.</p>"
ANSWERS = {
    "http://a.test/": Answer(200, PAGE.encode(), HTML, "page", relevant=True),
    "http://a.test/moved": Answer(302, b"", (("Location", "/"), *TEXT), "redirect"),
    "http://a.test/refreshed": Answer(
        200, b'<meta http-equiv="Refresh" content="0; url=/b"><p>soup', HTML, "page"
    ),
    "http://a.test/slow": Answer(
        200, b'<meta http-equiv="Refresh" content="600; url=/b"><p>soup', HTML, "page"
    ),
    "http://a.test/read": Answer(
        200,
        b'<meta http-equiv="Refresh" content="0; url=/b">' + 10 * b"<a href=/c>c</a>",
        HTML,
        "page",
    ),
    "http://a.test/gone": Answer(404, PAGE.encode(), HTML, "missing"),
    "http://a.test/plain": Answer(200, b"soup", TEXT, "other"),
    "http://a.test/soft": Answer(200, b"<title>Not found</title>", HTML, "soft404"),
    "http://a.test/latin": Answer(
        200,
        "<title>Käse</title>".encode("latin-1"),
        (("Content-Type", "text/html; charset=iso-8859-1"),),
        "page",
    ),
}
LINKED, REWARDED, BLIND, READER = (
    kind_of(name) for name in ("tres", "best_first", "random", "rivals:ACHE")
)


class Web:
    """A web that counts its requests."""

    def __init__(self):
        self.asked = 0

    def answer(self, url):
        self.asked += 1
        return ANSWERS[url]


class Pack:
    """A reward model that finds every page relevant and no keyword in it."""

    keywords = KeywordSet(["wine"])

    def __init__(self):
        self.titles = []

    def judge(self, pages):
        self.titles += [page.title for page in pages]
        return [Judged(page, 0.9, np.ones((len(page.links), 3), "f4")) for page in pages]


@pytest.fixture
def web():
    return Web()


@pytest.fixture
def library(web):
    return Library(web, Pack(), ReadingLimits(links=10))


def test_page_is_read_and_judged_once(library, web):
    first, second = (library.fetch("http://a.test/", REWARDED) for _ in range(2))
    assert first is second
    assert web.asked == len(library._pack.titles) == 1
    assert first.judged.probability == 0.9
    assert (first.links.urls, first.links.anchors) == (("http://a.test/b",), ("more soup",))
    assert first.links.actions.tolist() == [[1, 1, 1]]
    assert first.answer.relevant
    assert not first.answer.body


@pytest.mark.parametrize(
    ("path", "failure"),
    [
        ("gone", Failure("http_404")),
        ("plain", NOT_HTML),
        ("soft", None),
        ("moved", None),
        ("refreshed", None),
    ],
)
def test_failed_fetch_is_not_judged(library, path, failure):
    fetched = library.fetch(f"http://a.test/{path}", REWARDED)
    assert fetched.failure == failure
    assert (fetched.judged is not None and fetched.judged.is_missing) == (path == "soft")
    assert fetched.location == {"moved": "/", "refreshed": "http://a.test/b"}.get(path)
    assert not library._pack.titles


@pytest.mark.parametrize("path", ["slow", "read"])
def test_other_refreshes_are_not_followed(library, path):
    assert library.fetch(f"http://a.test/{path}", REWARDED).location is None
    assert library._pack.titles == [""]


def test_blind_policy_pays_no_judgement(library, web):
    blind = library.fetch("http://a.test/", BLIND)
    assert (blind.judged.probability, blind.links.actions.tolist()) == (0.0, [[0, 0, 0]])
    assert library.fetch("http://a.test/", REWARDED).judged.probability == 0.9
    assert library.fetch("http://a.test/", BLIND).judged.probability == 0.9, (
        "what is known is not forgotten"
    )
    assert web.asked == 2


def test_late_reader_still_gets_words(library):
    assert not library.fetch("http://a.test/", REWARDED).judged.page.text
    read = library.fetch("http://a.test/", READER).judged
    text = PageText.of(read.page, read.probability)
    assert text.text.startswith("Soup Leek soup")
    assert text.contexts == {"http://a.test/b": "leek soup and with bread"}
    assert text.probability == 0.9


def test_late_model_still_gets_cues(library, web):
    for kind in (BLIND, REWARDED, READER):
        assert library.fetch("http://a.test/", kind).links.cues.counts.tolist() == [0]
    first, second = (library.fetch("http://a.test/", LINKED) for _ in range(2))
    assert first is second
    (link,) = read_page(PAGE, "http://a.test/", places=True).places
    assert set(coded(CueGroup.AROUND, link.around)) < set(first.links.cues.codes.tolist())
    assert web.asked == 4


def test_text_is_decoded_as_scrapy_does(library):
    library.fetch("http://a.test/latin", REWARDED)
    assert library._pack.titles == ["Käse"]


def test_full_library_forgets_and_reads_again(library, web, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 1)
    for path in ("", "latin", ""):
        library.fetch(f"http://a.test/{path}", REWARDED)
    assert web.asked == 3
