import pytest

from tres_scrapy.surface.result_page import ResultReader

deep = pytest.importorskip("webs.deep")
SITES, DeepWeb = deep.SITES, deep.DeepWeb

SEARCH = "http://a.test/find?q="
MENU = "<nav><a href='/'>Home</a><a href='/about'>About</a></nav>"


def hit(n, more=""):
    return f"<li class=hit><h3><a href='/r/{n}'>Record {n}</a></h3><p>Old brie {n}</p>{more}</li>"


def page(main, guide=1):
    aside = f"<aside><ul><li><a href='/guide/{guide}'>Guide</a></li></ul></aside>"
    return f"<html><body>{MENU}<main>{main}</main>{aside}</body></html>"


@pytest.fixture
def reader():
    reader = ResultReader("a.test/find")
    for guide in (1, 2):
        reader.learn_empty(page("<p>Nothing found</p>", guide), SEARCH + "qxzj")
    return reader


def urls(hits):
    return [hit.url.removeprefix("http://a.test") for hit in hits]


def test_records_differ_from_empty_answer(reader):
    html = page(f"<ol>{hit(1)}{hit(2)}</ol>", guide=7)
    assert urls(reader.read(html, SEARCH + "brie")) == ["/r/1", "/r/2"]


def test_empty_answer_has_no_records(reader):
    assert reader.read(page("<p>Nothing found</p>", guide=30), SEARCH + "x") == []


def test_repeated_side_links_are_dropped(reader):
    rows = [
        hit(n, f"<p class=by><a href='/author/{n % 2}'>A very long name</a></p>") for n in range(6)
    ]
    assert urls(reader.read(page("".join(rows)), SEARCH + "a")) == [f"/r/{n}" for n in range(6)]


def test_facets_and_paging_are_dropped(reader):
    steps = "".join(f"<a href='/find?q=a&sort={s}'>by {s}</a>" for s in "abcdefgh")
    assert urls(reader.read(page(hit(1) + steps), SEARCH + "a")) == ["/r/1"]


def test_foreign_links_are_no_records(reader):
    assert reader.read(page("<a href='http://ads.test/1'>Buy</a>"), SEARCH + "a") == []


def test_popular_records_hide_no_others():
    reader = ResultReader("a.test/find")
    reader.learn_empty(page(hit(90) + hit(91)), SEARCH + "qxzj")
    assert urls(reader.read(page(hit(1) + hit(90)), SEARCH + "a")) == ["/r/1"]
    assert reader.read(page(hit(90) + hit(91)), SEARCH + "b") == []


def test_keywords_belong_to_their_record(reader):
    first, second = reader.read(page(f"<ol>{hit(1)}{hit(2)}</ol>"), SEARCH + "brie")
    assert first.anchor == "Record 1"
    assert [(t.word, t.place, t.kind) for t in first.tokens] == [
        ("record", "h3>a", "latin title"),
        ("old", "li.hit>p", "latin title"),
        ("brie", "li.hit>p", "latin lower"),
    ]
    assert len(second.tokens) == 3


@pytest.mark.parametrize(
    ("steps", "following"),
    [
        ("<a href='/find?q=a&page=1'>1</a><a href='/find?q=a&page=2'>2</a>", "page=2"),
        ("<a href='/find?q=a&start=10'>Next &raquo;</a>", "start=10"),
        ("<a rel=next href='/find?q=a&after=xyz'>more</a>", "after=xyz"),
        ("<a href='/r/5'>Next of kin</a>", None),
        ("<a href='/find?q=b'>next search</a>", "q=b"),
        ("<a href='/find?q=a&sort=title'>By title</a>", None),
        ("", None),
    ],
)
def test_next_page(reader, steps, following):
    found = reader.next_page(page(steps), SEARCH + "a")
    assert found is None if following is None else found.endswith(following)


@pytest.mark.parametrize("host", ["library.test", "archive.test", "museum.test"])
def test_deep_site_is_read_in_order(monkeypatch, host):
    monkeypatch.setattr(deep, "RECORDS", 1_000)
    web, kind = DeepWeb("food"), SITES[host]
    reader = ResultReader(f"{host}{kind.action}")

    def get(url):
        return web.answer(url).body.decode()

    for word in ("qxzjvk", "vvkqpz"):
        reader.learn_empty(get(f"http://{host}{kind.action}?q={word}"), f"http://{host}/")
    word = "whisk"
    url, found = f"http://{host}{kind.action}?q={word}", []
    while url:
        found += reader.read(get(url), url)
        url = reader.next_page(get(url), url)
    numbers = [int(hit.url.split("/record/")[1].split("-")[0]) for hit in found]
    assert numbers == web.holding(host).search(word)
    assert {hit.anchor for hit in found} <= set(web.holding(host).titles)
