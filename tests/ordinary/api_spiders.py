"""Spiders that read APIs, send forms and bodies, and log in."""

from __future__ import annotations

import json

import scrapy
from local_spider import Local, product
from scrapy.http import FormRequest, HtmlResponse, JsonRequest


class ApiPages(Local, scrapy.Spider):
    """Read 18 pages of JSON, each after the one before."""

    name = "api-pages"
    paths = ("/api/items?page=1",)

    def parse(self, response):
        told = response.json()
        yield from told["items"]
        if told["next"] is not None:
            yield response.follow(f"/api/items?page={told['next']}")


class ApiFan(Local, scrapy.Spider):
    """Read the first page of JSON, then all others at once."""

    name = "api-fan"
    paths = ("/api/items?page=1",)

    def parse(self, response):
        total = response.json()["total"]
        for page in range(2, total // 10 + 1):
            yield scrapy.Request(self.at(f"/api/items?page={page}"), self.parse_page)
        yield from response.json()["items"]

    def parse_page(self, response):
        yield from response.json()["items"]


class ApiStart(Local, scrapy.Spider):
    """Ask for all pages of JSON from start()."""

    name = "api-start"

    async def start(self):
        for page in range(1, 19):
            yield scrapy.Request(self.at(f"/api/items?page={page}"))

    def parse(self, response):
        yield from response.json()["items"]


class ApiCursor(Local, scrapy.Spider):
    """Read 25 pages by a cursor in the URL."""

    name = "api-cursor"
    paths = ("/api/cursors",)

    def parse(self, response):
        told = response.json()
        yield from told["items"]
        if told["next"] is not None:
            yield scrapy.Request(self.at(f"/api/cursors?cursor={told['next']}"))


class ApiCursorPost(Local, scrapy.Spider):
    """Read 25 pages by a cursor in the body of a POST."""

    name = "api-cursor-post"

    async def start(self):
        yield self.asked(0)

    def asked(self, cursor):
        return JsonRequest(self.at("/api/cursors"), data={"cursor": cursor})

    def parse(self, response):
        told = response.json()
        yield from told["items"]
        if told["next"] is not None:
            yield self.asked(told["next"])


class ApiCursorGet(ApiCursorPost):
    """Read 25 pages by a cursor in the body of a GET."""

    name = "api-cursor-get-body"

    def asked(self, cursor):
        return JsonRequest(self.at("/api/cursors"), data={"cursor": cursor}, method="GET")


class ApiGetBodies(Local, scrapy.Spider):
    """Ask one URL by GET with 18 bodies at once, two of them twice."""

    name = "api-get-bodies"
    paths = ("/kind/json",)

    def parse(self, response):
        for page in (*range(1, 19), 1, 2):
            data = {"page": page}
            url = self.at("/api/items")
            yield JsonRequest(url, data=data, method="GET", callback=self.parse_page)

    def parse_page(self, response):
        yield from response.json()["items"]


class ApiPosts(Local, scrapy.Spider):
    """Ask one URL by POST with 18 bodies at once, as a GraphQL client does."""

    name = "api-posts"

    async def start(self):
        for page in range(1, 19):
            yield JsonRequest(self.at("/api/items"), data={"page": page})

    def parse(self, response):
        yield from response.json()["items"]


class ApiDetails(Local, scrapy.Spider):
    """Read a list of JSON, then a JSON for each row, then its HTML page."""

    name = "api-details"
    paths = ("/api/items?page=1",)

    def parse(self, response):
        for row in response.json()["items"]:
            arguments = {"number": row["id"]}
            url = f"/echo?id={row['id']}"
            yield response.follow(url, self.parse_row, cb_kwargs=arguments)

    def parse_row(self, response, number):
        target = response.json()["target"]
        yield response.follow(f"/product/{number}", self.parse_product, meta={"target": target})

    def parse_product(self, response):
        yield product(response, target=response.meta["target"])


class ApiFromHtml(Local, scrapy.Spider):
    """Ask the API from each HTML page, by GET and by POST."""

    name = "api-from-html"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css="a.next")
        page = response.url[-1]
        yield scrapy.Request(self.at(f"/api/items?page={page}"), self.parse_api)
        yield JsonRequest(self.at("/api/cursors"), data={"cursor": page}, callback=self.parse_api)

    def parse_api(self, response):
        yield from response.json()["items"]


