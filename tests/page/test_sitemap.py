import gzip

import pytest

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page import sitemap
from tres_scrapy.page.place import Place
from tres_scrapy.page.sitemap import FEED, INDEX, MAX_BYTES, SITEMAP, SitemapError, read_sitemap

URL = "http://www.a.test/sitemap.xml"
SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
NEWS = "http://www.google.com/schemas/sitemap-news/0.9"
URLSET = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="{SITEMAPS}" xmlns:news="{NEWS}"><!-- made by hand -->
<url><loc> http://www.a.test/soup?a=1&amp;b=2 </loc><lastmod>2026-05-31T10:00:00Z</lastmod></url>
<url><loc>/leek</loc><news:news><news:title>Leek soup</news:title></news:news></url>
<url><loc>http://b.test/foreign</loc></url><url><loc>http://blog.a.test/</loc></url>
<url><lastmod>2026-01-01</lastmod></url></urlset>"""
INDEXED = f"""<sitemapindex xmlns="{SITEMAPS}"><sitemap><loc>http://www.a.test/1.xml.gz</loc></sitemap>
<sitemap><loc>http://www.a.test/2.xml</loc><lastmod>2026-05-31</lastmod></sitemap></sitemapindex>"""
RSS = """<rss version="2.0"><channel><title>Soups</title><link>http://a.test/</link><item>
<title>Pea soup</title><link>http://a.test/pea</link>
<pubDate>Sun, 31 May 2026 10:00:00 GMT</pubDate>
<description><![CDATA[<p class="x">Boil the peas</p>]]></description></item>
<item><title>Elsewhere</title><link>http://b.test/</link></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://a.test/"/><entry>
<title>Bean soup</title><link rel="self" href="/no"/><link href="/bean"/>
<summary>Boil beans</summary>
<published>2026-04-01</published><updated>2026-05-01</updated></entry></feed>"""


def urls(page):
    return [link.url for link in page.links]


def test_sitemap_says_path_title_and_month():
    page = read_sitemap(URLSET.encode(), URL)
    assert page.content_type == SITEMAP
    assert page.links == (
        ("http://www.a.test/soup?a=1&b=2", ""),
        ("http://www.a.test/leek", "Leek soup"),
        ("http://blog.a.test/", ""),
    )
    changed = ("changed 2026", "changed 2026-05")
    assert page.places == (Place((SITEMAP, *changed)), *[Place((SITEMAP,))] * 2)


def test_index_names_sitemaps():
    page = read_sitemap(INDEXED.encode(), URL)
    assert page.content_type == INDEX
    assert urls(page) == ["http://www.a.test/1.xml.gz", "http://www.a.test/2.xml"]


@pytest.mark.parametrize(
    ("text", "links", "place"),
    [
        (
            RSS,
            [("http://a.test/pea", "Pea soup"), ("http://b.test/", "Elsewhere")],
            ("boil", "the", "peas", "changed 2026", "changed 2026-05"),
        ),
        (
            ATOM,
            [("http://www.a.test/bean", "Bean soup")],
            ("boil", "beans", "changed 2026", "changed 2026-05"),
        ),
    ],
    ids=["rss", "atom"],
)
def test_feed_says_title_text_and_month(text, links, place):
    page = read_sitemap(text.encode(), URL)
    assert (page.content_type, list(map(tuple, page.links))) == (FEED, links)
    assert page.places[0] == Place((FEED, *place))


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(URLSET.encode()),
        URLSET.replace("UTF-8", "utf-16").encode("utf-16"),
        b"\xef\xbb\xbf\r\n" + URLSET.encode(),
        URLSET[: URLSET.index("<url><lastmod>")].encode(),
    ],
    ids=["gzip", "utf-16", "mark", "cut"],
)
def test_sloppy_files_are_read(body):
    assert urls(read_sitemap(body, URL)) == urls(read_sitemap(URLSET.encode(), URL))


