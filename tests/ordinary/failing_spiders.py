"""Spiders that meet errors, retries, redirects and rules of robots.txt."""

from __future__ import annotations

import scrapy
from local_spider import Local, product
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.spidermiddlewares.httperror import HttpError
from small_web import links_to


class Fallback(Local, scrapy.Spider):
    """Ask another URL when the first one fails."""

    name = "fallback-500"
    bad = "/status/500"

    async def start(self):
        for i in range(3):
            url = f"{self.broken()}?{i}"
            yield scrapy.Request(url, errback=self.failed, cb_kwargs={"number": i})

    def broken(self):
        return self.at(self.bad)

    def failed(self, failure):
        request = failure.request
        number = request.cb_kwargs["number"]
        yield {"failed": request.url, "error": failure.type.__name__}
        yield scrapy.Request(self.at(f"/product/{number}"), cb_kwargs={"number": number})

    def parse(self, response, number):
        yield product(response, number=number)


class FallbackMissing(Fallback):
    """Ask another URL when the first one does not exist."""

    name = "fallback-404"
    bad = "/status/404"


class FallbackRefused(Fallback):
    """Ask another URL when the connection is refused."""

    name = "fallback-refused"

    def broken(self):
        return f"http://closed.{self.name}.test:1/"


class FallbackUnknown(Fallback):
    """Ask another URL when the host has no address."""

    name = "fallback-dns"

    def broken(self):
        return self.at("/", "nowhere")


class FallbackLinked(Local, scrapy.Spider):
    """Ask another URL when a link fails, by the errback of follow()."""

    name = "fallback-linked"
    paths = (links_to("/status/500", "/status/404", "/product/1-1", "/status/503"),)

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page, errback=self.failed)

    def parse_page(self, response):
        yield product(response)

    def failed(self, failure):
        code = failure.value.response.status if failure.check(HttpError) else None
        yield {"failed": failure.request.url, "status": code}
        url = self.at(f"/product/{code}")
        yield scrapy.Request(url, self.parse_page, meta={"code": code})


class FallbackSame(Local, scrapy.Spider):
    """Ask the same URL again, unfiltered, when it fails."""

    name = "fallback-same-url"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        yield scrapy.Request(self.at("/flaky/2/500"), errback=self.failed)

    def failed(self, failure):
        yield failure.request.replace(dont_filter=True)

    def parse(self, response):
        yield {"title": response.css("title::text").get()}


class ErrorItems(Local, scrapy.Spider):
    """Yield an item from the errback of each kind of error."""

    name = "error-items"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        urls = [self.at(f"/status/{code}") for code in (400, 401, 403, 404, 410, 429, 500, 503)]
        urls += [self.at("/", "nowhere"), f"http://closed.{self.name}.test:1/", self.at("/short/")]
        for url in urls:
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}

    async def failed(self, failure):
        response = getattr(failure.value, "response", None)
        status = getattr(response, "status", None)
        yield {"url": failure.request.url, "error": failure.type.__name__, "status": status}


class ErrorPages(Local, scrapy.Spider):
    """Meet pages that fail, without an errback."""

    name = "error-pages"
    paths = (
        links_to("/status/404", "/status/500", "/status/503", "/status/403", "/product/1-1"),
        *("/status/404", "/status/500"),
    )

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")


class Flaky(Local, scrapy.Spider):
    """Meet pages that fail once or twice."""

    name = "flaky"
    paths = ("/flaky/1/500", "/flaky/2/503", links_to("/flaky/1/502", "/flaky/2/429"))

    def parse(self, response):
        yield {"url": response.url, "retries": response.meta.get("retry_times")}
        yield from response.follow_all(css="a")


class TooFlaky(Flaky):
    """Meet pages that fail more often than they are retried."""

    name = "too-flaky"
    paths = ("/flaky/2/500", links_to("/flaky/2/503", "/flaky/1/502"))
    custom_settings = {"RETRY_TIMES": 1}


class RetryCodes(Flaky):
    """Retry a status that Scrapy does not retry."""

    name = "retry-codes"
    paths = ("/flaky/1/404", links_to("/flaky/2/403", "/flaky/1/500"))
    custom_settings = {"RETRY_HTTP_CODES": [403, 404]}


class NoRetries(Flaky):
    """Retry nothing."""

    name = "no-retries"
    custom_settings = {"RETRY_ENABLED": False}


class RetryMeta(Local, scrapy.Spider):
    """Limit retries by the meta of requests."""

    name = "retry-meta"

    async def start(self):
        for i, meta in enumerate(({"max_retry_times": 4}, {"dont_retry": True}, {})):
            yield scrapy.Request(self.at(f"/flaky/4/500/{i}"), meta=meta, errback=self.failed)
        yield scrapy.Request(self.at("/flaky/1/500"), method="POST", errback=self.failed)

    def parse(self, response):
        yield {"url": response.url, "retries": response.meta.get("retry_times")}

    def failed(self, failure):
        request = failure.request
        yield {"failed": request.url, "retries": request.meta.get("retry_times")}


