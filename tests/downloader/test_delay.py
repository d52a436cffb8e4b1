import asyncio
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.settings import Settings

from tres_scrapy.downloader import delay as module
from tres_scrapy.downloader.delay import (
    CrawlDelay,
    CrawlDelayMiddleware,
    HeldError,
    SharedAddresses,
)
from tres_scrapy.downloader.private_address import PrivateAddressMiddleware, PublicResolver
from tres_scrapy.downloader.request import LEASE

PUBLIC = {
    "a.test": ["93.184.216.34"],
    "b.test": ["93.184.216.34", "93.184.216.99"],
    "c.test": ["93.184.216.35"],
}


@pytest.fixture
def middleware(monkeypatch):
    async def addresses(host):
        return PUBLIC[host]

    resolver = SimpleNamespace(addresses=addresses, trust=lambda host: None)
    monkeypatch.setattr(PublicResolver, "installed", lambda: resolver)
    return PrivateAddressMiddleware(SharedAddresses())


def slot(middleware, url, **meta):
    request = Request(url, meta=meta)
    asyncio.run(middleware.process_request(request))
    return request.meta.get("download_slot")


def test_hosts_of_an_address_get_one_slot(middleware):
    urls = [f"http://{host}.test/{path}" for path in ("robots.txt", "1") for host in "abc"]
    assert [slot(middleware, url) for url in urls] == ["a.test", "a.test", "c.test"] * 2


def test_own_slot_and_proxy_stay(middleware):
    slot(middleware, "http://a.test/")
    assert slot(middleware, "http://b.test/", download_slot="mine") == "mine"
    assert slot(middleware, "http://b.test/", proxy="http://localhost:1") is None


class Clock:
    """A clock that sleeping moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    async def sleep(self, pause):
        self.now += pause


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    monkeypatch.setattr(module.asyncio, "sleep", clock.sleep)
    return clock


def asking(host, seconds, concurrency=16):
    """The middleware of a crawl that knows the Crawl-delay of a host, and its slots."""
    slots = {"a.test": SimpleNamespace(lastseen=100.0, active=set())}
    crawler = SimpleNamespace(
        settings=Settings({"CONCURRENT_REQUESTS": concurrency}),
        engine=SimpleNamespace(downloader=SimpleNamespace(slots=slots)),
        spider=SimpleNamespace(follow_every_link=True),
    )
    delay = CrawlDelay(crawler)
    rules = SimpleNamespace(crawl_delay=lambda agent: seconds)
    delay.robots_parsed(rules, Request(f"http://{host}/robots.txt"))
    return CrawlDelayMiddleware(crawler, delay), delay


def pass_on(middleware, url, **meta):
    request = Request(url, meta=meta | {"download_slot": "a.test"})
    asyncio.run(middleware.process_request(request))
    return request


def test_sample_waits_in_the_frontier_for_its_host(clock):
    middleware, delay = asking("b.test", 20.0)
    with pytest.raises(HeldError) as held:
        pass_on(middleware, "http://b.test/1", **{LEASE: 1})
    assert (held.value.host, held.value.pause) == ("b.test", 20.0)
    pass_on(middleware, "http://a.test/1", **{LEASE: 2})  # of the same address
    assert clock.now == 100.0
    assert (delay.delay_of("b.test"), delay.delay_of("a.test")) == (20.0, 0.0)
    clock.now = 120.0
    pass_on(middleware, "http://b.test/1", **{LEASE: 1})
    with pytest.raises(HeldError):
        pass_on(middleware, "http://b.test/2", **{LEASE: 3})


@pytest.mark.parametrize(("concurrency", "meta"), [(16, {}), (1, {LEASE: 1})])
def test_other_requests_wait_for_their_host(clock, concurrency, meta):
    middleware, _ = asking("b.test", 20.0, concurrency)
    times = []
    for number in range(3):
        pass_on(middleware, f"http://b.test/{number}", **meta)
        times.append(clock.now)
    assert times == [120.0, 140.0, 160.0]


def test_crawl_delay_counts_from_the_request_that_was_sent(clock):
    middleware, delay = asking("b.test", 20.0)
    clock.now = 120.0
    request = pass_on(middleware, "http://b.test/1", **{LEASE: 1})
    delay._crawler.engine.downloader.slots["a.test"].lastseen = 125.0  # its address had a delay
    delay.response_downloaded(request)
    assert delay.reserve("b.test", patience=0.0) == 25.0