class Form(Local, scrapy.Spider):
    """Send a form by POST and by GET."""

    name = "form"

    async def start(self):
        url, data = self.at("/echo"), {"q": "soup & bread", "page": "2"}
        yield FormRequest(url, formdata=data)
        yield FormRequest(url, formdata=data, method="GET")
        yield FormRequest(url, formdata=[("a", "1"), ("a", "2")])

    def parse(self, response):
        yield response.json()


class FormOfPage(Local, scrapy.Spider):
    """Fill in the form of a page."""

    name = "form-of-page"
    paths = ("/search",)

    def parse(self, response):
        data = {"q": "soup"}
        yield FormRequest.from_response(response, formdata=data, callback=self.parse_results)

    def parse_results(self, response):
        yield {"title": response.css("title::text").get(), "url": response.url}
        yield from response.follow_all(css="a", callback=self.parse_product)

    def parse_product(self, response):
        yield product(response)


class FormCycle(Local, scrapy.Spider):
    """Send the form of each page; the fourth page asks for the first again."""

    name = "form-cycle"
    paths = ("/search?q=soup",)

    def parse(self, response):
        yield {"title": response.css("title::text").get()}
        yield FormRequest.from_response(response)


class FormRepeated(Local, scrapy.Spider):
    """Send the same form from five pages: it is sent once."""

    name = "form-repeated"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css="a.next")
        yield FormRequest(self.at("/echo"), formdata={"q": "soup"}, callback=self.parse_echo)

    def parse_echo(self, response):
        yield {"body": response.json()["body"]}


class Login(Local, scrapy.Spider):
    """Log in, then read pages that need the cookie."""

    name = "login"
    paths = ("/login",)

    def parse(self, response):
        data = {"user": "ada", "password": "love"}
        yield FormRequest.from_response(response, formdata=data, callback=self.parse_account)

    def parse_account(self, response):
        yield {"title": response.css("title::text").get(), "url": response.url}
        yield from response.follow_all(css="a", callback=self.parse_account)


class CookieJars(Local, scrapy.Spider):
    """Keep three sessions apart, which read the same URLs."""

    name = "cookie-jars"
    custom_settings = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}

    async def start(self):
        for i in range(3):
            yield scrapy.Request(self.at(f"/cookie/user/u{i}"), meta={"cookiejar": i})

    def parse(self, response):
        jar = {"cookiejar": response.meta["cookiejar"]}
        yield response.follow("/cookie/show", self.parse_cookies, meta=jar)

    def parse_cookies(self, response):
        yield {"jar": response.meta["cookiejar"], "told": response.css("#cookies::text").get()}


class CookieJarsUnfiltered(CookieJars):
    """Keep three sessions apart by dont_filter."""

    name = "cookie-jars-unfiltered"
    custom_settings = {}

    def parse(self, response):
        jar = {"cookiejar": response.meta["cookiejar"]}
        url = self.at("/cookie/show")
        yield scrapy.Request(url, self.parse_cookies, meta=jar, dont_filter=True)


class Cookies(Local, scrapy.Spider):
    """Send cookies of a request, and those that a page has set."""

    name = "cookies"
    paths = ("/cookie/a/1",)

    def parse(self, response):
        url = self.at("/cookie/show?1")
        yield scrapy.Request(url, self.parse_cookies, cookies={"b": "2"})
        merge = {"dont_merge_cookies": True}
        url = self.at("/cookie/show?2")
        yield scrapy.Request(url, self.parse_cookies, cookies={"c": "3"}, meta=merge)

    def parse_cookies(self, response):
        yield {"url": response.url, "told": response.css("#cookies::text").get()}


class NoCookies(Local, scrapy.Spider):
    """Keep no cookies."""

    name = "no-cookies"
    paths = ("/cookie/a/1",)
    custom_settings = {"COOKIES_ENABLED": False}

    def parse(self, response):
        yield {"told": response.css("#cookies::text").get()}
        yield from response.follow_all(css="a")


class Methods(Local, scrapy.Spider):
    """Send HEAD, PUT, DELETE, PATCH and OPTIONS."""

    name = "methods"

    async def start(self):
        for method in ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
            body = "" if method == "HEAD" else "words"
            yield scrapy.Request(self.at("/echo"), method=method, body=body)

    def parse(self, response):
        yield {"method": response.request.method, "body": response.text}