class RetryLinked(RetryMeta):
    """Limit retries of links by their meta."""

    name = "retry-meta-linked"
    paths = ("/catalog/1",)

    async def start(self):
        yield scrapy.Request(self.at("/catalog/1"), self.parse_catalog)

    def parse_catalog(self, response):
        for i, meta in enumerate(({"max_retry_times": 4}, {"dont_retry": True}, {})):
            yield response.follow(f"/flaky/4/500/{i}", self.parse, meta=meta, errback=self.failed)


class RetryRequest(Local, scrapy.Spider):
    """Retry a page that its callback does not like."""

    name = "retry-request"
    paths = ("/job/1", "/job/2")

    def parse(self, response):
        if response.json()["ready"]:
            yield {"url": response.url, "retries": response.meta.get("retry_times")}
        else:
            yield get_retry_request(response.request, spider=self, reason="not ready")


class RetryGivenUp(Local, scrapy.Spider):
    """Give up a page that its callback never likes."""

    name = "retry-given-up"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)

    def parse_product(self, response):
        again = get_retry_request(response.request, spider=self, max_retry_times=1, reason="dull")
        yield again or {"given up": response.url}


class HandleList(Local, scrapy.Spider):
    """Take 404 and 500 as pages, retries on."""

    name = "handle-list"
    paths = ("/status/404", "/status/500", "/flaky/1/500", links_to("/status/404?1", "/status/410"))
    handle_httpstatus_list = (404, 500)

    def parse(self, response):
        yield {"url": response.url, "status": response.status}
        yield from response.follow_all(css="a")


class HandleListNoRetries(HandleList):
    """Take 404 and 500 as pages, retries off."""

    name = "handle-list-no-retries"
    custom_settings = {"RETRY_ENABLED": False}


class HandleMeta(Local, scrapy.Spider):
    """Take a status as a page by the meta of the request."""

    name = "handle-meta"
    paths = ("/catalog/1",)

    def parse(self, response):
        for i, code in enumerate((403, 404, 500, 503)):
            meta = {"handle_httpstatus_list": [404, 503]} if i % 2 else {}
            yield response.follow(f"/status/{code}", self.parse_page, meta=meta)
        yield response.follow(
            "/status/500?all", self.parse_page, meta={"handle_httpstatus_all": True}
        )

    def parse_page(self, response):
        yield {"url": response.url, "status": response.status}
        yield from response.follow_all(css="a", callback=self.parse_page)


class AllowAll(HandleList):
    """Take every status as a page."""

    name = "allow-all"
    handle_httpstatus_list = ()
    custom_settings = {"HTTPERROR_ALLOW_ALL": True}


class AllowedCodes(HandleList):
    """Take a status as a page by a setting."""

    name = "allowed-codes"
    handle_httpstatus_list = ()
    custom_settings = {"HTTPERROR_ALLOWED_CODES": [404, 410]}


class Timeouts(Local, scrapy.Spider):
    """Give up slow pages by download_timeout."""

    name = "timeout"
    custom_settings = {"RETRY_TIMES": 1}

    async def start(self):
        meta = {"download_timeout": 0.4}
        yield scrapy.Request(self.at("/slow/2/start"), meta=meta, errback=self.failed)
        yield scrapy.Request(self.at("/slow/0/start"), meta=meta, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}
        meta = {"download_timeout": 0.4}
        yield response.follow("/slow/2/link", meta=meta, errback=self.failed)

    def failed(self, failure):
        yield {"failed": failure.request.url, "error": failure.type.__name__}


class MaxSize(Local, scrapy.Spider):
    """Refuse large pages by a setting and by meta."""

    name = "max-size"
    custom_settings = {"DOWNLOAD_MAXSIZE": 50_000}
    paths = (links_to("/large/10", "/large/100"),)

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_large, errback=self.failed)
        meta = {"download_maxsize": 1000}
        yield response.follow("/large/2", self.parse_large, meta=meta, errback=self.failed)

    def parse_large(self, response):
        yield {"url": response.url, "size": len(response.body)}

    def failed(self, failure):
        yield {"failed": failure.request.url, "error": failure.type.__name__}


class Short(Local, scrapy.Spider):
    """Keep a page that is cut off."""

    name = "data-loss"
    paths = ("/short/1",)
    custom_settings = {"DOWNLOAD_FAIL_ON_DATALOSS": False}

    def parse(self, response):
        yield {"url": response.url, "flags": response.flags}
        yield from response.follow_all(css="a")


