"""Failures of fetches by kind: Scrapy gives the reason only as a text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.misc import load_object

from tres_scrapy.crawl.failure import REDIRECT_LIMIT, Failure

IGNORED: Final = "ignored"  # the kind of a request that another middleware refused
TOO_LARGE: Final = "too_large"


class FetchRefusedError(IgnoreRequest):
    """Raised with a one-line reason when a request is refused; `kind` is its name in the stats."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def failure_of(error: BaseException | None, *, reached: bool = True) -> Failure:
    """Return the failure for an exception; `reached` is whether the host had answered."""
    if isinstance(error, HttpError):
        return Failure.of_status(error.response.status)
    if isinstance(error, IgnoreRequest):
        return Failure(getattr(error, "kind", IGNORED))
    return Failure(type(error).__name__, reached)


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Give `kind` to the IgnoreRequest that Scrapy raises inside."""
    try:
        yield
    except FetchRefusedError:
        raise
    except IgnoreRequest as error:
        raise FetchRefusedError(str(error), kind) from None


class Redirects(RedirectMiddleware):
    """Scrapy's redirects; exceeding the limit has its own kind of failure."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        with refusing(REDIRECT_LIMIT.kind):
            return super().process_response(request, response)


class MetaRefreshes(MetaRefreshMiddleware):
    """Scrapy's meta refreshes; exceeding the limit has its own kind of failure."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        with refusing(REDIRECT_LIMIT.kind):
            return super().process_response(request, response)


class BoundedCompression(HttpCompressionMiddleware):
    """Scrapy's decompression; exceeding the limit has its own kind of failure."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        with refusing(TOO_LARGE):
            return super().process_response(request, response)


def replace_middleware(settings: BaseSettings, scrapys: type, ours: type) -> None:
    """Replace a downloader middleware of Scrapy's, unless the project has configured it."""
    base = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE")
    own = settings.getdict("DOWNLOADER_MIDDLEWARES")
    names = [key for key in base if load_object(key) is scrapys]
    overridden = any(load_object(key) is scrapys for key in own)
    if names and base[names[0]] is not None and not overridden:
        settings.replace_in_component_priority_dict("DOWNLOADER_MIDDLEWARES_BASE", scrapys, ours)


def give_kinds(settings: BaseSettings) -> None:
    """Install the middlewares that give a kind to failures of Scrapy's own."""
    replace_middleware(settings, RedirectMiddleware, Redirects)
    replace_middleware(settings, MetaRefreshMiddleware, MetaRefreshes)
    replace_middleware(settings, HttpCompressionMiddleware, BoundedCompression)