class HeadThenGet(Local, scrapy.Spider):
    """Ask for the head of each link, then for the page."""

    name = "head-then-get"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_head, method="HEAD")

    def parse_head(self, response):
        yield scrapy.Request(response.url, self.parse_product)

    def parse_product(self, response):
        yield product(response)


class Headers(Local, scrapy.Spider):
    """Send headers of a request, of the settings and of the spider."""

    name = "headers"
    custom_settings = {
        "USER_AGENT": "own agent",
        "DEFAULT_REQUEST_HEADERS": {"Accept": "application/json", "X-Own": "default"},
    }

    async def start(self):
        yield scrapy.Request(self.at("/echo?1"))
        yield scrapy.Request(self.at("/echo?2"), headers={"X-Own": "request", "User-Agent": "it"})

    def parse(self, response):
        yield response.json()
        if response.url.endswith("1"):
            yield response.follow("/echo?3", headers={"Accept": "text/html"})


def render_of(request):
    """Return the address that renders the pages of a request's site."""
    return "/".join(request.url.split("/")[:3]) + "/render"


class RenderMiddleware:
    """Sends each page as a POST to one address, which renders it."""

    def process_request(self, request):
        if request.meta.get("rendered"):
            return None
        body = json.dumps({"url": request.url})
        meta = {**request.meta, "rendered": request.url}
        return request.replace(url=render_of(request), method="POST", body=body, meta=meta)

    def process_response(self, request, response):
        if (url := request.meta.get("rendered")) is None:
            return response
        return HtmlResponse(url, body=response.body, encoding="utf-8", request=request)


class Rendered(Local, scrapy.Spider):
    """Let a middleware render each page by a POST."""

    name = "rendered"
    paths = ("/catalog/1",)
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RenderMiddleware: 725}}

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a")


class RenderOutput:
    """Turns each request of a callback into a POST to one address."""

    async def process_spider_output(self, response, result):
        async for each in result:
            yield self.rendered(each) if isinstance(each, scrapy.Request) else each

    def rendered(self, request):
        body = json.dumps({"url": request.url})
        return request.replace(url=render_of(request), method="POST", body=body)


class RenderedOutput(Local, scrapy.Spider):
    """Let a spider middleware turn each request into a POST."""

    name = "rendered-output"
    paths = ("/catalog/1",)
    custom_settings = {"SPIDER_MIDDLEWARES": {RenderOutput: 543}}

    def parse(self, response):
        yield {"title": response.css("title::text").get()}
        for target in response.css("a::attr(href)").getall():
            yield scrapy.Request(self.at(target))


class DontFilterWaiting(Local, scrapy.Spider):
    """Ask again, unfiltered, for a URL that still waits."""

    name = "dont-filter-waiting"
    paths = ("/catalog/1",)
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        for i in range(3):
            yield response.follow("/product/1-1", self.parse_product, cb_kwargs={"time": 0})
            url, again = self.at("/product/1-1"), {"time": i}
            yield scrapy.Request(url, self.parse_product, cb_kwargs=again, dont_filter=True)

    def parse_product(self, response, time):
        yield product(response, time=time)


class DontFilterFetched(Local, scrapy.Spider):
    """Ask again, unfiltered, for a URL that was fetched."""

    name = "dont-filter-fetched"
    paths = ("/product/1-1",)

    def parse(self, response):
        time = response.meta.get("time", 0)
        yield product(response, time=time)
        if time < 3:
            meta = {"time": time + 1}
            yield scrapy.Request(response.url, meta=meta, dont_filter=True)


class Polling(Local, scrapy.Spider):
    """Ask for a job until it is ready."""

    name = "polling"

    async def start(self):
        yield scrapy.Request(self.at("/job/1"))
        yield scrapy.Request(self.at("/job/2"), method="POST")

    def parse(self, response):
        if response.json()["ready"]:
            yield response.json()
        else:
            yield response.request.replace(dont_filter=True)


class SeenAgain(Local, scrapy.Spider):
    """Ask again, filtered, for a URL that was fetched unfiltered."""

    name = "seen-again"
    paths = ("/product/1-1",)

    def parse(self, response):
        yield product(response, depth=response.meta["depth"])
        yield scrapy.Request(response.url)
