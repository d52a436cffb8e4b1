from __future__ import annotations

import re
from html import escape
from time import process_time
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page import text
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import MAX_ATTRIBUTES, MAX_TAGS, Link, read_page
from tres_scrapy.url import canonical
from tres_scrapy.url.canonical import canonicalise

URL = "https://shop.example.org/cheese/index.html"


def links(html: str, url: str = URL) -> tuple[Link, ...]:
    return read_page(html, url).links


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTP://Example.org:80/a#part", "http://example.org/a"),
        ("http://example.org", "http://example.org/"),
        ("http://example.org?b=2,3&a=1", "http://example.org/?b=2,3&a=1"),
        ("http://example.org/caf\u00e9", "http://example.org/caf%C3%A9"),
        ("http://[2001:db8::1]/x", "http://[2001:db8::1]/x"),
        ("http://me:pass@word@example.org:8080/@me?q=a@b", "http://example.org:8080/@me?q=a@b"),
        ("http://me@[2001:db8::1]/", "http://[2001:db8::1]/"),
        ("http://example.org./a", "http://example.org/a"),
        ("http://example.org/open/../closed/a", "http://example.org/closed/a"),
        ("http://example.org/a/.%2E/./%2e%2e/b/%2e", "http://example.org/b/"),
        ("http://example.org/../a/..", "http://example.org/"),
        ("http://example.org/a/..//b?c=/../d", "http://example.org//b?c=/../d"),
        ("http://example.org/.a/...", "http://example.org/.a/..."),
    ],
)
def test_fetchable_url_becomes_canonical(url: str, canonical: str) -> None:
    assert canonicalise(url) == canonical
    assert canonicalise(canonical) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/relative",
        "mailto:cook@example.org",
        "javascript:void(0)",
        "ftp://example.org/",
        "http:///path",
        "http://[::1/",
        "http://example.org:99999/",
        "http://example.org:0/",
        "http://exa mple.org/",
        "http://\x00/",
        "http://..org/",
        "http://example.org../",
        f"http://{'a' * 64}.org/",
        f"http://example.org/{'a' * 2_000}",
        f"http://example.org/{chr(0xD800)}",
    ],
)
def test_unfetchable_url_has_no_form(url: str) -> None:
    assert canonicalise(url) is None


@given(st.text(), st.text())
def test_no_user_name_is_canonical(name: str, password: str) -> None:
    url = canonicalise(f"http://{name}:{password}@example.org/")
    assert url is None or "@" not in urlsplit(url).netloc


@given(st.text(st.characters(exclude_categories=[])))
def test_canonicalise_never_raises(tail: str) -> None:
    for url in (tail, f"http://{tail}", f"http://example.org/{tail}"):
        canonical = canonicalise(url)
        assert canonical is None or canonical.startswith(("http://", "https://"))


@given(st.from_regex(canonical.PLAIN_URL, fullmatch=True, alphabet=st.characters(codec="ascii")))
@example("http://" + "a." * 116 + "b" * 22 + "/")  # a host of 254 letters
def test_plain_url_is_canonical(url: str) -> None:
    plain = canonicalise(url)
    assert plain == (None if len(urlsplit(url).netloc) > 253 else url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "PLAIN_URL", re.compile(r"(?!)"))
        assert canonicalise(url) == plain


def test_tokens_are_lower_case_letters() -> None:
    text = "A Brie-cheese's 3rd R2D2: \u0421\u044b\u0440 \u30c1\u30fc\u30ba caf\u00e9 snake_case"
    tokens = tokenise(text)
    assert tokens[:4] == ["brie", "cheese", "rd", "\u0441\u044b\u0440"]
    assert tokens[-3:] == ["caf\u00e9", "snake", "case"]


def test_title_and_text_exclude_code() -> None:
    html = "<title> Blue\n cheese </title><style>p</style><p>Milk <b>and</b> rind<script>x</script>"
    page = read_page(html, URL)
    assert (page.url, page.title, page.text) == (URL, "Blue cheese", "Milk and rind")


def test_boilerplate_is_dropped() -> None:
    html = f"<nav>menu</nav><main>{'cheese ' * 40}</main><footer>imprint</footer>"
    assert read_page(html, URL).text.split() == ["cheese"] * 40


def test_boilerplate_is_kept_without_text() -> None:
    html = "<header>cheese and wine</header><p>welcome</p>"
    assert read_page(html, URL).text == "cheese and wine welcome"


