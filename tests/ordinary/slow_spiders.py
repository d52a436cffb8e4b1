"""Spiders that wait for slow answers; benchmarks/embedded.py times them."""

from __future__ import annotations

import scrapy
from local_spider import Local


class SlowHosts(Local, scrapy.Spider):
    """Fetch a page of each of 64 hosts that answer after a second."""

    name = "slow-hosts"
    paths = ("/",)

    def parse(self, response):
        for i in range(64):
            yield scrapy.Request(self.at("/slow/1/", f"h{i}"), self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}


class SlowPages(Local, scrapy.Spider):
    """Fetch 48 pages of a host that answers after a second."""

    name = "slow-pages"
    paths = ("/",)

    def parse(self, response):
        for i in range(48):
            yield response.follow(f"/slow/1/{i}", self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}
