import asyncio

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest, StopDownload
from scrapy.http import TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.test import get_crawler

from tres_scrapy.downloader import robots as robots_txt
from tres_scrapy.downloader.refusal import FetchRefusedError, failure_of
from tres_scrapy.downloader.request import ROBOTS_TXT
from tres_scrapy.downloader.robots import MAX_LENGTH, RobotsMiddleware

CLOSED = b"User-agent: *\nDisallow: /closed\n"


class Engine:
    """Answers every robots.txt with `answer`, a status or an error; records the requests."""

    def __init__(self, length):
        self.body = CLOSED.ljust(length, b"#")
        self.answer = 200
        self.asked = []

    async def download_async(self, request):
        self.asked.append(request)
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return TextResponse(request.url, self.answer, body=self.body)

    @property
    def urls(self):
        return [request.url for request in self.asked]


@pytest.fixture
def middleware(monkeypatch):
    monkeypatch.setattr(robots_txt, "ROOM", 4096)
    crawler = get_crawler(Spider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": "tres-scrapy"})
    crawler.engine = Engine(2000)
    return RobotsMiddleware.from_crawler(crawler)


@pytest.fixture
def engine(middleware):
    return middleware.crawler.engine


def outcome(middleware, *urls):
    """Return for each URL, all requested at once, None or the error that refuses it."""

    async def ask(url):
        request = Request(url)
        try:
            await middleware.process_request(request)
        except Exception as error:
            return error
        return None

    async def ask_all():
        return await asyncio.gather(*map(ask, urls))

    return asyncio.run(ask_all())


def closed(middleware, *hosts):
    """Return whether /closed of each host is forbidden."""
    errors = outcome(middleware, *(f"http://{host}.test/closed" for host in hosts))
    return [failure_of(error).kind == "robots" if error else False for error in errors]


def test_every_waiting_request_gets_rules(middleware, engine):
    assert closed(middleware, *"aaa") == [True] * 3
    assert engine.urls == ["http://a.test/robots.txt"]


def test_each_scheme_and_port_has_rules(middleware, engine):
    places = ["http://a.test", "https://a.test", "http://a.test:81"]
    outcome(middleware, *(f"{place}/x" for place in places))
    assert sorted(engine.urls) == sorted(f"{place}/robots.txt" for place in places)


def test_oldest_rules_are_forgotten(middleware, engine, monkeypatch):
    monkeypatch.setattr(robots_txt, "SMALLEST", 2000)
    for host in "abac":
        assert closed(middleware, host) == [True]
    assert closed(middleware, *"bac") == [True] * 3
    assert engine.urls == [f"http://{host}.test/robots.txt" for host in "abcb"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 204])
def test_no_rules_forbid_nothing(middleware, engine, status):
    engine.answer = status
    assert outcome(middleware, "http://a.test/closed") == [None]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_failing_host_forbids_all(middleware, engine, status):
    engine.answer = status
    first, second = outcome(middleware, "http://a.test/1", "http://a.test/2")
    assert isinstance(first, HttpError)
    assert first.response.status == status
    assert failure_of(second).kind == f"http_{status}"
    assert len(engine.asked) == 1


def test_silent_host_forbids_all(middleware, engine):
    engine.answer = DownloadTimeoutError()
    request = Request("http://a.test/1")
    with pytest.raises(DownloadTimeoutError):
        asyncio.run(middleware.process_request(request))


@pytest.mark.parametrize(("answer", "again"), [(503, "AGAIN"), (200, "VALID")])
def test_rules_are_asked_for_again(middleware, engine, monkeypatch, answer, again):
    monkeypatch.setattr(robots_txt, again, 0.0)
    middleware._again = robots_txt.AGAIN
    engine.answer = answer
    outcome(middleware, "http://a.test/x")
    engine.answer = 200
    assert closed(middleware, "a") == [True]
    assert len(engine.asked) == 2


@pytest.mark.parametrize("error", [IgnoreRequest("max redirections reached")])
def test_endless_redirects_forbid_nothing(middleware, engine, error):
    engine.answer = error
    assert outcome(middleware, "http://a.test/closed") == [None]


def test_bomb_forbids_all(middleware, engine):
    engine.answer = FetchRefusedError("too large", "too_large")
    (error,) = outcome(middleware, "http://a.test/x")
    assert failure_of(error).kind == "too_large"


def test_long_file_is_not_read_further(middleware):
    request = Request("http://a.test/robots.txt", meta={ROBOTS_TXT: 0})
    middleware.bytes_received(bytes(MAX_LENGTH), request)
    with pytest.raises(StopDownload):
        middleware.bytes_received(b"x", request)
    middleware.bytes_received(bytes(2 * MAX_LENGTH), Request("http://a.test/"))