def test_links_are_absolute_and_unique() -> None:
    html = "<a href=b>B</a><a href=/a#x>A</a><a href='b#y'>again</a><a href='//other.org'>O</a>"
    assert links(html) == (
        Link("https://shop.example.org/cheese/b", "B"),
        Link("https://shop.example.org/a", "A"),
        Link("https://other.org/", "O"),
    )


def test_first_anchor_text_stands() -> None:
    html = "<a href=/a></a><a href=/b>B</a><a href=/a>first</a><a href=/a>second</a>"
    assert [link.anchor for link in links(html)] == ["first", "B"]


@pytest.mark.parametrize(
    ("inside", "anchor"),
    [
        ("> Fresh\n <b>goat</b>  cheese ", "Fresh goat cheese"),
        ("><img alt=' goat  cheese '>", "goat cheese"),
        (" title='goat cheese'><img src=x.png>", "goat cheese"),
        ("><img>", ""),
    ],
)
def test_anchor_falls_back_to_image(inside: str, anchor: str) -> None:
    assert links(f"<a href=/a{inside}</a>") == (Link("https://shop.example.org/a", anchor),)


@pytest.mark.parametrize(
    ("href", "is_page"),
    [
        ("/soup.JPG", False),
        ("/fonts/a.woff2?v=3", False),
        ("/soup.tar.gz", False),
        ("/soup.pdf", True),
        ("/soup.jpg/", True),
        ("/soup.jpg.html", True),
        ("/show?file=soup.jpg", True),
        ("/jpg", True),
        ("http://soup.zip/", True),
    ],
)
def test_files_that_are_no_pages_are_no_links(href: str, is_page: bool) -> None:
    assert len(read_page(f"<a href={href}>soup</a>", URL).links) == is_page


def test_map_areas_are_links() -> None:
    html = "<map><area href=/a alt=cellar></map>"
    assert links(html) == (Link("https://shop.example.org/a", "cellar"),)


def test_own_page_is_no_link() -> None:
    html = (
        "<a href='#top'>top</a><a href='index.html'>me</a><a href='mailto:a@b.org'>mail</a><a>x</a>"
    )
    assert links(html) == ()


@pytest.mark.parametrize(
    ("content", "targets"),
    [
        ("0; url='/b?x=1'", ["http://a.test/b?x=1"]),
        ("3;URL = http://b.test/", ["http://b.test/"]),
        ("0; url=/it's-here", ["http://a.test/it's-here"]),
        ("0; https://x.test/go?url=http://y.test/", []),
        ("60", []),
        ("60; url=", []),
        ("60; url=/", []),  # the page itself
        ("0; url=javascript:void(0)", []),
        ("0; url=/a.png", []),
    ],
)
def test_refresh_is_a_link(content: str, targets: list[str]) -> None:
    html = f'<meta http-equiv=Refresh content="{content}"><a href=/c>more</a>'
    links = read_page(html, "http://a.test/").links
    assert links == (*(Link(target, "") for target in targets), Link("http://a.test/c", "more"))


def test_refresh_without_scripts_is_no_link() -> None:
    assert links("<noscript><meta http-equiv=refresh content='0; url=/b'></noscript>") == ()


def test_a_base_element_moves_relative_links() -> None:
    html = "<base href='https://cdn.example.net/x/'><a href=y>Y</a>"
    assert links(html) == (Link("https://cdn.example.net/x/y", "Y"),)


@pytest.mark.parametrize("base", ["http://[", "data:text/html,x", "JavaScript:void(0)"])
def test_base_that_browsers_ignore_is_ignored(base: str) -> None:
    html = f"<base href='{base}'><a href=y>Y</a><a href='http://a.org/'>A</a>"
    assert links(html) == (
        Link("https://shop.example.org/cheese/y", "Y"),
        Link("http://a.org/", "A"),
    )


def test_feed_and_canonical_link_are_relative_to_the_base() -> None:
    html = "<base href=/x/><link rel=canonical href=c><link rel=alternate href=f type={} />"
    page = read_page(html.format("application/rss+xml"), URL)
    assert page.canonical == "https://shop.example.org/x/c"
    assert page.feeds == ("https://shop.example.org/x/f",)


@pytest.mark.parametrize(("obey", "expected"), [(True, 0), (False, 1)])
def test_nofollow_links_are_obeyed(obey: bool, expected: int) -> None:
    page = read_page("<a rel=nofollow href=/a>A</a>", URL, ReadingLimits(obey=obey))
    assert len(page.links) == expected


def test_first_links_gain_later_anchors() -> None:
    html = "<a href=/0></a>" + "".join(f"<a href=/{n}>link</a>" for n in (1, 2, 3, 0))
    page = read_page(html, URL, ReadingLimits(links=2))
    assert page.links == (
        Link("https://shop.example.org/0", "link"),
        Link("https://shop.example.org/1", "link"),
    )


