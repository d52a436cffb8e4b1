"""Spiders that use meta, requests and URLs again: where a second scheduler may lose count."""

from __future__ import annotations

import asyncio

import scrapy
from local_spider import Local
from scrapy import signals
from scrapy.exceptions import CloseSpider, IgnoreRequest
from small_web import link, links_to, page, route


@route
def serve_wall(web, asked):
    """Redirect to the same URL until a cookie comes back."""
    if "ok" in asked.cookies:
        return page("Inside", link("/product/1-1"))
    return page("Moved", "", 302, Location=asked.target, Set_Cookie="ok=1; Path=/")


@route
def serve_gate(web, asked):
    """Redirect to a page that sets a cookie and redirects back."""
    if "open" in asked.cookies:
        return page("Inside", link("/product/1-1"))
    return page("Moved", "", 302, Location="/key")


@route
def serve_key(web, asked):
    """Set the cookie of the gate and redirect back."""
    return page("Moved", "", 302, Location="/gate", Set_Cookie="open=1; Path=/")


@route
def serve_outage(web, asked):
    """Fail 25 times, then answer."""
    web.outage = getattr(web, "outage", 0) + 1
    return page("Down", "", 503) if web.outage <= 25 else page("Up " + asked.target)


class CookieWall(Local, scrapy.Spider):
    """Start at a page that redirects to itself to set a cookie."""

    name = "cookie-wall"
    paths = ("/wall",)

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")


class CookieGate(CookieWall):
    """Start at a page that redirects through another one and back."""

    name = "cookie-gate"
    paths = ("/gate",)


class ResumedPost(Local, scrapy.Spider):
    """Post a form to its own page, which an earlier run has fetched."""

    name = "resumed-post"
    arguments = ({"run": "1"}, {"run": "2"})
    custom_settings = {"JOBDIR": "job"}

    async def start(self):
        yield scrapy.Request(self.at("/search"), dont_filter=True)

    def parse(self, response):
        yield {"page": response.url}
        if self.run == "2":
            data = {"q": "x"}
            yield scrapy.FormRequest.from_response(
                response, formdata=data, callback=self.parse_found
            )

    def parse_found(self, response):
        yield {"result": response.css("h1::text").get()}


class ProxyInJob(Local, scrapy.Spider):
    """Ask for an API by a proxy, with a JOBDIR."""

    name = "proxy-in-job"
    custom_settings = {"JOBDIR": "job"}

    async def start(self):
        proxy = self.at("", "proxy").replace("http://", "http://u:p@")
        for n in range(2):
            meta = {"proxy": proxy, "n": n}
            yield scrapy.Request(self.at("/kind/json"), dont_filter=True, meta=meta)

    def parse(self, response):
        yield {"n": response.meta["n"], "proxy": bool(response.meta.get("proxy"))}


class FileInJob(Local, scrapy.Spider):
    """Start at a local file, with a JOBDIR and without private addresses."""

    name = "file-in-job"
    custom_settings = {"JOBDIR": "job", "TRES_PRIVATE_ADDRESSES": "0"}

    async def start(self):
        yield scrapy.Request(f"file://{__file__}")

    def parse(self, response):
        yield {"has text": len(response.body) > 0}


class FreshRequest:
    """Answers each page by a new request, without the meta of the old one."""

    def process_response(self, request, response):
        if "?fresh" in request.url or "/links" in request.url:
            return response
        return scrapy.Request(request.url + "?fresh", callback=request.callback)


class FreshRequests(Local, scrapy.Spider):
    """Let a downloader middleware replace each of forty requests."""

    name = "fresh-requests"
    paths = (links_to(*[f"/product/9-{i}" for i in range(40)]),)
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {FreshRequest: 543}}

    def parse(self, response):
        yield from (response.follow(each, self.parse_page) for each in response.css("a"))

    def parse_page(self, response):
        yield {"url": response.url}


