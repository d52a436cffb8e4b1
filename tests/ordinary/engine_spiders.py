"""Spiders that use the engine, signals, stats, jobs and coroutines of Scrapy."""

from __future__ import annotations

import asyncio
from io import StringIO
from unittest import TextTestResult

import scrapy
from local_spider import Local, address, product
from scrapy import signals
from scrapy.contracts import ContractsManager
from scrapy.contracts.default import (
    CallbackKeywordArgumentsContract,
    ReturnsContract,
    ScrapesContract,
    UrlContract,
)
from scrapy.exceptions import DontCloseSpider, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.request import request_from_dict
from small_web import links_to


class Coroutine(Local, scrapy.Spider):
    """Write callbacks as coroutines."""

    name = "coroutine"
    paths = ("/catalog/1",)

    async def parse(self, response):
        await asyncio.sleep(0.01)
        for link in response.css(".product a"):
            yield response.follow(link, self.parse_product)

    async def parse_product(self, response):
        await asyncio.sleep(0)
        return [product(response)]


class Inline(Local, scrapy.Spider):
    """Fetch further pages inside a callback."""

    name = "inline"
    paths = ("/catalog/1",)

    async def parse(self, response):
        for link in response.css(".product a"):
            arguments = {"text": link.css("::text").get()}
            yield response.follow(link, self.parse_product, cb_kwargs=arguments)

    async def parse_product(self, response, text):
        urls = [self.at(f"/echo?{text[-1]}"), self.at("/product/9-9"), self.at("/api/cursors")]
        fetch = self.crawler.engine.download_async
        answers = [await fetch(scrapy.Request(url, callback=NO_CALLBACK)) for url in urls]
        yield product(response, further=[(each.status, each.url) for each in answers])


class InlineFailing(Local, scrapy.Spider):
    """Fetch pages that fail inside a callback."""

    name = "inline-failing"
    paths = ("/catalog/1",)

    async def parse(self, response):
        fetch = self.crawler.engine.download_async
        answer = await fetch(scrapy.Request(self.at("/status/500")))
        yield {"status": answer.status, "retries": answer.request.meta.get("retry_times")}
        answer = await fetch(scrapy.Request(self.at("/redirect/302?to=/product/1-1")))
        yield {"status": answer.status, "url": answer.url}
        try:
            await fetch(scrapy.Request(self.at("/", "nowhere")))
        except Exception as error:
            yield {"error": type(error).__name__}


class Idle(Local, scrapy.Spider):
    """Add requests when the spider is idle."""

    name = "idle"
    paths = ("/product/1-1",)

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.left = ["/product/1-2", "/kind/json", "/api/items?page=2"]
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    def idle(self):
        if self.left:
            self.crawler.engine.crawl(scrapy.Request(self.at(self.left.pop(0))))
            raise DontCloseSpider

    def parse(self, response):
        yield {"url": response.url}


class IdleLater(Idle):
    """Stay open when idle, and add a request later."""

    name = "idle-later"

    def idle(self):
        if self.left:
            asyncio.get_running_loop().call_later(0.1, self.add)
            raise DontCloseSpider

    def add(self):
        if self.left:
            self.crawler.engine.crawl(scrapy.Request(self.at(self.left.pop(0))))


class Seeding:
    """Adds requests from an extension: at the start, and for each item."""

    def __init__(self, crawler):
        self.crawler = crawler
        self.added = False

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls(crawler)
        crawler.signals.connect(extension.scraped, signals.item_scraped)
        return extension

    def scraped(self, item):
        if self.added:
            return
        self.added = True
        site, callback = self.crawler.spider.at, self.crawler.spider.parse
        for path in ("/product/1-1", "/echo?1", "/product/1-1"):
            self.crawler.engine.crawl(scrapy.Request(site(path), callback=callback))
        self.crawler.engine.crawl(scrapy.Request(site("/echo"), method="POST", callback=callback))


class Extension(Local, scrapy.Spider):
    """Let an extension call engine.crawl()."""

    name = "extension"
    paths = ("/catalog/1",)
    custom_settings = {"EXTENSIONS": {Seeding: 500}}

    def parse(self, response):
        yield {"url": response.url, "method": response.request.method}


class Counting:
    """Counts the signals of a crawl in the stats."""

    names = (
        *("spider_opened", "engine_started", "request_scheduled", "request_dropped"),
        *("request_reached_downloader", "request_left_downloader", "response_downloaded"),
        *("response_received", "item_scraped", "item_dropped", "item_error", "spider_error"),
        "headers_received",
    )

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        extension.counts = []
        for name in cls.names:
            extension.count(crawler, name)
        return extension

    def count(self, crawler, name):
        def counted(**told):
            crawler.stats.inc_value(f"own/{name}")

        self.counts.append(counted)
        crawler.signals.connect(counted, getattr(signals, name))


