"""Spiders that follow the links of pages."""

from __future__ import annotations

from dataclasses import dataclass

import scrapy
from itemloaders.processors import Join, MapCompose, TakeFirst
from local_spider import Local, product
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider
from small_web import links_to


class FollowAll(Local, scrapy.Spider):
    """Follow all links that a selector finds."""

    name = "follow-all"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)
        yield from response.follow_all(css="a.next")

    def parse_product(self, response):
        yield product(response)


class FollowOne(Local, scrapy.Spider):
    """Follow a link by its selector, its text and its URL."""

    name = "follow-one"
    paths = ("/catalog/1",)

    def parse(self, response):
        for link in response.css(".product a"):
            yield response.follow(link, self.parse_product)
        if (following := response.css("a.next::attr(href)").get()) is not None:
            yield response.follow(following, callback=self.parse)

    def parse_product(self, response):
        yield product(response)


class UrlJoin(Local, scrapy.Spider):
    """Build requests from joined URLs."""

    name = "url-join"
    paths = ("/catalog/1", "/catalog/3")

    def parse(self, response):
        for target in response.css("a::attr(href)").getall():
            yield scrapy.Request(response.urljoin(target))
        yield {"title": response.css("title::text").get()}


class Links(Local, scrapy.Spider):
    """Follow what a LinkExtractor finds in a part of the page."""

    name = "link-extractor"
    paths = ("/catalog/1",)

    def parse(self, response):
        extractor = LinkExtractor(restrict_css=".product", deny=r"-4$")
        for link in extractor.extract_links(response):
            yield scrapy.Request(link.url, self.parse_product, cb_kwargs={"text": link.text})

    def parse_product(self, response, text):
        yield product(response, text=text)


class Rules(Local, CrawlSpider):
    """Follow links by the rules of a CrawlSpider."""

    name = "crawl-rules"
    paths = ("/",)
    rules = (
        Rule(LinkExtractor(allow=r"/product/"), callback="parse_product"),
        Rule(LinkExtractor(allow=r"/catalog/|/about")),
    )

    def parse_product(self, response):
        yield product(response, text=response.meta["link_text"])


class RuleHooks(Local, CrawlSpider):
    """Change links and requests by the hooks of a rule."""

    name = "crawl-rule-hooks"
    paths = ("/catalog/1",)
    rules = (
        Rule(
            LinkExtractor(restrict_css=".product"),
            callback="parse_product",
            process_links="first_two",
            process_request="marked",
            errback="failed",
            cb_kwargs={"rule": 1},
        ),
        Rule(LinkExtractor(restrict_css="a.next"), follow=True),
    )

    def first_two(self, links):
        return links[:2]

    def marked(self, request, response):
        return request.replace(headers={"X-Own": "rule"}, meta={**request.meta, "mark": 1})

    def parse_start_url(self, response):
        yield {"start": response.url}

    def parse_product(self, response, rule):
        yield product(response, rule=rule, mark=response.meta["mark"])

    def failed(self, failure):
        yield {"failed": failure.request.url}


class Sitemap(Local, SitemapSpider):
    """Read the sitemaps that robots.txt names."""

    name = "sitemap"
    sitemap_rules = (("/product/", "parse_product"),)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.sitemap_urls = [self.at("/robots.txt", "maps")]

    def parse_product(self, response):
        yield product(response)


class Xml(Local, XMLFeedSpider):
    """Read the nodes of an XML feed and follow them."""

    name = "xml-feed"
    paths = ("/feed.xml",)
    itertag = "row"

    def parse_node(self, response, node):
        number, at = node.xpath("id/text()").get(), node.xpath("at/text()").get()
        return response.follow(at, self.parse_product, cb_kwargs={"number": number})

    def parse_product(self, response, number):
        yield product(response, number=number)


class Csv(Local, CSVFeedSpider):
    """Read the rows of a CSV feed."""

    name = "csv-feed"
    paths = ("/feed.csv",)

    def parse_row(self, response, row):
        return {"id": row["id"], "at": row["at"]}


class Start(Local, scrapy.Spider):
    """Yield requests and items from start()."""

    name = "async-start"

    async def start(self):
        yield {"title": "an item from start"}
        for i in range(1, 5):
            yield scrapy.Request(self.at(f"/product/1-{i}"), meta={"number": i})

    def parse(self, response):
        yield product(response, number=response.meta["number"])


