"""The fuzzing target that gives responses to the event loop's part of a crawl."""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

from protego import Protego
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.test import get_crawler

from fuzzing.mutation import CHARSETS, TEXTS, changed, page, url
from tres_scrapy.downloader.compression import BoundedCompression
from tres_scrapy.downloader.refusal import MetaRefreshes, Redirects
from tres_scrapy.downloader.robots import LONG
from tres_scrapy.middlewares.message import CharsetMiddleware, CredentialMiddleware, LogFilter
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.robots import own_rules

BASE: Final = "https://shop.example.org/cheese/index.html"
LONGEST: Final = 2_000_000  # bytes of a response as it arrives
ROWS: Final = [
    "Content-Type",
    "Content-Type",
    "Content-Encoding",
    "Content-Encoding",
    "Location",
    "Set-Cookie",
    "Set-Cookie",
    "X-Robots-Tag",
    "Refresh",
    "Server",
    "Content-Disposition",
]
PACKINGS: Final = ["gzip", "deflate", "br", "zstd", "x-gzip", "identity", "gzip, gzip", "none"]
PACKED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": partial(gzip.compress, mtime=0),  # else it notes the second
    "deflate": zlib.compress,
}
RULES: Final = ["User-agent: *", "Disallow: /*a*b*c$", "Allow: /", "Disallow: /\xe9", "Sitemap: x"]


class Responses:
    """Status, headers and body; the crawler's own process must not stop at them."""

    name = "receive"
    share = 0.02

    def __init__(self) -> None:
        crawler = get_crawler(Spider, {"USER_AGENT": "tres-scrapy", "DOWNLOAD_MAXSIZE": 2**23})
        classes: list[Any] = [CredentialMiddleware, CookiesMiddleware, Redirects]
        classes += [BoundedCompression, CharsetMiddleware, MetaRefreshes]
        self._chain = [
            each.from_crawler(crawler) if hasattr(each, "from_crawler") else each()
            for each in classes
        ]
        for each in self._chain:  # they would look for the middleware that sets the Referer
            if hasattr(each, "_referer_spider_middleware"):
                each.handle_referer = lambda *_: None
        self._filter = LogFilter()

    def draw(self, random: Random) -> str:
        rows = [f"{name}: {_value(random, name)}" for name in random.choices(ROWS, k=5)]
        body = page(random, TEXTS).encode("utf-8", "surrogatepass")
        if random.random() < 0.1:
            body = "\n".join(random.choices(RULES, k=30)).encode("latin-1")
        if random.random() < 0.3:
            body *= random.randrange(1, max(2, LONGEST // max(1, len(body))))
        if random.random() < 0.3:
            kind = random.choice(list(PACKED))
            body = PACKED[kind](body)
            rows.append(f"Content-Encoding: {kind}")
        status = random.choice([200, 200, 200, 301, 302, 404, 500])
        return "\n".join([str(status), *rows, "", body[:LONGEST].decode("latin-1")])

    def check(self, text: str) -> None:
        head, _, body = text.partition("\n\n")
        status, *rows = head.split("\n")
        headers = Headers()
        for name, _, value in (row.partition(": ") for row in rows):
            headers.appendlist(name, value.encode("utf-8", "replace"))
        self._log(rows)
        data, request = body.encode("latin-1", "replace"), Request(BASE)
        kind = responsetypes.from_args(headers=headers, url=BASE, body=data)
        code = int(status) if status.isdecimal() else 200
        answer = kind(BASE, code, headers=headers, body=data, request=request)
        try:
            for middleware in self._chain:
                answer = middleware.process_response(request, answer)
        except Exception:
            return  # the fetch fails, with the name of the error; the response is dropped
        if isinstance(answer, Response):
            _read(answer)

    def _log(self, rows: list[str]) -> None:
        for row in rows:
            record = logging.LogRecord("scrapy", logging.INFO, "", 0, "%s", (row,), None)
            self._filter.filter(record)


def _read(response: Response) -> None:
    """Do what else the event loop does with a page, or with a robots.txt."""
    is_pdf(response.body)
    if isinstance(response, HtmlResponse):
        assert response.encoding
    if len(response.body) <= LONG:  # others are parsed in a thread
        Protego.parse(own_rules(response.body, "tres-scrapy").decode()).can_fetch(BASE, "*")


def _value(random: Random, name: str) -> str:
    """Return a value of a header in one line."""
    if name == "Content-Type":
        kinds = ["text/html", "text/html", "text/plain", "application/xml", "image/png", ""]
        return f"{random.choice(kinds)}; charset={random.choice(CHARSETS)}".replace("\n", "")
    if name == "Content-Encoding":
        return random.choice(PACKINGS)
    if name == "Location":
        value = url(random)
    else:
        value = changed(random, "0; url=/next; a=b; Path=/; noindex, nofollow", TEXTS)
    if random.random() < 0.05:
        value *= random.randrange(2_000)
    return value.replace("\n", "").replace("\r", "")[:200_000]
