"""Fuzzing targets that read text: URLs, hosts, pages, texts and stored requests."""

from __future__ import annotations

import json
import re
import socket
from ipaddress import ip_address
from random import Random
from typing import Final
from unittest.mock import patch
from urllib.parse import urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from fuzzing.mutation import CHARSETS, TEXTS, changed, host, json_text, page, url
from fuzzing.target import check_line
from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.downloader.request import dump_request, load_sample
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.page import copies
from tres_scrapy.page.copies import PHRASES, SKETCH, VOCABULARY, Duplicates, Memory, fingerprint
from tres_scrapy.page.kind import is_soft_404
from tres_scrapy.page.language import decoded, encoding_of
from tres_scrapy.page.text import MAX_TITLE_LENGTH, Page, read_page
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.url.canonical import MAX_URL_LENGTH, canonicalise, registrable_domain
from tres_scrapy.url.public_address import is_public, literal, may_be_public

BASE: Final = "https://shop.example.org/cheese/index.html"
URL: Final = re.compile(r"https?://[!-~]+")
LIMITS: Final = ReadingLimits()
patch.object(copies, "SLOTS", 2**12).start()  # 32 MB of zeros for each input would take longer
KEYWORDS: Final = KeywordSet(["cheese", "wine"], ["slow food"])
ARTICLE: Final = """<!DOCTYPE html><html lang=en><head><meta charset=utf-8><base href="/c/">
<title>Brie &amp; Camembert</title><link rel="canonical" href="https://shop.example.org/brie">
</head><body><nav><ul><li><a href="/">Home</a><li><a href="?page=2&amp;utm_source=x">Next</a></ul>
</nav><script>var a = "</a>";</script><main><h1>Brie</h1><p>A soft cow's-milk cheese named after
<a href="//brie.example.fr/caf\u00e9" title="Brie">Brie</a>, the region from which it
<a href='../maps/fr.html#ile'><img src=m.png alt="map of the region"></a> came, pale in colour with
a slight greyish tinge under a rind of white mould.</p><table><tr><td><a href=1>1</a><td>2</table>
<map><area href="http://me:pw@a.example.org:80/x" alt="A"></map></main><footer>2024</footer></body>
</html>"""


class Urls:
    """A link and the URL of its page; every canonical URL must be usable in a request."""

    name = "canonicalise"
    share = 0.29

    def draw(self, random: Random) -> str:
        base = BASE if random.random() < 0.7 else url(random)
        return base.replace("\n", "") + "\n" + url(random)

    def check(self, text: str) -> None:
        base, _, href = text.partition("\n")
        try:
            joined = urljoin(base, href)
        except ValueError:
            joined = href
        for each in (href, joined):
            canonical = canonicalise(each)
            if canonical is not None:
                self._check_canonical(canonical)
        KEYWORDS.in_url(href)

    @staticmethod
    def _check_canonical(canonical: str) -> None:
        parts = urlsplit(canonical)
        assert URL.fullmatch(canonical), canonical
        assert len(canonical) <= MAX_URL_LENGTH
        assert "@" not in parts.netloc
        assert parts.hostname
        assert parts.port != 0
        assert not parts.fragment
        assert canonicalise(canonical) == canonical, (canonical, canonicalise(canonical))
        request = Request(canonical)
        assert request.url == canonical, (request.url, canonical)
        assert urlparse_cached(request).hostname == parts.hostname
        registrable_domain(parts.hostname)
        may_be_public(parts.hostname)
        KEYWORDS.in_url(canonical)


class Hosts:
    """A host; a host that the system resolves to a private address must be refused."""

    name = "may_be_public"
    share = 0.2

    def draw(self, random: Random) -> str:
        return host(random)

    def check(self, text: str) -> None:
        allowed = may_be_public(text)
        address = literal(text) if allowed else None
        assert address is None or is_public(address)
        registrable_domain(text)
        if allowed:
            for found in _addresses(text):
                assert is_public(ip_address(found)), found


def check_mark(mark: bytes) -> None:
    """Check that a fingerprint is a sketch, and after it so many words and phrases at most."""
    assert len(mark) == SKETCH or 0 < len(mark) - SKETCH <= 4 * (1 + VOCABULARY + PHRASES)
    assert len(mark) % 4 == 0
    known = Memory().note(mark, 0)
    assert (known.elsewhere, known.here, known.spread) == (0, 0, ())  # nothing was said before


