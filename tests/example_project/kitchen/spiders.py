from scrapy import Request, Spider
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Recipes(CrawlSpider):
    """Follows the links of its rules; `scrapy crawl recipes -a start=URL`."""

    name = "recipes"
    rules = (
        Rule(LinkExtractor(allow=r"/login"), process_links=lambda links: []),
        Rule(LinkExtractor(), callback="parse_page", cb_kwargs={"course": "main"}, follow=True),
    )

    def __init__(self, start, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.start_urls = [start]

    def parse_page(self, response, course):
        visit = response.meta.get("tres_visit")  # None without TRES
        yield {
            "url": response.url,
            "course": course,
            "link": response.meta["link_text"],
            "relevant": visit.relevant if visit else None,
        }


class Breadth(Recipes):
    """The same spider as Scrapy alone crawls it, breadth-first."""

    name = "breadth"
    custom_settings = {
        "ADDONS": {"tres_scrapy.addon.TresAddon": None},
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }


class Notes(Spider):
    """Passes on callbacks, arguments and meta; `scrapy crawl notes -a start=URL -a cook=NAME`."""

    name = "notes"
    custom_settings = {
        "DEPTH_LIMIT": 2,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_IGNORE_HTTP_CODES": [503],
        "RETRY_TIMES": 1,
    }

    def __init__(self, start, cook, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.url, self.cook = start, cook

    async def start(self):
        yield Request(self.url, meta={"note": "first"}, cb_kwargs={"course": "starter"})

    def parse(self, response, course):
        yield {"url": response.url, "course": course, "note": response.meta["note"]} | {
            "cook": self.cook,
            "depth": response.meta["depth"],
            "flags": " ".join(response.flags),
        }
        for link in response.css("a"):
            yield response.follow(
                link,
                callback=self.parse,
                errback=self.fail,
                meta={"note": link.css("::text").get()},
                cb_kwargs={"course": "main"},
            )
        if course == "starter":
            arguments = {"course": "second helping"}
            yield response.request.replace(dont_filter=True, cb_kwargs=arguments)

    def fail(self, failure):
        yield {"url": failure.request.url, "course": failure.request.cb_kwargs["course"]} | {
            "note": failure.request.meta["note"],
            "failure": repr(failure.value.response.status),
        }
