"""Spiders with settings, middlewares, pipelines, feeds and caches of their own."""

from __future__ import annotations

import hashlib

import scrapy
from local_spider import Local, product
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import DropItem
from scrapy.http import HtmlResponse, TextResponse
from scrapy.pipelines.files import FilesPipeline
from scrapy.pipelines.images import ImagesPipeline
from small_web import links_to


class Catalog(Local, scrapy.Spider):
    """Read the whole catalog; the base of the spiders that only set something."""

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)
        yield from response.follow_all(css="a.next")

    def parse_product(self, response):
        yield product(response)


class DepthLimit(Local, scrapy.Spider):
    """Stop at a depth."""

    name = "depth-limit"
    paths = ("/tree/",)
    custom_settings = {"DEPTH_LIMIT": 2, "DEPTH_STATS_VERBOSE": True}

    def parse(self, response):
        yield {"url": response.url, "depth": response.meta["depth"]}
        yield from response.follow_all(css="a")


class DepthPriority(DepthLimit):
    """Crawl breadth first, as the FAQ of Scrapy says."""

    name = "depth-priority"
    custom_settings = {
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }


class Priority(Local, scrapy.Spider):
    """Send requests of an API by their priority, one at a time."""

    name = "priority-posts"
    paths = ("/kind/json",)
    ordered = True
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        for priority in (1, 5, 3, 2, 4):
            url, body = self.at("/echo"), str(priority)
            yield scrapy.Request(url, self.parse_echo, method="POST", body=body, priority=priority)

    def parse_echo(self, response):
        yield {"body": response.json()["body"]}


class PriorityApi(Local, scrapy.Spider):
    """Send GETs of an API by their priority, one at a time, after a first answer."""

    name = "priority-api"
    ordered = True
    custom_settings = {"CONCURRENT_REQUESTS": 1}
    paths = ("/echo?0",)

    def parse(self, response):
        yield {"target": response.json()["target"]}
        if response.url.endswith("0"):
            for priority in (1, 5, 3, 2, 4):
                yield scrapy.Request(self.at(f"/echo?{priority}"), priority=priority)


class PriorityFirst(Local, scrapy.Spider):
    """Send GETs by their priority, one at a time, to a callback that has had no answer yet."""

    name = "priority-new-callback"
    ordered = True
    custom_settings = {"CONCURRENT_REQUESTS": 1}
    paths = ("/api/items",)

    def parse(self, response):
        for priority in (1, 5, 3, 2, 4):
            url = self.at(f"/echo?{priority}")
            yield scrapy.Request(url, self.parse_echo, priority=priority)

    def parse_echo(self, response):
        yield {"target": response.json()["target"]}


class StartOrder(Local, scrapy.Spider):
    """Send start requests in their order, one at a time."""

    name = "start-order"
    paths = tuple(f"/kind/json?{i}" for i in range(6))
    ordered = True
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        yield {"url": response.url}


class LastFirst(Local, scrapy.Spider):
    """Send the POST that came last first, as Scrapy's queues do."""

    name = "last-first"
    paths = ("/kind/json",)
    ordered = True
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        for i in range(5):
            yield scrapy.FormRequest(
                self.at("/echo"), formdata={"number": str(i)}, callback=self.parse_echo
            )

    def parse_echo(self, response):
        yield {"body": response.json()["body"]}