class OffsiteAllowed(Local, scrapy.Spider):
    """Ask again, allowed, for a page that was refused as offsite."""

    name = "offsite-allowed"
    custom_settings = {"CONCURRENT_REQUESTS": 1}
    allowed_domains = ["a.offsite-allowed.test"]

    async def start(self):
        yield scrapy.Request(self.at("/product/1-1", "a"))

    def parse(self, response):
        yield scrapy.Request(self.at("/product/1-2", "b"), self.parse_page)
        yield scrapy.Request(self.at("/product/1-3", "a"), self.parse_again)

    def parse_again(self, response):
        yield {"url": response.url}
        allowed = {"allow_offsite": True}
        yield scrapy.Request(self.at("/product/1-2", "b"), self.parse_page, meta=allowed)

    def parse_page(self, response):
        yield {"url": response.url}


class LongOutage(Local, scrapy.Spider):
    """Meet a site that fails 25 times before it answers."""

    name = "long-outage"
    paths = (links_to(*[f"/outage/{i}" for i in range(60)]),)
    custom_settings = {"RETRY_ENABLED": False, "CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        for each in response.css("a"):
            yield response.follow(each, self.parse_page)

    def parse_page(self, response):
        yield {"up": True}


class TooManyRequests(LongOutage):
    """Meet a site that asks for a pause twelve times."""

    name = "too-many-requests"
    paths = (
        links_to(
            *[f"/status/429?n={i}" for i in range(12)],
            *[f"/product/1-{i}" for i in range(10)],
        ),
    )


class RefusedThenResumed(Local, scrapy.Spider):
    """Let a listener refuse a page in a run that ends while others wait."""

    name = "refused-then-resumed"
    arguments = ({"ends": "1"}, {})
    custom_settings = {"JOBDIR": "job", "CONCURRENT_REQUESTS": 1}

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.request_scheduled, signals.request_scheduled)
        return spider

    def request_scheduled(self, request):
        if "/product/1-2" in request.url:
            raise IgnoreRequest

    async def start(self):
        yield scrapy.Request(self.at("/catalog/1"))

    async def parse(self, response):
        for each in response.css(".product a"):
            yield response.follow(each, self.parse_page)
        if getattr(self, "ends", ""):
            raise CloseSpider("enough")

    def parse_page(self, response):
        yield {"url": response.url}


class EngineCrawl(Local, scrapy.Spider):
    """Hand requests with the meta of the answer to the engine, in a callback."""

    name = "engine-crawl"
    paths = ("/catalog/1",)

    def parse(self, response):
        for _ in range(2):
            url, meta = self.at("/product/7-7"), response.meta
            self.crawler.engine.crawl(scrapy.Request(url, self.parse_page, meta=meta))
        yield {"url": response.url}

    def parse_page(self, response):
        yield {"url": response.url}


class EngineCrawlSlow(EngineCrawl):
    """Hand such a request to the engine in a callback that then waits."""

    name = "engine-crawl-slow"

    async def parse(self, response):
        url, meta = self.at("/product/7-7"), response.meta
        self.crawler.engine.crawl(scrapy.Request(url, self.parse_page, meta=meta))
        await asyncio.sleep(1)
        yield {"url": response.url}
        yield scrapy.Request(self.at("/product/7-8"), self.parse_page)


class NestedScheduling(RefusedThenResumed):
    """Let a listener of request_scheduled schedule another request."""

    name = "nested-scheduling"
    arguments = ({},)
    custom_settings = {}

    def request_scheduled(self, request):
        if "/product/1-2" in request.url:
            self.crawler.engine.crawl(scrapy.Request(self.at("/about"), self.parse_page))


class ErrbackMirror(Local, scrapy.Spider):
    """Ask for a mirror when a host is not there, by a copy of the request."""

    name = "errback-mirror"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        url = self.at("/product/1-1", "nowhere")
        yield scrapy.Request(url, errback=self.failed, meta={"n": 1})

    def failed(self, failure):
        yield failure.request.replace(url=self.at("/product/1-1"), errback=None)

    def parse(self, response):
        yield {"url": response.url, "n": response.meta["n"]}
