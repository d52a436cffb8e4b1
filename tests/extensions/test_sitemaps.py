"""Crawls with `sitemap=1`."""

import asyncio
import gzip
from collections import Counter
from concurrent.futures import Future
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest
from soup import FOOD, OTHER, link

from tres_scrapy.extensions import sitemaps
from tres_scrapy.extensions.sitemaps import Sitemaps
from tres_scrapy.page.sitemap import INDEX
from tres_scrapy.page.text import Link, Page

FEED = '<link rel="alternate" type="application/rss+xml" href="/feed">'


def urlset(*urls):
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f"<urlset>{entries}</urlset>"


@pytest.fixture
def web(pages):
    """A site whose pages are linked by its sitemaps and its feed only; b.test is not relevant."""
    pages.add("http://a.test/", FEED + FOOD.format("leek") + link("http://b.test/"))
    pages.add("http://b.test/", OTHER.format("tax"))
    pages.add("http://b.test/sitemap.xml", urlset("http://b.test/soup"))
    robots = "User-agent: x\nDisallow: /\n\nSitemap: http://a.test/index.xml"
    robots += "\nSitemap: file:///etc/hosts\nSitemap: http://b.test/sitemap.xml"
    pages.add("http://a.test/robots.txt", robots + "\nUser-agent: *\nDisallow: /private")
    maps = ("http://a.test/1.xml.gz", "http://a.test/bomb.xml", "http://a.test/private/2.xml")
    index = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in maps)
    pages.add("http://a.test/index.xml", f"<sitemapindex>{index}</sitemapindex>")
    packed = gzip.compress(urlset("http://a.test/", "http://a.test/pea", "/bean").encode())
    pages.answers[maps[0]] = (200, {"Content-Type": "application/gzip"}, packed)
    pages.add(maps[1], f'<!DOCTYPE x [<!ENTITY a "b">]>{urlset("http://a.test/&a;")}')
    pages.add(maps[2], urlset("http://a.test/secret"))
    item = "<item><title>Chickpea soup</title><link>http://c.test/chickpea</link></item>"
    pages.add("http://a.test/feed", f"<rss><channel>{item}</channel></rss>")
    for url in ("http://a.test/pea", "http://a.test/bean", "http://c.test/chickpea"):
        pages.add(url, FOOD.format(url.rpartition("/")[2]))
    return pages


def test_sitemaps_and_feeds_give_links(crawl, web):
    process, items = crawl("-a", "seed=http://a.test/", "-a", "sitemap=1", pages=web)
    assert process.returncode == 0, process.stderr
    found = {item["url"]: (item["anchor"], item["depth"]) for item in items}
    assert found == {
        "http://a.test/": ("", 0),
        "http://a.test/pea": ("", 1),
        "http://a.test/bean": ("", 1),
        "http://c.test/chickpea": ("Chickpea soup", 1),
    }
    asked = web.fetched()
    assert len(set(asked)) == len(asked)
    assert "http://b.test/sitemap.xml" not in asked
    assert "http://a.test/private/2.xml" not in asked
    stats = process.stats
    assert stats["tres/pages"] == 5
    assert "tres/failures/not_html" not in stats
    assert stats["tres/sitemaps/read"] == 3
    assert stats["tres/sitemaps/links"] == 3
    assert stats["tres/sitemaps/failed"] == 3  # the bomb, the forbidden one, that of c.test


def test_host_that_asks_to_be_left_alone_holds_up_no_end(crawl, pages):
    pages.add("http://a.test/", FEED + FOOD.format("leek"))
    pages.add("http://a.test/feed", "later", status=429, **{"Retry-After": "3600"})
    pages.add("http://a.test/sitemap.xml", urlset("http://a.test/pea"))
    process, items = crawl("-a", "seed=http://a.test/", "-a", "sitemap=1", pages=pages)
    assert process.returncode == 0, process.stderr
    assert [item["url"] for item in items] == ["http://a.test/"]
    assert "http://a.test/sitemap.xml" not in pages.fetched()
    assert process.stats["finish_reason"] == "frontier_exhausted"


@pytest.mark.long
def test_no_sitemap_is_asked_for_by_default(crawl, web):
    process, _ = crawl("-a", "seed=http://a.test/", pages=web)
    assert process.returncode == 0, process.stderr
    assert sorted(web.fetched()) == ["http://a.test/", "http://b.test/"]