class ItemLimit(Local, scrapy.Spider):
    """End after some items."""

    name = "item-limit"
    paths = ("/tree/",)
    custom_settings = {"CLOSESPIDER_ITEMCOUNT": 5, "CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        yield {"one": "page"}
        yield response.follow(response.css("a::attr(href)").get("/tree/b"))


class PageLimit(ItemLimit):
    """End after some pages."""

    name = "page-limit"
    custom_settings = {"CLOSESPIDER_PAGECOUNT": 4, "CONCURRENT_REQUESTS": 1}


class ErrorLimit(Local, scrapy.Spider):
    """End after some errors of callbacks."""

    name = "error-limit"
    paths = tuple(f"/kind/json?{i}" for i in range(9))
    custom_settings = {"CLOSESPIDER_ERRORCOUNT": 3, "CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        raise ValueError("always")


class TimeLimit(Local, scrapy.Spider):
    """End after half a second."""

    name = "time-limit"
    custom_settings = {"CLOSESPIDER_TIMEOUT": 0.5, "CONCURRENT_REQUESTS": 1}

    async def start(self):
        for i in range(2):
            yield scrapy.Request(self.at(f"/slow/{1.5 * i}/"))

    def parse(self, response):
        yield {"url": response.url}


class Everything(Catalog):
    """Filter nothing: BaseDupeFilter."""

    name = "no-dupefilter"
    paths = ("/catalog/3", "/catalog/4")
    custom_settings = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}


class ByPath(RFPDupeFilter):
    """Takes URLs that differ in their query for one."""

    def request_seen(self, request):
        return super().request_seen(request.replace(url=request.url.partition("?")[0]))


class OwnDupeFilter(Local, scrapy.Spider):
    """Filter by a class of its own."""

    name = "own-dupefilter"
    paths = (links_to("/product/1-1?a=1", "/product/1-1?a=2", "/product/1-2", "/product/1-2?b"),)
    custom_settings = {"DUPEFILTER_CLASS": ByPath, "CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_product)
        for i in range(3):
            url = self.at(f"/echo?{i}")
            yield scrapy.Request(url, self.parse_echo, method="POST", body=str(i))

    def parse_product(self, response):
        yield product(response)

    def parse_echo(self, response):
        yield {"body": response.json()["body"]}


class ByMeta:
    """Makes fingerprints of the URL and a value of the meta."""

    def fingerprint(self, request):
        told = f"{request.url} {request.meta.get('part', '')}"
        return hashlib.sha1(told.encode(), usedforsecurity=False).digest()


class OwnFingerprints(Local, scrapy.Spider):
    """Ask one URL for several parts, which only the fingerprints tell apart."""

    name = "own-fingerprints"
    paths = ("/catalog/1",)
    custom_settings = {"REQUEST_FINGERPRINTER_CLASS": ByMeta}

    def parse(self, response):
        for part in ("a", "b", "b"):
            url = self.at("/product/1-1")
            yield scrapy.Request(url, self.parse_product, meta={"part": part})

    def parse_product(self, response):
        yield product(response, part=response.meta["part"])


class Dropping:
    """Drops, changes and refuses items."""

    def process_item(self, item):
        number = int(item["price"])
        if number % 3 == 0:
            raise DropItem("dull")
        if number % 3 == 1:
            raise ValueError("broken")
        item["changed"] = True
        return item


class Pipeline(Catalog):
    """Drop and change items in a pipeline."""

    name = "pipeline"
    paths = ("/catalog/1",)
    custom_settings = {"ITEM_PIPELINES": {Dropping: 300}}


class Asking:
    """Completes each item by a request of its own."""

    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_item(self, item):
        url = item["url"].replace("/product/", "/echo/")
        response = await self.crawler.engine.download_async(scrapy.Request(url))
        item["told"] = response.json()["target"]
        return item


class AskingPipeline(Catalog):
    """Ask a service in a pipeline."""

    name = "asking-pipeline"
    paths = ("/catalog/4",)
    custom_settings = {"ITEM_PIPELINES": {Asking: 300}}


class Files(Local, scrapy.Spider):
    """Fetch files by the FilesPipeline, one twice, one missing."""

    name = "files"
    paths = ("/catalog/1",)
    custom_settings = {"ITEM_PIPELINES": {FilesPipeline: 1}, "FILES_STORE": "files"}
    files = ("files/full/*",)

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)

    def parse_product(self, response):
        urls = [response.urljoin(url) for url in response.css("a::attr(href)").getall()]
        urls += [self.at("/file/all.txt"), self.at("/status/404")]
        yield {"url": response.url, "file_urls": urls}


class Images(Local, scrapy.Spider):
    """Fetch images by the ImagesPipeline."""

    name = "images"
    paths = ("/catalog/1",)
    custom_settings = {
        "ITEM_PIPELINES": {ImagesPipeline: 1},
        "IMAGES_STORE": "images",
        "IMAGES_THUMBS": {"small": (10, 10)},
    }
    files = ("images/*/*", "images/thumbs/*/*")

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)

    def parse_product(self, response):
        urls = [response.urljoin(url) for url in response.css("img::attr(src)").getall()]
        yield {"url": response.url, "image_urls": urls}