@pytest.mark.parametrize(("text", "name"), [(URLSET, "leek"), (RSS, "pea"), (ATOM, "bean")])
def test_films_of_a_sitemap_are_no_links(text, name):
    page = read_sitemap(text.replace(f"/{name}", f"/{name}.mp4").encode(), URL)
    others = [url for url in urls(read_sitemap(text.encode(), URL)) if name not in url]
    assert urls(page) == others


def test_lines_are_a_sitemap():
    page = read_sitemap(b"http://a.test/1\r\nhttp://a.test/2\nno\n", "http://a.test/map.txt")
    assert urls(page) == ["http://a.test/1", "http://a.test/2", "http://a.test/no"]


def test_keywords_then_the_newest_are_kept():
    entries = [("/old", "2020-01-01"), ("/new", "2026-05-01"), ("/soup", "2019-01-01")]
    text = "".join(f"<url><loc>{loc}</loc><lastmod>{day}</lastmod></url>" for loc, day in entries)
    body = f"<urlset>{text}</urlset>".encode()
    page = read_sitemap(body, URL, ReadingLimits(links=2), lambda url: "soup" in url)
    assert urls(page) == ["http://www.a.test/soup", "http://www.a.test/new"]
    assert urls(read_sitemap(body, URL))[0] == "http://www.a.test/old"


BOMB = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa">{}]>
<urlset><url><loc>http://www.a.test/&z;</loc></url></urlset>"""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x1f\x8bno gzip",
        b"<html><body><a href=/>Not found</a></body></html>",
        b"no XML",
        BOMB.format('<!ENTITY z "&a;&a;">').encode(),
        BOMB.format('<!ENTITY z SYSTEM "file:///etc/passwd">').encode(),
        gzip.compress(BOMB.format("").encode()),
    ],
)
def test_other_files_are_refused(body):
    with pytest.raises(SitemapError):
        read_sitemap(body, URL)


def test_entities_hidden_by_the_encoding_are_not_resolved():
    text = BOMB.format('<!ENTITY z SYSTEM "file:///etc/passwd">')
    assert urls(read_sitemap(text.encode("utf-16"), URL)) in ([], ["http://www.a.test/"])


def test_huge_file_is_read_in_part(monkeypatch):
    monkeypatch.setattr(sitemap, "MAX_ENTRIES", 500)
    entry = b"<url><loc>http://www.a.test/%09d</loc></url>"
    body = b"<urlset>" + b"".join(entry % number for number in range(600))
    lines = b"".join(b"http://www.a.test/%d\n" % number for number in range(600))
    for each in (body, lines):
        assert len(read_sitemap(each, URL).links) == 500
    packed = gzip.compress(b"<urlset>" + b" " * (64 << 20) + entry % 1)
    assert len(packed) < MAX_BYTES
    assert urls(read_sitemap(packed, URL)) == []


def test_nesting_ends():
    body = b"<urlset>" + b"<url>" * 100_000 + b"<loc>http://www.a.test/</loc>"
    assert len(read_sitemap(body, URL).links) <= 1


def test_date_of_an_impossible_zone_is_left_out():
    text = RSS.replace("GMT", "+99999999999999999")
    assert text != RSS
    page = read_sitemap(text.encode(), URL)
    assert page.links == read_sitemap(RSS.encode(), URL).links
    assert "changed" not in str(page.places[0])


def test_elements_without_end_are_read_in_part(monkeypatch):
    monkeypatch.setattr(sitemap, "MAX_EVENTS", 20)
    body = f"<urlset>{'<a/>' * 20}<url><loc>{URL}</loc></url></urlset>"
    assert not read_sitemap(body.encode(), URL).links


def test_links_of_a_sitemap_are_bounded():
    urls = "".join(f"<url><loc>http://a.test/{i}{'x' * 1_900}</loc></url>" for i in range(50))
    page = read_sitemap(f"<urlset>{urls}</urlset>".encode(), "http://a.test/sitemap.xml")
    assert len(page.links) == len(page.places) == len(page.contexts) == 34
    assert page.links_cut == 16
