import gzip

import pytest
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import DownloadCancelledError, DownloadTimeoutError, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.settings import Settings
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.test import get_crawler

from tres_scrapy.addon import REPLACED
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.downloader.compression import BoundedCompression
from tres_scrapy.downloader.refusal import (
    FetchRefusedError,
    MetaRefreshes,
    Redirects,
    failure_of,
    replace_middleware,
)
from tres_scrapy.downloader.request import LEASE
from tres_scrapy.downloader.robots import RobotsMiddleware

URL = "http://a.test/"
LIMITS = {"REDIRECT_MAX_TIMES": 0, "DOWNLOAD_MAXSIZE": 100, "ROBOTSTXT_OBEY": True}
MOVED = Response(URL, 302, {"Location": "/b"})
REFRESH = HtmlResponse(URL, body=b'<meta http-equiv="refresh" content="0; url=/b">')
BOMB = Response(URL, headers={"Content-Encoding": "gzip"}, body=gzip.compress(bytes(10_000)))


class Sealed(HtmlResponse):
    """A page whose text must not be decoded as a whole."""

    @property
    def text(self):
        raise AssertionError("decoded in the event loop")


class OwnRefusal(IgnoreRequest):
    pass


def middleware_of(cls):
    return cls.from_crawler(get_crawler(Spider, LIMITS))


@pytest.mark.parametrize(
    ("cls", "response", "kind"),
    [
        (Redirects, MOVED, "redirect_limit"),
        (MetaRefreshes, REFRESH, "redirect_limit"),
        (BoundedCompression, BOMB, "too_large"),
    ],
)
def test_limits_of_scrapy_have_kinds(cls, response, kind):
    with pytest.raises(IgnoreRequest) as caught:
        middleware_of(cls).process_response(Request(URL), response)
    assert caught.value.kind == kind


def test_start_of_page_shows_meta_refresh():
    middleware = MetaRefreshes.from_crawler(get_crawler(Spider))
    long = bytes(2**20)
    page = Sealed(URL, body=b"<title>x</title>" + long, encoding="utf-8")
    assert middleware.process_response(Request(URL), page) is page
    moved = Sealed(URL, body=REFRESH.body + long, encoding="utf-8")
    assert middleware.process_response(Request(URL), moved).url == "http://a.test/b"


@pytest.mark.parametrize(
    ("follows_all", "links", "url", "meta", "is_read"),
    [
        (True, 10, URL, {LEASE: 0}, True),
        (True, 9, URL, {LEASE: 0}, False),
        (True, 0, "http://a.test/b", {LEASE: 0}, True),
        (False, 10, URL, {LEASE: 0}, False),
        (True, 10, URL, {}, False),
    ],
)
def test_a_page_of_its_own_is_read_though_it_refreshes(follows_all, links, url, meta, is_read):
    middleware = MetaRefreshes.from_crawler(get_crawler(Spider))
    middleware.crawler.spider = Spider("x", follow_every_link=follows_all)
    page = HtmlResponse(url, body=REFRESH.body + b"<A href=/x>x</a>" * links, encoding="utf-8")
    assert (middleware.process_response(Request(url, meta=meta), page) is page) == is_read


@pytest.mark.parametrize("host", ["\u4e2d" * 64 + ".test", "a." * 127 + "test"])
def test_long_hosts_are_not_redirected_to(host, monkeypatch):
    monkeypatch.setattr("encodings.idna.ToASCII", None)  # must not be asked
    moved = Response(URL, 302, {"Location": f"//user@{host}:80/x".encode()})
    assert middleware_of(Redirects).process_response(Request(URL), moved) is moved


@pytest.mark.parametrize("slashes", ["//", "&#47;/"])
@pytest.mark.parametrize(
    "html",
    [
        "<base href='http:{0}{1}/'><meta http-equiv=refresh content='0; url=/b'>",
        "<meta http-equiv=refresh content='0; url=http:{0}{1}/'>",
    ],
)
def test_long_hosts_are_not_refreshed_to(html, slashes, monkeypatch):
    monkeypatch.setattr("encodings.idna.ToASCII", None)
    html = html.format(slashes, "&#x4e2d;" * 70 + "x" * 3_000)
    page = HtmlResponse(URL, body=html.encode())
    assert middleware_of(MetaRefreshes).process_response(Request(URL), page) is page


def test_forbidden_page_has_a_kind():
    rules = ProtegoRobotParser(b"User-agent: *\nDisallow: /", None)
    with pytest.raises(IgnoreRequest) as caught:
        middleware_of(RobotsMiddleware).process_request_2(rules, Request(URL))
    assert caught.value.kind == "robots"


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (HttpError(Response(URL, 503)), Failure("http_503", passes=True)),
        (HttpError(Response(URL, 404)), Failure("http_404")),
        (
            HttpError(Response(URL, 429, {"Retry-After": "120"})),
            Failure("http_429", passes=True, retry_after=120.0),
        ),
        (gzip.BadGzipFile(), Failure("BadGzipFile")),
        (DownloadCancelledError(), Failure("DownloadCancelledError")),
        (DownloadTimeoutError(), Failure("DownloadTimeoutError", passes=True)),
        (FetchRefusedError("too many", "redirect_limit"), Failure("redirect_limit")),
        (FetchRefusedError("10.0.0.1", "private_address"), Failure("private_address")),
        (IgnoreRequest("by another middleware"), Failure("ignored")),
        (OwnRefusal("by a project's"), Failure("OwnRefusal")),
        (OSError("too many open files"), Failure("OSError", passes=True)),
    ],
)
def test_errors_become_failures(error, failure):
    assert failure_of(error) == failure


def test_moved_middleware_keeps_its_kind():
    settings = Settings({"DOWNLOADER_MIDDLEWARES": {RedirectMiddleware: 610}})
    replace_middleware(settings, RedirectMiddleware, Redirects)
    assert settings.getdict("DOWNLOADER_MIDDLEWARES") == {Redirects: 610}


def test_own_redirect_middleware_stays():
    class Own(RedirectMiddleware):
        pass

    settings = Settings({"DOWNLOADER_MIDDLEWARES": {RedirectMiddleware: None, Own: 600}})
    for scrapys, ours in REPLACED.items():
        replace_middleware(settings, scrapys, ours)
    base = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE")
    assert Redirects not in base
    assert BoundedCompression in base