@pytest.mark.long
def test_scope_and_max_hold_for_sitemaps(crawl, web):
    web.add(
        "http://a.test/robots.txt", "Sitemap: http://old.a.test/\nSitemap: http://a.test/index.xml"
    )
    process, items = crawl(
        *("-a", "seed=http://a.test/", "-a", "sitemap=1"),
        *("-a", "max_per_domain=2", "-a", "denied_domains=c.test,old.a.test"),
        pages=web,
    )
    assert process.returncode == 0, process.stderr
    assert sum(item["domain"] == "a.test" for item in items) == 2
    assert process.stats["tres/out_of_scope/denied_domains"] == 1
    assert {"http://c.test/chickpea", "http://old.a.test/"}.isdisjoint(web.fetched())


def test_names_of_an_index_are_learned():
    """The judge's process sends a text once: a later file would name it by a number unknown."""
    response = Mock(status=200, body=b"", url="http://a.test/index.xml")
    extension = Sitemaps(Mock(**{"engine.download_async": AsyncMock(return_value=response)}))
    page = Page(response.url, "", "", (Link("http://a.test/1.xml", ""),), content_type=INDEX)
    found = Future()
    found.set_result(Mock(is_broken=False, page=page, names=["sitemap"]))
    extension._session = Mock(**{"judge.submit.return_value": found})
    extension._session.crawl.counts = Counter()
    assert asyncio.run(extension._read(7, response.url)) == ["http://a.test/1.xml"]
    extension._session.crawl.store.names.learn.assert_called_once_with(["sitemap"])


@pytest.mark.parametrize("reason", ["pause", "rest", "closed"])
def test_nothing_is_read_in_a_pause_or_rest(monkeypatch, reason):
    monkeypatch.setattr(sitemaps, "PAUSE", 0)
    monkeypatch.setattr(sitemaps, "LONG_PAUSE", 0)
    engine, read = Mock(paused=reason == "pause"), []
    extension = Sitemaps(Mock(engine=engine))
    learner = Mock(**{"crawl.finished": False, "crawl.store.hosts.find.return_value": 3})
    learner.health.resting.return_value = [3] if reason == "rest" else []
    learner.sites.is_closed.side_effect = lambda host, now: reason == "closed" and host == "a.test"
    extension._session = learner

    async def note(row, url):
        read.append((row, url))
        return []

    async def crawl():
        extension._read = note
        asking = asyncio.ensure_future(extension._ask(7, "http://a.test", ["http://a.test/map"]))
        for _ in range(9):
            await asyncio.sleep(0)
        before, engine.paused = list(read), False
        learner.health.resting.return_value = []
        learner.sites.is_closed.side_effect = lambda host, now: False
        await asking
        return before

    assert asyncio.run(crawl()) == []
    assert read == [(7, "http://a.test/map")]
    learner.job.note_asked.assert_called_once_with("http://a.test")


def test_hosts_asked_before_are_not_asked_again():
    learner = MagicMock(listeners=[], **{"job.origins_asked.return_value": ["http://a.test"]})
    learner.crawl.store.ledger.id_of_host.return_value = 5
    learner.crawl.store.ledger.exhausted.return_value = [False]
    extension = Sitemaps(Mock(**{"get_extension.return_value": learner}))
    extension.spider_opened()
    extension.note(Mock(relevant=True, **{"judged.page.url": "http://a.test/soup"}))
    assert not extension._tasks


@pytest.mark.long
def test_resumed_crawl_keeps_what_sitemaps_gave(crawl, web, tmp_path):
    job = ("-a", "seed=http://a.test/", "-a", "sitemap=1", "-s", f"JOBDIR={tmp_path / 'job'}")
    process, _ = crawl(*job, "-a", "pages=4", pages=web)
    assert process.stats["tres/sitemaps/links"] == 3, process.stderr
    for url in ("http://a.test/feed", "http://a.test/index.xml", "http://a.test/1.xml.gz"):
        del web.answers[url]
    process, items = crawl(*job, "-a", "pages=9", pages=web)
    assert process.returncode == 0, process.stderr
    assert process.stats["tres/pages"] == 5
    assert len({item["url"] for item in items}) == len(items) == 4