class Pages:
    """A declared charset, and the bytes of a page that may be in another charset."""

    name = "read_page"
    share = 0.15

    def __init__(self) -> None:
        web = SyntheticWeb("food", seed=1)
        bodies = [web.answer(seed).body.decode("utf-8", "replace") for seed in web.seeds[:2]]
        self._pages = [ARTICLE, ARTICLE, *bodies]

    def draw(self, random: Random) -> str:
        html = page(random, self._pages)
        try:
            body = html.encode(random.choice(CHARSETS[:14]), "replace")
        except UnicodeError:
            body = html.encode("utf-8", "surrogatepass")
        return random.choice(CHARSETS) + "\n" + body.decode("latin-1")

    def check(self, text: str) -> None:
        charset, _, body = text.partition("\n")
        data = body.encode("latin-1", "replace")
        html = decoded(data, encoding_of(data, f"text/html; charset={charset}"), LIMITS.html)
        for each in (html, data.decode("utf-8", "surrogateescape")):
            self._check_page(read_page(each, BASE, limits=LIMITS, contexts=True))

    @staticmethod
    def _check_page(page: Page) -> None:
        written = [page.title, page.text, page.language, page.canonical]
        written += page.contexts
        written += [link.anchor for link in page.links]
        "".join(written).encode()  # the page must be writable as an item
        assert len(page.title) <= MAX_TITLE_LENGTH
        assert len(page.contexts) == len(page.links) <= LIMITS.links
        assert len({link.url for link in page.links}) == len(page.links)
        for link in page.links:
            assert canonicalise(link.url) == link.url != BASE, link.url
            assert len(link.anchor) <= LIMITS.anchor
        assert page.canonical in {"", canonicalise(page.canonical)}
        is_soft_404(page)
        KEYWORDS.in_text(page.text)
        check_mark(fingerprint(page))


class Texts:
    """Title and text of a page; a page must be a duplicate of itself and of no other."""

    name = "fingerprint"
    share = 0.08

    def draw(self, random: Random) -> str:
        words = [random.choice(TEXTS) for _ in range(random.randrange(12))]
        return changed(random, "\n".join(words), TEXTS) * random.choice([1, 1, 1, 1, 30])

    def check(self, text: str) -> None:
        title, _, rest = text.partition("\n")
        page = Page(BASE, title, rest, ())
        mark, known = fingerprint(page), Duplicates()
        check_mark(mark)
        assert known.add(mark)
        assert not known.add(fingerprint(Page(BASE + "?b", title, rest, ())))
        assert isinstance(is_soft_404(page), bool)
        KEYWORDS.in_text(rest)


class OwnSpider(Spider):
    """A spider whose requests are stored."""

    name = "own"

    def parse_page(self, response: Response) -> None:
        """Do nothing."""


class StoredRequests:
    """A stored request of a job; reading it must give a plain web request or raise ValueError."""

    name = "load_sample"
    share = 0.05

    def __init__(self) -> None:
        self._spider = OwnSpider()
        self._request = json.loads(dump_request(own_request(self._spider, BASE), self._spider))

    def draw(self, random: Random) -> str:
        return json_text(random, self._request)

    def check(self, text: str) -> None:
        try:
            request = load_sample(text, self._spider)
        except ValueError as error:
            check_line(error)
            return
        assert type(request) is Request
        assert request.method == "GET"
        assert canonicalise(request.url) is not None, request.url
        assert "proxy" not in request.meta
        request.replace(meta=request.meta | {"a": 1})


def own_request(spider: OwnSpider, url: str) -> Request:
    """Return a request of a spider with every field set."""
    return Request(
        url,
        callback=spider.parse_page,
        headers={"Accept": ["text/html", "text/plain"]},
        cookies={"a": "b"},
        meta={"depth": 2, "names": ["x", None]},
        priority=3,
        flags=["one"],
        cb_kwargs={"page": 4},
    )


def _addresses(host: str) -> set[str]:
    """Return the addresses that the system reads in a host without asking a name server."""
    try:
        found = socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError):
        return set()
    return {str(place[4][0]) for place in found}