class StartTwice(Local, scrapy.Spider):
    """Start from the same URL twice: start_urls are not filtered."""

    name = "start-twice"
    paths = ("/product/1-1", "/product/1-1", "/product/1-2")

    def parse(self, response):
        yield product(response)


class StartFiltered(Local, scrapy.Spider):
    """Yield the same URL from start() twice: these requests are filtered."""

    name = "start-filtered"

    async def start(self):
        for name in ("1-1", "1-1", "1-2"):
            yield scrapy.Request(self.at(f"/product/{name}"))

    def parse(self, response):
        yield product(response)


class StartLinked(Local, scrapy.Spider):
    """Link to a start URL: Scrapy fetches it again, as start_urls are not remembered."""

    name = "start-linked"
    paths = ("/", "/about")

    def parse(self, response):
        title = response.css("title::text").get()
        yield {"title": title}
        if title == "Home":
            yield response.follow("/about")


class Arguments(Local, scrapy.Spider):
    """Take arguments of the command line."""

    name = "arguments"
    arguments = ({"page": "2", "words": "red,green"},)

    async def start(self):
        yield scrapy.Request(self.at(f"/catalog/{self.page}"))

    def parse(self, response):
        yield {"title": response.css("title::text").get(), "words": self.words.split(",")}


class CallbackArguments(Local, scrapy.Spider):
    """Hand objects to callbacks by cb_kwargs."""

    name = "cb-kwargs"
    paths = ("/catalog/1",)

    def parse(self, response):
        for i, link in enumerate(response.css(".product a")):
            arguments = {"place": i, "seen": {"from": response.url}}
            yield response.follow(link, self.parse_product, cb_kwargs=arguments)

    def parse_product(self, response, place, seen):
        yield product(response, place=place, seen=seen)


class Meta(Local, scrapy.Spider):
    """Hand values by meta, through three levels."""

    name = "meta"
    paths = ("/tree/",)

    def parse(self, response):
        path = [*response.meta.get("path", []), response.css("h1::text").get()]
        yield {"path": path, "depth": response.meta["depth"]}
        yield from response.follow_all(css="a", meta={"path": path})


class MetaCopied(Local, scrapy.Spider):
    """Hand the whole meta of a response to its links."""

    name = "meta-copied"
    paths = ("/catalog/1",)

    def parse(self, response):
        response.meta["trail"] = [*response.meta.get("trail", []), response.url]
        for link in response.css("a::attr(href)").getall():
            yield scrapy.Request(response.urljoin(link), meta=response.meta)
        yield {"url": response.url, "length": len(response.meta["trail"])}


class MetaShown(Local, scrapy.Spider):
    """Store the meta of a response in an item."""

    name = "meta-shown"
    paths = ("/catalog/1",)

    def parse(self, response):
        hidden = ("download_latency", "tres_visit", "tres_lease")
        meta = {name: value for name, value in response.meta.items() if name not in hidden}
        yield {"url": response.url, "meta": meta}
        yield from response.follow_all(css=".product a")


class Fragments(Local, scrapy.Spider):
    """Follow links that differ in their fragment."""

    name = "fragments"
    paths = (links_to("/product/1-1#a", "/product/1-1#b", "/product/1-2#c"),)

    def parse(self, response):
        for target in response.css("a::attr(href)").getall():
            yield scrapy.Request(response.urljoin(target), self.parse_product)

    def parse_product(self, response):
        yield product(response)


class Duplicates(Local, scrapy.Spider):
    """Follow the same links from many pages: each is fetched once."""

    name = "duplicates"
    paths = ("/catalog/1", "/catalog/2")
    custom_settings = {"REFERER_ENABLED": False}  # which of the pages comes first may differ

    def parse(self, response):
        for target in ("/product/1-1", "/product/1-1", "/product/1-2", "/product/1-2"):
            yield response.follow(target, self.parse_product)

    def parse_product(self, response):
        yield product(response)


class Spellings(Local, scrapy.Spider):
    """Follow URLs that are spelt in two ways."""

    name = "spellings"
    paths = (
        links_to(
            *("/product/~ada", "/product/%7Eada", "/product/Ada", "/product/ada", "/product/ada/"),
            *("/product/q?a=1&b=2", "/product/q?b=2&a=1", "/product/q?a=1&b=", "/product/q?a=1"),
            *("/product/./x", "/product/y/../x", "/product//x", "/product/é", "/product/%C3%A9"),
            *("/product/s?sid=1", "/product/s?sid=2", "/product/s;jsessionid=3", "/product/s?"),
            *("/product/p?utm_source=a", "/product/p", "/product/index.html", "/product/"),
        ),
    )

    def parse(self, response):
        for target in response.css("a::attr(href)").getall():
            yield scrapy.Request(response.urljoin(target), self.parse_product)

    def parse_product(self, response):
        yield {"url": response.url, "asked": response.request.url}