@pytest.mark.parametrize(
    "html",
    ["", "<", "\0", "<a href", "\ud800<p>x", "<frameset></frameset>", "<b>" * 5_000, "</a></p>"],
)
def test_broken_html_is_read(html: str) -> None:
    page = read_page(html, URL)
    assert page.links == ()
    assert "<p" not in page.text


@given(st.text(st.sampled_from("<>/='\" abehrfsimgt!-\n&;#x\ud800"), max_size=200))
def test_read_page_never_raises(html: str) -> None:
    page = read_page(html, URL)
    assert all(link.url == canonicalise(link.url) for link in page.links)


def test_hidden_and_named_boilerplate_is_dropped() -> None:
    chrome = "<div role=navigation>menu</div><p hidden>secret</p><button>Buy</button>"
    assert read_page(f"{chrome}<p>{'cheese ' * 40}", URL).text.split() == ["cheese"] * 40


@pytest.mark.parametrize("root", ["<html hidden>", "<html role=navigation>", "<body hidden>"])
def test_pure_boilerplate_is_read(root: str) -> None:
    assert read_page(f"{root}<p>Brie", URL).text == "Brie"


def test_link_block_is_dropped() -> None:
    menu = "<div><div><a href=/a>Shop</a></div> | <div><a href=/b>Basket</a></div></div>"
    prose = f"<div><a href=/c>Blue</a> and <a href=/d>white</a> {'cheese ' * 40}</div>"
    page = read_page(menu + prose, URL)
    assert page.text.split() == ["Blue", "and", "white"] + ["cheese"] * 40
    assert len(page.links) == 4


def test_no_attribute_makes_a_menu() -> None:
    page = read_page(f"<div data-menu=mobile>{'cheese ' * 40}</div>{'milk ' * 40}", URL)
    assert page.text.split() == ["cheese"] * 40 + ["milk"] * 40


def test_boilerplate_within_boilerplate_is_dropped_once() -> None:
    inner = "<nav><ul><li><a href=/a>a</a><li><a href=/b>b</a></ul></nav>"
    html = f"<header>{inner}<div hidden>{inner}</div></header><p>{'cheese ' * 40}"
    assert read_page(html, URL).text.split() == ["cheese"] * 40


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<p>" + "Der Bäcker schob das Brot in den Ofen, bis es braun war. " * 3, "de"),
        ("<html lang=fr><p>Pain", "fr"),
        ("<p>Bread", ""),
    ],
)
def test_a_page_says_its_language(html: str, language: str) -> None:
    assert read_page(html, URL).language == language


@pytest.mark.parametrize(("html", "language"), [("<p>Pain", "fr"), ("<html lang=de><p>Brot", "de")])
def test_the_header_declares_where_the_page_does_not(html: str, language: str) -> None:
    assert read_page(html, URL, declared="fr-CH").language == language


