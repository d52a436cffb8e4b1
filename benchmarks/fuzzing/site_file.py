"""Fuzzing targets that read the files of a site: robots.txt, sitemaps, feeds and rights."""

from __future__ import annotations

import gzip
from random import Random
from typing import Final

from scrapy.robotstxt import ProtegoRobotParser

from fuzzing.mutation import changed_bytes
from tres_scrapy.page.robots import EVERYONE, own_rules
from tres_scrapy.page.sitemap import SitemapError, read_sitemap
from tres_scrapy.rights.signal import as_items, reserved_uses
from tres_scrapy.rights.site import SiteRules
from tres_scrapy.url.canonical import canonicalise

URL: Final = "https://shop.example.org/cheese/index.html?page=2"
SITEMAPS: Final = (
    b"""<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE urlset [<!ENTITY a "b">]>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://shop.example.org/brie
</loc><lastmod>2024-02-30T10:00:00Z</lastmod></url><url><loc>/camembert?a=1&amp;b=2</loc></url>
</urlset>""",
    b"""<sitemapindex><sitemap><loc>https://shop.example.org/more.xml.gz</loc><lastmod>2024</lastmod>
</sitemap></sitemapindex>""",
    b"""<rss version="2.0"><channel><title>Cheese</title><item><title>Brie &#8212; &lt;b></title>
<link>https://other.example.org/brie</link><pubDate>Mon, 30 Feb 2024 10:00:00 GMT</pubDate>
<description><![CDATA[<p>A soft <a href="/x">cheese</a>]]></description></item></channel></rss>""",
    b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><title type="html">Brie</title>
<link rel="alternate" href="brie.html"/><updated>2024-01-01T00:00:00+99:00</updated>
<summary>soft</summary></entry></feed>""",
    b"https://shop.example.org/brie\r\nhttps://shop.example.org/\xc3\xa9\n\xef\xbb\xbf/relative\n",
)
ROBOTS: Final = (
    b"""User-agent: tres\nUser-agent: *\nDisallow: /a*b$ # all\nAllow: /%61\xe9\nCrawl-delay: 1e9
Content-Signal: /cheese ai-train=no, search=yes\nContent-Usage: train-ai=n;x="a,b", *=y
Sitemap: https://shop.example.org/s.xml\n\nUser-agent: other\nDisallow: /\nRequest-rate: 1/5
Visit-time: 0600-0845\n""",
    b"\xef\xbb\xbfUser-Agent:*\rDisallow:\rContent-Usage: ai=n\r\n" + b"Disallow: /*a*a*a*b$\n" * 9,
)
RIGHTS: Final = (
    b"""[{"location": "/cheese/*.html$", "tdm-reservation": 1, "tdm-policy": "https://a.example/p"},
{"location": "/", "tdm-reservation": 0}]""",
)


class SiteFile:
    """The bytes of a file, changed; each check takes it as latin-1 text."""

    files: tuple[bytes, ...]

    def draw(self, random: Random) -> str:
        """Return a file with bytes changed, perhaps repeated."""
        data = changed_bytes(random, random.choice(self.files))
        return (data * random.choice([1, 1, 1, 1, 100])).decode("latin-1")


class Sitemaps(SiteFile):
    """A sitemap, feed or list, perhaps packed; its links are canonical, each once."""

    name, share, files = "read_sitemap", 0.06, SITEMAPS

    def draw(self, random: Random) -> str:
        data = super().draw(random)
        if random.random() < 0.2:
            packed = changed_bytes(random, gzip.compress(data.encode("latin-1"), 1, mtime=0))
            return packed.decode("latin-1")
        return data

    def check(self, text: str) -> None:
        try:
            page = read_sitemap(text.encode("latin-1", "replace"), URL)
        except SitemapError:
            return
        assert len({link.url for link in page.links}) == len(page.links)
        assert len(page.contexts) == len(page.places) == len(page.links)
        for link in page.links:
            assert canonicalise(link.url) == link.url, link.url
        "".join([*page.contexts, *(link.anchor for link in page.links)]).encode()


class RobotsFiles(SiteFile):
    """A robots.txt; the group for us can be parsed, and its usage rules be applied to a URL."""

    name, share, files = "own_rules", 0.06, ROBOTS

    def check(self, text: str) -> None:
        rules = own_rules(text.encode("latin-1", "replace"), "tres")
        parser = ProtegoRobotParser(rules, None)
        assert isinstance(parser.allowed(URL, EVERYONE), bool)
        parser.crawl_delay(EVERYONE)
        signals = SiteRules.of_robots(rules.decode(), "now").of(URL)
        reserved_uses(signals)
        as_items(signals)


class RightsFiles(SiteFile):
    """A tdmrep.json; it is rules, or ValueError."""

    name, share, files = "of_tdm_file", 0.02, RIGHTS

    def check(self, text: str) -> None:
        try:
            rules = SiteRules.of_tdm_file(text.encode("latin-1", "replace"), "now")
        except ValueError:
            return
        signals = rules.of(URL)
        reserved_uses(signals)
        "".join(value for item in as_items(signals) for value in item.values()).encode()