class Feeds(Catalog):
    """Write feeds of two formats."""

    name = "feeds"
    paths = ("/catalog/4",)
    custom_settings = {
        "FEEDS": {
            "items.jsonl": {"format": "jsonlines"},
            "items-%(batch_id)d.csv": {
                "format": "csv",
                "fields": ["title", "price"],
                "batch_item_count": 100,
            },
            "none.xml": {"format": "xml", "item_filter": "setting_spiders.NoItems"},
        }
    }
    files = ("*.jsonl", "*.csv", "*.xml")


class NoItems:
    """Accepts no item for a feed."""

    def __init__(self, options):
        self.options = options

    def accepts(self, item):
        return False


class Answering:
    """Answers some requests itself and replaces others."""

    def process_request(self, request):
        if request.url.endswith("-1"):
            return HtmlResponse(request.url, body=b"<title>by middleware</title>")
        if request.url.endswith("-2"):
            return request.replace(url=request.url[:-1] + "22")
        return None

    def process_response(self, request, response):
        if response.url.endswith("-3") and "again" not in request.meta:
            meta = {**request.meta, "again": True}
            return request.replace(meta=meta, dont_filter=True)
        if response.url.endswith("-4"):
            return response.replace(body=b"<title>replaced</title>")
        return response


class AnsweringMiddleware(Catalog):
    """Let a downloader middleware return responses and requests."""

    name = "answering-middleware"
    paths = ("/catalog/1",)
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Answering: 543}}


class Recovering:
    """Answers requests that fail."""

    def process_exception(self, request, exception):
        return TextResponse(request.url, body=type(exception).__name__.encode())


class RecoveringMiddleware(Local, scrapy.Spider):
    """Let a downloader middleware answer for hosts that fail."""

    name = "recovering-middleware"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Recovering: 560}}

    async def start(self):
        yield scrapy.Request(self.at("/", "nowhere"))
        yield scrapy.Request(f"http://closed.{self.name}.test:1/")

    def parse(self, response):
        yield {"url": response.url, "text": response.text}


class Mixing:
    """Changes what goes into callbacks and comes out of them."""

    def process_spider_input(self, response):
        if response.url.endswith("-1"):
            raise ValueError("not into the callback")

    async def process_spider_output(self, response, result):
        async for each in result:
            if isinstance(each, dict):
                yield {**each, "mixed": response.status}
            elif not each.url.endswith("-2"):
                yield each.replace(headers={"X-Own": "mixed"})

    def process_spider_exception(self, response, exception):
        return [{"caught": type(exception).__name__, "url": response.url}]

    async def process_start(self, start):
        yield scrapy.Request(self.spider.at("/about"))
        async for each in start:
            yield each

    def __init__(self, spider):
        self.spider = spider

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.spider)


class MixingMiddleware(Local, scrapy.Spider):
    """Use all hooks of a spider middleware."""

    name = "spider-middleware"
    paths = ("/catalog/1",)
    custom_settings = {"SPIDER_MIDDLEWARES": {Mixing: 543}}

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)
        yield {"url": response.url}

    def parse_product(self, response):
        if response.url.endswith("-3"):
            raise KeyError("in the callback")
        yield product(response)


class SyncMixing:
    """Changes the output of callbacks by a plain generator, and by a coroutine."""

    def process_spider_output(self, response, result):
        for each in result:
            yield {**each, "sync": True} if isinstance(each, dict) else each

    async def process_spider_output_async(self, response, result):
        async for each in result:
            yield {**each, "sync": False} if isinstance(each, dict) else each