@pytest.mark.long
@pytest.mark.parametrize(
    "tags", ["<div>", "<div>x", "<ul><li><a href=x>y", "<div><a href=x>y</a>milk", "<nav>"]
)
def test_endless_nesting_is_cut(tags: str) -> None:
    html = tags * (10_000_000 // len(tags))
    assert len(read_page(html, URL).text.split()) <= MAX_TAGS


def contexts(html: str) -> dict[str, str]:
    page = read_page(html, URL, contexts=True)
    return {
        link.url.rpartition("/")[2]: around
        for link, around in zip(page.links, page.contexts, strict=True)
    }


def test_context_is_ten_words_around() -> None:
    before, after = "abcdefghijkl", "mnopqrstuvwx"
    html = f"""<p>{" ".join(c * 2 for c in before)}<a href=x>the <b>anchor</b></a>
        <script>var code</script></p><div>{" ".join(c * 2 for c in after)}"""
    words = [c * 2 for c in before[2:] + after[:10]]
    assert contexts(html) == {"x": " ".join(words)}


def test_neighbouring_links_share_contexts() -> None:
    html = "<nav><a href=x>Home</a> <a href=y>Shop</a></nav><p>Our <a href=z>Brie</a> is ripe"
    assert contexts(html) == {
        "x": "shop our brie is ripe",
        "y": "home our brie is ripe",
        "z": "home shop our is ripe",
    }


def test_repeated_link_keeps_first_context() -> None:
    html = "far <a href=x><img></a> off <p>sold <a href=x>Brie</a> here <a href=x>more</a>"
    assert contexts(html) == {"x": "far off sold here more"}


def test_invisible_link_has_no_context() -> None:
    assert contexts("<p><noscript><a href=x>X</a></noscript>milk <map><area href=y></map>") == {
        "x": "",
        "y": "milk",
    }


def test_nested_link_has_own_context() -> None:
    html = "<a href=x>aa<table><td>bb<a href=y>cc</a>dd</table>ee</a>ff"
    assert contexts(html)["y"] == "aa bb dd ee ff"


def test_contexts_are_read_on_demand() -> None:
    page = read_page("<a href=x>X</a>", URL)
    assert page.contexts == ()


def test_endless_word_is_no_context() -> None:
    assert contexts(f"{'x' * 51} milk <a href=x>X</a>") == {"x": "milk"}


@given(st.text(st.sampled_from("<>/='\" abehrfsimgt!-\n&;#x\ud800"), max_size=200))
def test_every_link_has_a_context(html: str) -> None:
    page = read_page(html, URL, contexts=True)
    assert len(page.contexts) == len(page.links)


def test_places_go_with_links() -> None:
    html = "<h2>Soups</h2><nav><a href=x></a></nav><ul class=menu><li><a href=x>X</a></ul>"
    html += "<noscript><a href=y>Y</a></noscript>"
    page = read_page(html, URL, places=True)
    assert [place.heading for place in page.places] == [("soups",), ()]


@pytest.mark.parametrize("tags", ["<div><a href=x>y", "<a href=x>y<table><td>", "<a href=x>y</a>"])
def test_deep_contexts_are_short(tags: str) -> None:
    page = read_page(tags * 2_000, URL, contexts=True)
    assert all(len(around.split()) <= 20 for around in page.contexts)


@pytest.mark.parametrize(
    "link", ["<a href=/x>{}</a>", "<a href=/x><img alt='{}'></a>", "<a href=/x title='{}'></a>"]
)
def test_long_anchor_is_cut(link: str) -> None:
    long = "fine " * 40_000
    page = read_page(f"<title>{long}</title>" + link.format(long), URL)
    assert page.links[0].anchor == long[: ReadingLimits.anchor]
    assert page.title == long[: text.MAX_TITLE_LENGTH]


def test_limits_bound_the_reading() -> None:
    html = "<p>cheese <a href=/a>four words of text</a> milk"
    end = html.index("</a>")
    assert read_page(html, URL, ReadingLimits(html=end, anchor=4)).links[0].anchor == "four"
    assert read_page(html, URL, ReadingLimits(html=end)).text == "cheese four words of text"


@pytest.mark.parametrize(
    ("named", "canonical"),
    [
        ("/brie", "https://shop.example.org/brie"),
        ("https://www.shop.example.org/brie#top", "https://www.shop.example.org/brie"),
        ("https://other.example.net/brie", ""),
        ("javascript:go()", ""),
        ("http://[", ""),
        ("", ""),
    ],
)
def test_canonical_url_stays_on_host(named: str, canonical: str) -> None:
    html = f"<link rel='Shortlink CANONICAL' href='{named}'><p>Brie"
    expected = canonical or ("" if named else URL)
    assert read_page(html, URL).canonical == expected
    assert read_page("<p>Brie", URL).canonical == ""


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?utm_source=a&utm_medium=b&fbclid=c", ""),
        ("?&utm_source=a", ""),
        ("?id=1&utm_campaign=a&page=2", "?id=1&page=2"),
        ("?gclid=a&", ""),
        ("?source=utm_source&my_fbclid=2", "?source=utm_source&my_fbclid=2"),
        ("?b=2&a=1&", "?b=2&a=1&"),
    ],
)
def test_tracking_parameters_are_dropped(query: str, kept: str) -> None:
    assert links(f"<a href='/brie{query}'>") == (Link(f"https://shop.example.org/brie{kept}", ""),)


@pytest.mark.parametrize("attribute", [" a{}", " a{}=1", "/a{}", "a{}='x > y'", " a{}=\n'<b'"])
def test_tag_full_of_attributes_ends_page(attribute: str) -> None:
    def html(count: int) -> str:
        attributes = "".join(attribute.format(i) for i in range(count))
        return f"<p>Brie</p><p {attributes}><a href=/x>X</a>"

    assert len(read_page(html(100), URL).links) == 1
    page = read_page(html(MAX_ATTRIBUTES + 1), URL)
    assert (page.text, page.links) == ("Brie", ())


