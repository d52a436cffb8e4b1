import asyncio
from types import SimpleNamespace

import pytest
from scrapy import Request

from tres_scrapy.downloader.delay import SharedAddresses
from tres_scrapy.downloader.private_address import PrivateAddressMiddleware, PublicResolver

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