class Signals(Local, scrapy.Spider):
    """Count the signals of pages, items and errors."""

    name = "signals"
    paths = (
        links_to("/product/1-1", "/product/1-2", "/product/1-1", "/status/404"),
        "/product/1-1",
        "/kind/json",
    )
    custom_settings = {"EXTENSIONS": {Counting: 500}}

    def parse(self, response):
        yield {"url": response.url}
        if "/links" in response.url:
            for target in response.css("a::attr(href)").getall():
                yield response.follow(target)
            for _ in range(2):
                yield scrapy.Request(self.at("/echo"), self.parse_echo, method="POST")

    def parse_echo(self, response):
        raise ValueError("counted")


class OwnStats(Local, scrapy.Spider):
    """Count in the stats, log errors, and see the reason at the end."""

    name = "own-stats"
    paths = ("/catalog/1",)

    def parse(self, response):
        self.crawler.stats.inc_value("own/pages")
        self.logger.error("an error of the spider")
        yield {"url": response.url}
        yield from response.follow_all(css=".product a")

    def closed(self, reason):
        self.crawler.stats.set_value("own/reason", reason)


class State(Local, scrapy.Spider):
    """Keep state in JOBDIR over two runs."""

    name = "state"
    arguments = ({}, {})
    custom_settings = {"JOBDIR": "job"}

    async def start(self):
        self.state["runs"] = self.state.get("runs", 0) + 1
        yield scrapy.Request(self.at(f"/product/{self.state['runs']}"))

    def parse(self, response):
        self.state.setdefault("seen", []).append(response.url)
        yield {"runs": self.state["runs"], "seen": list(self.state["seen"])}


class Resumed(Local, scrapy.Spider):
    """Resume a crawl of API pages from JOBDIR."""

    name = "resumed-api"
    paths = ("/kind/json",)
    arguments = ({}, {}, {})
    custom_settings = {"JOBDIR": "job", "CLOSESPIDER_ITEMCOUNT": 3, "CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        for i in range(6):
            data = {"page": str(i)}
            yield scrapy.FormRequest(self.at("/echo"), formdata=data, callback=self.parse_echo)

    def parse_echo(self, response):
        yield {"body": response.json()["body"]}


class ResumedPages(Local, scrapy.Spider):
    """Resume a crawl of pages from JOBDIR; no page is fetched twice or lost."""

    name = "resumed-pages"
    arguments = ({"limit": "3"}, {})
    custom_settings = {"JOBDIR": "job", "CONCURRENT_REQUESTS": 1}

    async def start(self):
        yield scrapy.Request(self.at("/catalog/1"))

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_product)

    def parse_product(self, response):
        self.count = getattr(self, "count", 0) + 1
        yield {"url": response.url}
        if str(self.count) == getattr(self, "limit", None):
            self.crawler.engine.close_spider(self, "enough")


class Resubmitted(Local, scrapy.Spider):
    """Start the same crawl again in its JOBDIR: what was seen stays seen."""

    name = "resubmitted"
    arguments = ({}, {})
    custom_settings = {"JOBDIR": "job"}

    async def start(self):
        yield scrapy.Request(self.at("/product/1-1"))
        yield scrapy.Request(self.at("/product/1-2"), dont_filter=True)
        yield scrapy.FormRequest(self.at("/echo"), formdata={"a": "1"}, callback=self.parse_echo)

    def parse(self, response):
        yield product(response)

    def parse_echo(self, response):
        yield {"body": response.json()["body"]}


class QueueLength(Local, scrapy.Spider):
    """Ask the scheduler what waits."""

    name = "queue-length"
    paths = ("/kind/json",)
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        scheduler = self.crawler.engine.scheduler
        yield {"length": len(scheduler), "pending": scheduler.has_pending_requests()}
        for i in range(4):
            yield scrapy.Request(self.at(f"/echo?{i}"), self.parse_echo, method="POST")

    def parse_echo(self, response):
        scheduler = self.crawler.engine.scheduler
        yield {"length": len(scheduler), "pending": scheduler.has_pending_requests()}


class QueueOfPages(QueueLength):
    """Ask the scheduler which pages wait."""

    name = "queue-of-pages"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_echo)


class Dictionary(Local, scrapy.Spider):
    """Store requests as dictionaries and use them again."""

    name = "request-dict"
    paths = ("/catalog/1",)

    def parse(self, response):
        first = response.request.to_dict(spider=self)
        yield {"keys": sorted(first), "callback": first["callback"], "errback": first["errback"]}
        for link in response.css(".product a"):
            request = response.follow(link, self.parse_product, errback=self.failed)
            yield request_from_dict(request.to_dict(spider=self), spider=self)

    def parse_product(self, response):
        told = response.request.to_dict(spider=self)
        yield product(response, callback=told["callback"], errback=told["errback"])

    def failed(self, failure):
        yield {"failed": failure.request.url}