class Raising(Local, scrapy.Spider):
    """Raise in callbacks, at once and after some output."""

    name = "raising"
    paths = ("/catalog/1",)

    def parse(self, response):
        yield from response.follow_all(css=".product a", callback=self.parse_product)
        yield {"url": response.url}
        yield response.follow("/catalog/2", self.parse_plain)
        raise ValueError("after the links")

    def parse_product(self, response):
        if response.url.endswith(("1", "2")):
            yield product(response)
        raise KeyError(response.url)

    def parse_plain(self, response):
        raise TypeError("at once")


class RaisingErrback(Local, scrapy.Spider):
    """Raise in an errback."""

    name = "raising-errback"

    async def start(self):
        yield scrapy.Request(self.at("/status/404"), errback=self.failed)
        yield scrapy.Request(self.at("/product/1-1"), errback=self.failed)

    def parse(self, response):
        yield product(response)
        raise LookupError("not for the errback")

    def failed(self, failure):
        raise ValueError("in the errback")


class RaisingStart(Local, scrapy.Spider):
    """Raise in start() after two requests."""

    name = "raising-start"

    async def start(self):
        yield scrapy.Request(self.at("/product/1-1"))
        yield scrapy.Request(self.at("/product/1-2"))
        raise ValueError("in start")

    def parse(self, response):
        yield product(response)


class Closing(Local, scrapy.Spider):
    """Raise CloseSpider in a callback."""

    name = "close-spider"
    paths = ("/catalog/1",)
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        yield {"number": 1}
        yield from response.follow_all(css=".product a", callback=self.parse_product)

    def parse_product(self, response):
        yield {"number": 2}
        raise CloseSpider("seen enough")


class Robots(Local, scrapy.Spider):
    """Obey the rules of robots.txt."""

    name = "robots"
    custom_settings = {"ROBOTSTXT_OBEY": True}

    async def start(self):
        for path in ("/product/1-1", "/product/2-1", "/catalog/1"):
            yield scrapy.Request(self.at(path, "rules"), errback=self.failed)
        yield scrapy.Request(self.at("/product/2-1", "norules"), errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}
        if response.url.endswith("/catalog/1"):
            yield response.follow("/product/2-2", errback=self.failed)
            yield response.follow("/product/2-3", meta={"dont_obey_robotstxt": True})

    def failed(self, failure):
        yield {"failed": failure.request.url, "error": failure.type.__name__}


class RobotsIgnored(Local, scrapy.Spider):
    """Ignore robots.txt, which is Scrapy's default without a project."""

    name = "robots-ignored"

    async def start(self):
        yield scrapy.Request(self.at("/product/2-1", "rules"))
        yield scrapy.Request(self.at("/product/2-1", "delay"))

    def parse(self, response):
        yield product(response)


class RobotsDelay(Local, scrapy.Spider):
    """Meet a Crawl-delay of 60 s, which Scrapy ignores."""

    name = "robots-delay"
    custom_settings = {"ROBOTSTXT_OBEY": True}

    async def start(self):
        yield scrapy.Request(self.at("/catalog/1", "delay"))

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css=".product a")


class RobotsBroken(Local, scrapy.Spider):
    """Meet a robots.txt that fails."""

    name = "robots-broken"
    custom_settings = {"ROBOTSTXT_OBEY": True, "RETRY_TIMES": 1}

    async def start(self):
        yield scrapy.Request(self.at("/product/1-1", "broken"), errback=self.failed)

    def parse(self, response):
        yield product(response)

    def failed(self, failure):
        yield {"failed": failure.request.url}


def redirect(code, target):
    return f"/redirect/{code}?to={target}"


class Redirects(Local, scrapy.Spider):
    """Follow redirects of each status, by GET and by POST."""

    name = "redirects"
    codes = (301, 302, 303, 307, 308)

    async def start(self):
        for code in self.codes:
            url = self.at(redirect(code, f"/echo?{code}"))
            yield scrapy.Request(url)
            yield scrapy.Request(url, method="POST", body="words")

    def parse(self, response):
        told = response.json()
        urls = response.meta.get("redirect_urls")
        yield {"method": told["method"], "body": told["body"], "url": response.url, "urls": urls}


class RedirectedLinks(Local, scrapy.Spider):
    """Follow links that redirect, two of them to one page, one to a page that was seen."""

    name = "redirected-links"
    paths = (
        links_to(
            *("/product/1-1", redirect(302, "/product/1-2"), redirect(301, "/product/1-2")),
            redirect(301, "/product/1-1"),
        ),
    )
    custom_settings = {"REFERER_ENABLED": False}  # which redirect comes first may differ

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_product)

    def parse_product(self, response):
        yield product(response)