class LongUrl(Local, scrapy.Spider):
    """Follow URLs of up to 2,083 letters, and none that is longer."""

    name = "long-url"
    paths = ("/product/1-1",)

    def parse(self, response):
        for length in (500, 1500, 1990, 2030, 2200):
            yield response.follow(f"/product/long?{'x' * length}", self.parse_product)

    def parse_product(self, response):
        yield {"length": len(response.url)}


class VeryLongUrl(LongUrl):
    """Follow URLs of any length: the limit is off."""

    name = "very-long-url"
    custom_settings = {"URLLENGTH_LIMIT": 0}


class Offsite(Local, scrapy.Spider):
    """Stay in the allowed domains."""

    name = "offsite"
    paths = ("/catalog/1",)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.allowed_domains = ["shop.offsite.test"]

    def parse(self, response):
        for host in ("shop", "www.shop", "other"):
            yield scrapy.Request(self.at("/product/1-1", host), self.parse_product)
        yield scrapy.Request(
            self.at("/product/1-2", "other"), self.parse_product, meta={"allow_offsite": True}
        )

    def parse_product(self, response):
        yield product(response)


class ManyHosts(Local, scrapy.Spider):
    """Follow links to thirty hosts."""

    name = "many-hosts"
    paths = ("/",)

    def parse(self, response):
        for i in range(30):
            yield scrapy.Request(self.at("/about", f"h{i}"), self.parse_about)

    def parse_about(self, response):
        yield {"url": response.url}
        yield response.follow("/product/1-1", self.parse_product)

    def parse_product(self, response):
        yield product(response)


class Kinds(Local, scrapy.Spider):
    """Follow links to answers that are no HTML."""

    name = "kinds"
    answers = ("text", "json", "pdf", "bytes", "xml", "none", "empty")
    paths = (links_to(*map("/kind/{}".format, answers)),)

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_kind)

    def parse_kind(self, response):
        size = len(response.body)
        yield {"url": response.url, "type": type(response).__name__, "size": size}
        yield response.follow(f"/product/{size}", self.parse_product, cb_kwargs={"size": size})

    def parse_product(self, response, size):
        yield product(response, size=size)


class NoFollow(Local, scrapy.Spider):
    """Follow links of pages that ask robots not to."""

    name = "nofollow"
    paths = ("/meta/nofollow", "/meta/noindex", "/meta/none", "/meta/noarchive")

    def parse(self, response):
        yield {"url": response.url}
        for target in response.css("a::attr(href)").getall():
            where = response.url.rpartition("/")[2]
            yield response.follow(f"{target}?from={where}", self.parse_product)

    def parse_product(self, response):
        yield product(response)


class Loader(Local, scrapy.Spider):
    """Fill items by an ItemLoader."""

    name = "item-loader"
    paths = ("/catalog/1",)

    class Product(scrapy.Item):
        title = scrapy.Field(input_processor=MapCompose(str.upper), output_processor=TakeFirst())
        text = scrapy.Field(output_processor=Join("|"))

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)

    def parse_product(self, response):
        loader = ItemLoader(item=self.Product(), response=response)
        loader.add_css("title", "title::text")
        loader.add_xpath("text", "//p/text()")
        yield loader.load_item()


@dataclass
class Note:
    url: str
    price: int


class Dataclasses(Local, scrapy.Spider):
    """Yield dataclass items, and None."""

    name = "dataclass-items"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield None
        yield from response.follow_all(css=".product a", callback=self.parse_product)

    def parse_product(self, response):
        return [Note(response.url, int(response.css(".price::text").get())), None]


class Nested(Local, scrapy.Spider):
    """Collect one item over three pages."""

    name = "collected-item"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield response.follow("/product/1-1", self.parse_second, meta={"item": {"a": response.url}})

    def parse_second(self, response):
        item = response.meta["item"]
        item["b"] = response.url
        yield response.follow("/kind/json", self.parse_third, cb_kwargs={"item": item})

    def parse_third(self, response, item):
        item["c"] = response.json()["answer"]
        yield item