class RequestShown(Local, scrapy.Spider):
    """Look at the request of a response."""

    name = "request-shown"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(
            css=".product a",
            callback=self.parse_product,
            errback=self.failed,
            flags=["own"],
            priority=3,
            headers={"X-Own": "1"},
        )

    def parse_product(self, response):
        request = response.request
        yield {
            "url": request.url,
            "callback": request.callback == self.parse_product,
            "errback": request.errback == self.failed,
            "flags": [*request.flags, *response.flags],
            "priority": request.priority,
            "dont_filter": request.dont_filter,
            "header": request.headers.get("X-Own").decode(),
            "kwargs": response.cb_kwargs,
            "fingerprint": self.crawler.request_fingerprinter.fingerprint(request).hex(),
        }

    def failed(self, failure):
        yield {"failed": failure.request.url}


class OwnRequest(scrapy.Request):
    """A request with an attribute of its own."""

    def __init__(self, *args, label="", **kwargs):
        super().__init__(*args, **kwargs)
        self.label = label

    attributes = (*scrapy.Request.attributes, "label")


class OwnRequests(Local, scrapy.Spider):
    """Send requests of a class of its own."""

    name = "own-request-class"
    paths = ("/catalog/1",)

    def parse(self, response):
        for target in response.css(".product a::attr(href)").getall():
            yield OwnRequest(response.urljoin(target), self.parse_product, label=target[-1])

    def parse_product(self, response):
        request = response.request
        yield product(response, label=request.label, kind=type(request).__name__)


class LocalFiles(Local, scrapy.Spider):
    """Read file: and data: URLs, as start URLs and as links."""

    name = "file-and-data"

    async def start(self):
        self.place = __file__
        yield scrapy.Request("data:text/html,<title>start</title>")
        yield scrapy.Request(f"file://{self.place}")

    def parse(self, response):
        yield {"kind": type(response).__name__, "size": len(response.body) > 0}
        if response.url.startswith("data:"):
            yield scrapy.Request(self.at("/catalog/1"), self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}
        yield scrapy.Request("data:,words", self.parse_words)
        yield scrapy.Request(f"file://{self.place}?again", self.parse_words)

    def parse_words(self, response):
        yield {"url": response.url[:5], "size": len(response.body) > 0}


class Stopping(Local, scrapy.Spider):
    """Stop downloads by StopDownload."""

    name = "stop-download"
    paths = (links_to("/large/300", "/product/1-1"),)

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.received, signals.headers_received)
        return spider

    def received(self, headers, body_length, request):
        if "/large/" in request.url:
            raise StopDownload(fail=False)

    def parse(self, response):
        yield {"url": response.url, "flags": response.flags, "body": bool(response.body)}
        yield from response.follow_all(css="a")


class Proxied(Local, scrapy.Spider):
    """Fetch by a proxy."""

    name = "proxied"

    async def start(self):
        for path in ("/catalog/5", "/kind/json"):
            url = self.at(path).rpartition(":")[0] + path
            proxy = self.at("", "proxy")
            yield scrapy.Request(url, meta={"proxy": proxy})

    def parse(self, response):
        yield {"url": response.url}
        if response.url.endswith("/catalog/5"):
            for target in response.css(".product a::attr(href)").getall():
                proxy = {"proxy": response.meta["proxy"]}
                yield scrapy.Request(response.urljoin(target), meta=proxy)


class NoOutput(Local, scrapy.Spider):
    """Yield requests only in the last of several callbacks, and items from start pages."""

    name = "returning-none"
    paths = ("/catalog/1", "/kind/none", "/kind/empty")

    def parse(self, response):
        if response.css(".product"):
            return [response.follow(link, self.parse_product) for link in response.css("a")]
        return {"url": response.url}

    def parse_product(self, response):
        return product(response)


class Contracts(Local, scrapy.Spider):
    """Check contracts as `scrapy check` does."""

    name = "contracts"

    async def start(self):
        kinds = (
            *(UrlContract, CallbackKeywordArgumentsContract),
            *(ReturnsContract, ScrapesContract),
        )
        self.results = TextTestResult(StringIO(), False, 0)
        for request in ContractsManager(kinds).from_spider(self, self.results):
            yield request

    def parse_one(self, response):
        return product(response)

    def parse_two(self, response, word):
        return [response.follow("/product/1"), response.follow("/product/2")]

    parse_one.__doc__ = f"""
    @url {address("contracts", "/product/1-1")}
    @returns items 1 1
    @returns requests 0 0
    @scrapes url title price
    """
    parse_two.__doc__ = f"""
    @url {address("contracts", "/catalog/1")}
    @cb_kwargs {{"word": "soup"}}
    @returns requests 3 3
    """

    def closed(self, reason):
        self.crawler.stats.set_value("own/run", self.results.testsRun)
        self.crawler.stats.set_value("own/failures", len(self.results.failures))
        self.crawler.stats.set_value("own/errors", len(self.results.errors))


class Paused(Local, scrapy.Spider):
    """Pause the engine in a callback and continue."""

    name = "paused"
    paths = ("/catalog/1",)

    async def parse(self, response):
        self.crawler.engine.pause()
        await asyncio.sleep(0.1)
        self.crawler.engine.unpause()
        for link in response.css(".product a"):
            yield response.follow(link, self.parse_product)

    def parse_product(self, response):
        yield product(response)