class RedirectedHosts(Local, scrapy.Spider):
    """Follow redirects to other hosts, one of them not allowed."""

    name = "redirected-hosts"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.allowed_domains = ["a.redirected-hosts.test", "b.redirected-hosts.test"]

    async def start(self):
        for host in ("b", "c"):
            target = self.at("/product/1-1", host)
            yield scrapy.Request(self.at(redirect(302, target), "a"), errback=self.failed)

    def parse(self, response):
        yield product(response)

    def failed(self, failure):
        yield {"failed": failure.request.url}


class RedirectsKept(Local, scrapy.Spider):
    """Take redirects as pages."""

    name = "redirects-kept"
    paths = (redirect(302, "/product/1-1"),)
    custom_settings = {"REDIRECT_ENABLED": False}
    handle_httpstatus_list = (301, 302)

    def parse(self, response):
        yield {"status": response.status, "url": response.url}
        if (target := response.headers.get("Location")) is not None:
            yield response.follow(target.decode())


class RedirectsOff(Local, scrapy.Spider):
    """Take no redirects and no pages of status 302."""

    name = "redirects-off"
    paths = (redirect(302, "/product/1-1"), "/product/1-2")
    custom_settings = {"REDIRECT_ENABLED": False}

    def parse(self, response):
        yield product(response)


class DontRedirect(Local, scrapy.Spider):
    """Take a redirect as a page by meta."""

    name = "dont-redirect"

    async def start(self):
        meta = {"dont_redirect": True, "handle_httpstatus_list": [302]}
        yield scrapy.Request(self.at(redirect(302, "/product/1-1")), meta=meta)

    def parse(self, response):
        yield {"status": response.status, "url": response.url}


class RedirectLoop(Local, scrapy.Spider):
    """Give up redirects that do not end."""

    name = "redirect-loop"
    custom_settings = {"REDIRECT_MAX_TIMES": 4}

    async def start(self):
        yield scrapy.Request(self.at("/loop/1"), errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}

    def failed(self, failure):
        yield {"failed": failure.request.url, "error": failure.type.__name__}


class MetaRefresh(Local, scrapy.Spider):
    """Follow meta refreshes."""

    name = "meta-refresh"
    paths = ("/refresh/?to=/product/1-1", links_to("/refresh/?to=/product/1-2"))

    def parse(self, response):
        yield {"url": response.url, "urls": response.meta.get("redirect_urls")}
        yield from response.follow_all(xpath="//a[contains(@href, 'refresh')]")


class NoMetaRefresh(MetaRefresh):
    """Leave meta refreshes."""

    name = "no-meta-refresh"
    custom_settings = {"METAREFRESH_ENABLED": False}


class Refusing:
    """Ignores some requests and answers others."""

    def process_request(self, request):
        if request.url.endswith("-1"):
            raise IgnoreRequest("not this one")

    def process_response(self, request, response):
        if response.url.endswith("-2"):
            raise IgnoreRequest("not this answer")
        return response


class Ignoring(Local, scrapy.Spider):
    """Let a downloader middleware ignore requests, with and without an errback."""

    name = "ignoring"
    paths = ("/catalog/1", "/catalog/2")
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Refusing: 543}}

    def parse(self, response):
        errback = self.failed if response.url.endswith("1") else None
        yield from response.follow_all(
            css=".product a", callback=self.parse_product, errback=errback
        )

    def parse_product(self, response):
        yield product(response)

    def failed(self, failure):
        yield {"failed": failure.request.url, "error": failure.type.__name__}


class HttpUser(Local, scrapy.Spider):
    """Log in by HTTP authentication: by the spider's name and by the URL."""

    name = "http-user"
    http_user, http_pass = "ada", "love"
    http_auth_domain = "secret.http-user.test"

    async def start(self):
        yield scrapy.Request(self.at("/secret", "secret"))
        yield scrapy.Request(self.at("/secret", "other"), errback=self.failed)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a")

    def failed(self, failure):
        yield {"failed": failure.request.url}


class UrlUser(Local, scrapy.Spider):
    """Show the URL of a request with a name and password in it."""

    name = "url-user"

    async def start(self):
        plain = self.at("/secret")
        url = plain.replace("http://", "http://ada:love@")
        yield scrapy.Request(url, errback=self.failed, cb_kwargs={"told": "start"})
        headers = {"Authorization": "Basic YWRhOmxvdmU="}
        yield scrapy.Request(f"{plain}?2", headers=headers, cb_kwargs={"told": "headers"})

    def parse(self, response, told):
        yield {"told": told, "url": response.url, "asked": response.request.url}
        for link in response.css("a"):
            yield response.follow(link, errback=self.failed, cb_kwargs={"told": "link"})
        if told == "start":
            url = self.at("/echo?3").replace("http://", "http://ada:love@")
            yield scrapy.Request(url, self.parse_echo, cb_kwargs={"told": "link"})

    def parse_echo(self, response, told):
        yield {"told": told, "url": response.url, "asked": response.request.url}

    def failed(self, failure):
        yield {"failed": failure.request.url, "error": failure.type.__name__}