@pytest.mark.parametrize(("count", "links"), [(100, 1), (1_500, 0)])
def test_flood_of_open_tags_ends_page(count: int, links: int) -> None:
    page = read_page(f"<p>Brie</p>{'<iframe' * count}><a href=/x>X</a>", URL)
    assert (page.text, len(page.links)) == ("Brie" if links == 0 else page.text, links)


def test_nested_menu_is_still_menu() -> None:
    nested = "<a href=x>y<table><td>" * 2_000
    page = read_page(
        f"{'cheese ' * 40}<div><a href=/a>Shop</a> <a href=/b>Buy</a></div>{nested}", URL
    )
    assert "Shop" not in page.text


@pytest.mark.long
@pytest.mark.parametrize(
    "nested",
    [
        "<svg>" + "<a href=x> " * 19_900,
        "<svg>" + "<g><a href=x> " * 9_900,
        "<a href=x><object>" * 9_900 + "</a>" * 10_000,
        "<a href=x><marquee></a>" * 9_900,
        "<table><tr><td><a href=x>" * 4_900,
        "<h1><a href=x>" * 9_900,
        "<a" * 19_900 + "x" * 100_000,
        "<a b" * 19_900 + "x" * 100_000,
        "<a b=" * 19_900 + "x" * 100_000,
        "<a b='" * 19_901 + "x" * 100_000,
        "<a" * 19_900 + " " * 100_000,
        "<a" * 19_900 + " b" + " " * 100_000,
        "<a" * 19_900 + "/" * 100_000,
        "<a" * 19_900 + ' b=">' + "x" * 100_000,
        "<p b='<a'" * 19_900 + "x" * 100_000,
    ],
)
def test_nested_links_take_no_longer_than_others(nested):
    def seconds(html):
        start = process_time()
        read_page(html, "http://a.test/", contexts=True, places=True, language=False)
        return process_time() - start

    flat = seconds("<p><a href=x>w</a>" * 9_900)
    assert seconds(nested) < 30 * flat


def test_inner_link_has_no_text():
    page = read_page(
        "<a href=/out>one <table><td><a href=/in>two</a></table> three</a>", "http://a.test/"
    )
    assert dict(page.links) == {"http://a.test/out": "one two three", "http://a.test/in": ""}


@given(
    st.sampled_from(
        ["http://a.test/b/c", "https://a.test/?q=1", "http://a.test:8080/b", "http://a.test/b/.."]
    ),
    st.sampled_from(["", "/", "/b", "http://x.test", "https://y.test/", "//z.test/", "http:"]),
    st.text("/.?&=#ab;~", max_size=8),
)
def test_links_are_joined_as_urls_are(url: str, start: str, end: str) -> None:
    """Most links take a short way past `urljoin`."""
    href = start + end
    target = canonicalise(urljoin(url, href))
    expected = {target} - {None, canonicalise(url)}
    found = read_page(f'<a href="{escape(href)}">a</a>', url).links
    assert {link.url for link in found} == expected


LONG_HOSTS = ["\u4e2d" * 64 + ".test", "\u4e2d\u3002" * 130 + "test", "a." * 127 + "test", "a" * 64]


@pytest.mark.parametrize("host", LONG_HOSTS)
@pytest.mark.parametrize(
    "html",
    [
        "<a href='http://{0}/'>x</a>",
        "<a href=' \nht\ttp://me:x@{0}:80/a'>x</a>",
        "<base href='//{0}/'><a href=/a>x</a>",
        "<link rel=canonical href='//{0}/'>"
        "<link rel=alternate type=application/rss+xml href=//{0}>",
    ],
)
def test_long_hosts_are_not_encoded(html, host, monkeypatch):
    monkeypatch.setattr("encodings.idna.ToASCII", None)
    page = read_page(html.format(host), "http://a.test/")
    assert (page.links, page.canonical, page.feeds) == ((), "", ())


def test_long_international_host_is_read():
    host = "\u4e2d" * 10 + "." + "caf\u00e9" * 6
    page = read_page(f"<a href='http://{host}.test/x?a//{'b' * 300}'>x</a>", "http://a.test/")
    assert page.links[0].url.startswith("http://xn--")


def test_links_of_a_page_are_bounded():
    long = f"http://a.test/{'x' * 1_900}"
    links = "".join(f"<a href={i}>food</a>" for i in range(1_200))
    page = read_page(f"<base href={long}/>{links}", "http://a.test/")
    assert sum(len(link.url) + len(link.anchor) for link in page.links) <= 64 * 1024
    assert len(page.links) == 34
    assert page.links_cut == 1_200 - 34
    assert read_page(links, "http://a.test/").links_cut == 200
