import asyncio

import pytest
from scrapy import Request, Spider
from scrapy.http import TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.test import get_crawler

from tres_scrapy.downloader import robots as robots_txt
from tres_scrapy.downloader.robots import RobotsMiddleware


class Engine:
    """Answers every robots.txt with rules of one length; records the requests."""

    def __init__(self, length):
        self.body = b"User-agent: *\nDisallow: /closed\n".ljust(length, b"#")
        self.asked = []
        self.status = 200

    async def download_async(self, request):
        self.asked.append(request.url)
        await asyncio.sleep(0)
        if "dead" in request.url:
            raise OSError("no server is there")
        return TextResponse(request.url, self.status, body=self.body)


@pytest.fixture
def middleware(monkeypatch):
    monkeypatch.setattr(robots_txt, "ROOM", 4096)
    crawler = get_crawler(Spider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": "tres"})
    crawler.engine = Engine(2000)
    return RobotsMiddleware(crawler)


def allowed(middleware, *hosts):
    """Return whether /closed of each host may be fetched; all are requested at once."""

    async def ask(host):
        parser = await middleware.robot_parser(Request(f"http://{host}.test/closed"))
        return parser is None or parser.allowed("http://a.test/closed", "tres")

    async def ask_all():
        return await asyncio.gather(*map(ask, hosts))

    return asyncio.run(ask_all())


def test_every_waiting_request_gets_rules(middleware):
    assert allowed(middleware, *"aaa") == [False] * 3
    assert middleware.crawler.engine.asked == ["http://a.test/robots.txt"]


def test_oldest_rules_are_forgotten(middleware):
    for host in "abac":
        assert allowed(middleware, host) == [False]
    assert list(middleware._parsers) == ["a.test", "c.test"]
    assert allowed(middleware, *"bac") == [False] * 3
    asked = middleware.crawler.engine.asked
    assert asked == [f"http://{host}.test/robots.txt" for host in "abcb"]


def test_forgotten_rules_hold_for_waiting(middleware):
    hosts = "abcdefgh" * 3
    assert allowed(middleware, *hosts) == [False] * len(hosts)
    assert len(middleware._parsers) == len(middleware._sizes) == 2


def test_unreachable_rules_fail_their_requests(middleware):
    """RFC 9309 (2.3.1.4): what cannot be asked is forbidden, until it can be."""
    with pytest.raises(OSError, match="no server is there"):
        allowed(middleware, *["dead"] * 3)
    engine = middleware.crawler.engine
    assert engine.asked == ["http://dead.test/robots.txt"]
    for engine.status in (429, 503):
        with pytest.raises(HttpError):
            allowed(middleware, "a")
    engine.status = 200
    assert allowed(middleware, "a") == [False]
    assert len(engine.asked) == 4