class SyncMiddleware(Catalog):
    """Use a spider middleware that also works without coroutines."""

    name = "sync-spider-middleware"
    paths = ("/catalog/4",)
    custom_settings = {"SPIDER_MIDDLEWARES": {SyncMixing: 543}}


class Cache(Catalog):
    """Read the second run from the cache."""

    name = "http-cache"
    paths = ("/catalog/4", "/status/404")
    arguments = ({}, {})
    custom_settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "cache"}


class CachePolicy(Local, scrapy.Spider):
    """Ask whether a cached page has changed."""

    name = "http-cache-policy"
    paths = ("/etag/1", "/kind/json")
    arguments = ({}, {})
    custom_settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": "cache",
        "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    }

    def parse(self, response):
        yield {"url": response.url, "flags": response.flags, "status": response.status}
        if response.url.endswith("/etag/1"):
            yield scrapy.Request(self.at("/etag/2"))


class Throttle(Catalog):
    """Crawl by AutoThrottle."""

    name = "autothrottle"
    paths = ("/catalog/5",)
    custom_settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_MAX_DELAY": 0.1}


class Delay(Catalog):
    """Wait between requests."""

    name = "delay"
    paths = ("/catalog/5",)
    custom_settings = {"DOWNLOAD_DELAY": 0.05, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}


class Slots(Local, scrapy.Spider):
    """Name download slots, which have settings of their own."""

    name = "download-slots"
    custom_settings = {"DOWNLOAD_SLOTS": {"calm": {"concurrency": 1, "delay": 0.02}}}

    async def start(self):
        for i, node in enumerate(("aaa", "aab", "aba", "abb", "baa", "bab")):
            slot = {"download_slot": "calm"} if i % 2 else {}
            yield scrapy.Request(self.at(f"/tree/{node}"), meta=slot)

    def parse(self, response):
        yield {"url": response.url, "slot": response.meta["download_slot"]}
        yield from response.follow_all(css="a", meta={"download_slot": "calm"})


class Packed(Local, scrapy.Spider):
    """Read pages that are compressed."""

    name = "compressed"
    paths = ("/gzip/1", links_to("/gzip/2"))

    def parse(self, response):
        yield {"title": response.css("title::text").get(), "size": len(response.body)}
        yield from response.follow_all(css="a")


class NotUnpacked(Packed):
    """Ask for no compression."""

    name = "no-compression"
    paths = ("/catalog/5",)
    custom_settings = {"COMPRESSION_ENABLED": False}


class Encodings(Local, scrapy.Spider):
    """Read pages in several encodings."""

    name = "encodings"
    paths = tuple(
        f"/encoding/{encoding}/{where}"
        for encoding in ("utf-8", "latin-1", "cp1252", "utf-16")
        for where in ("header", "page")
        if (encoding, where) != ("utf-16", "page")
    )

    def parse(self, response):
        title = response.css("title::text").get()
        yield {"url": response.url, "title": title, "encoding": response.encoding}


class NoReferer(Local, scrapy.Spider):
    """Send no Referer."""

    name = "no-referer"
    paths = ("/tree/",)
    custom_settings = {"REFERER_ENABLED": False}

    def parse(self, response):
        yield response.follow("/echo", self.parse_echo)
        yield from response.follow_all(css="a", callback=self.parse_echo)

    def parse_echo(self, response):
        yield {"referer": "Referer" in response.request.headers}


class OneAtATime(Catalog):
    """Send one request at a time."""

    name = "one-at-a-time"
    paths = ("/catalog/3",)
    custom_settings = {"CONCURRENT_REQUESTS": 1}


class SpiderSettings(Catalog):
    """Change the settings by update_settings()."""

    name = "update-settings"
    paths = ("/catalog/5",)

    @classmethod
    def update_settings(cls, settings):
        super().update_settings(settings)
        settings.set("DEPTH_LIMIT", 1, priority="spider")
        settings.set("ITEM_PIPELINES", {Dropping: 300}, priority="spider")
