"""Failures of fetches by kind, and Scrapy's middlewares changed to give or to leave them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from gzip import BadGzipFile
from html import unescape
from typing import ClassVar, Final

from scrapy import Request, Spider
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)
from scrapy.http import HtmlResponse, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.misc import load_object
from scrapy.utils.response import get_meta_refresh
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost

from tres_scrapy.crawl.failure import REDIRECT_LIMIT, Failure, seconds_of
from tres_scrapy.downloader.engine import CrawlEndsError, is_closing
from tres_scrapy.downloader.request import LEASE, follows_links
from tres_scrapy.page.kind import only_leads_on
from tres_scrapy.url.canonical import MAX_HOST, has_long_host

IGNORED: Final = "ignored"  # the kind of a request that another middleware refused
TOO_LARGE: Final = "too_large"
START: Final = 16 * 1024  # bytes of a page in which Scrapy looks for a meta refresh
# of a refresh or a base; only international names take long
LONG_HOST: Final = re.compile(rf"//(?=[^/?#<>]*[^\x00-\x7f])[^/?#<>]{{{MAX_HOST + 1}}}")
# What Scrapy would retry: the host or the network failed. A TLS error is a DownloadFailedError.
UNREACHABLE: Final = (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    TunnelError,
    ConnectError,
    ConnectionDone,
    ConnectionLost,
    OSError,
)


class FetchRefusedError(IgnoreRequest):
    """Raised with a one-line reason when a request is refused; `kind` is its name in the stats."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def failure_of(error: BaseException | None) -> Failure:
    """Return the failure for an exception."""
    if isinstance(error, HttpError):
        asked = (error.response.headers.get("Retry-After") or b"").decode("latin-1")
        return Failure.of_status(error.response.status, seconds_of(asked, datetime.now(UTC)))
    if isinstance(error, IgnoreRequest):
        name = IGNORED if type(error) is IgnoreRequest else type(error).__name__
        return Failure(getattr(error, "kind", name))
    unreachable = isinstance(error, UNREACHABLE) and not isinstance(error, BadGzipFile)
    return Failure(type(error).__name__, passes=unreachable)


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Give `kind` to the IgnoreRequest that Scrapy raises inside; its type stays."""
    try:
        yield
    except FetchRefusedError:
        raise
    except IgnoreRequest as error:
        error.kind = kind  # type: ignore[attr-defined]
        raise


class WithKind:
    """Gives `kind` to what the middleware after it in the bases refuses."""

    kind: ClassVar[str]

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        with refusing(self.kind):
            answer: Request | Response = super().process_response(request, response)  # type: ignore[misc]
        return answer


class Redirects(WithKind, RedirectMiddleware):
    """Scrapy's redirects, whose limit has a kind; none to a host whose name is too long."""

    kind = REDIRECT_LIMIT.kind

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        location = response.headers.get("Location") or b""
        if has_long_host(location.decode("utf-8", "replace")):
            return response
        return super().process_response(request, response, spider)


class MetaRefreshes(WithKind, MetaRefreshMiddleware):
    """Scrapy's redirects by a meta element, whose limit has a kind.

    A crawl that follows all links reads the page instead if it does not only lead to another: the
    target, which becomes one of its links, may be gone, or be the page itself. Scrapy looks for the
    element in the first 4,096 characters, but decodes the whole page first.
    """

    kind = REDIRECT_LIMIT.kind

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        if not isinstance(response, HtmlResponse):
            return response
        start = HtmlResponse(
            response.url,
            headers=response.headers,
            body=response.body[:START],
            encoding=response.encoding,
        )
        if LONG_HOST.search(unescape(start.text)):
            return response
        _, target = get_meta_refresh(start, self._ignore_tags)
        is_of_crawl = LEASE in request.meta and follows_links(self.crawler.spider)
        if target and is_of_crawl and not only_leads_on(response.body, response.url, target):
            return response
        answer = super().process_response(request, start, spider)
        return response if answer is start else answer


def replace_middleware(settings: BaseSettings, scrapys: type, ours: type) -> None:
    """Put a downloader middleware in the place of Scrapy's, unless the project turned that off."""
    for name in ("DOWNLOADER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES_BASE"):
        orders = settings.getdict(name)
        for key in [key for key in orders if load_object(key) is scrapys]:
            if orders[key] is None:
                return
            settings.replace_in_component_priority_dict(name, scrapys, ours)


class OtherRetries(RetryMiddleware):
    """Scrapy's retries, but for links of the frontier, robots.txt and probes of the network.

    When one of these fails, its host rests. The requests of a project's own spider are retried as
    Scrapy does. When the crawl ends, samples that have waited for their
    robots.txt are not sent any more: they would wait for one more answer.
    """

    def process_request(self, request: Request) -> None:
        if LEASE in request.meta and is_closing(self.crawler.engine):
            raise CrawlEndsError("the crawl ends")

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        if self._is_ours(request):
            return response
        answer: Request | Response = super().process_response(request, response)
        return answer

    def process_exception(
        self, request: Request, exception: Exception, spider: Spider | None = None
    ) -> Request | Response | None:
        if self._is_ours(request):
            return None
        again: Request | Response | None = super().process_exception(request, exception)
        return again

    def _is_ours(self, request: Request) -> bool:
        if not follows_links(self.crawler.spider):
            return False
        # of NO_CALLBACK are images too, but only robots.txt and probes need no permission
        own = request.callback is NO_CALLBACK and request.meta.get("dont_obey_robotstxt", False)
        return LEASE in request.meta or own
