"""Why a request brought no response, as a type: Scrapy itself says it in the words of a message."""

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

IGNORED: Final = "ignored"  # the kind of a request that another middleware refuses
TOO_LARGE: Final = "too_large"


class FetchRefusedError(IgnoreRequest):
    """Says in one line why a request is refused; failures are counted by its `kind`."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def failure_of(error: BaseException | None, *, reached: bool = True) -> Failure:
    """Return the failure of a fetch that raised; `reached` says whether the host had answered."""
    if isinstance(error, HttpError):
        return Failure.of_status(error.response.status)
    if isinstance(error, IgnoreRequest):
        return Failure(getattr(error, "kind", IGNORED))
    return Failure(type(error).__name__, reached)


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Give a kind to what Scrapy refuses."""
    try:
        yield
    except FetchRefusedError:
        raise
    except IgnoreRequest as error:
        raise FetchRefusedError(str(error), kind) from None


class Redirects(RedirectMiddleware):
    """Scrapy's redirects, whose limit has a kind."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        with refusing(REDIRECT_LIMIT.kind):
            return super().process_response(request, response)


class MetaRefreshes(MetaRefreshMiddleware):
    """Scrapy's redirects by a meta element, whose limit has a kind."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        with refusing(REDIRECT_LIMIT.kind):
            return super().process_response(request, response)


class BoundedCompression(HttpCompressionMiddleware):
    """Scrapy's unpacking of bodies, whose limit has a kind."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        with refusing(TOO_LARGE):
            return super().process_response(request, response)


def replace_middleware(settings: BaseSettings, scrapys: type, ours: type) -> None:
    """Put a downloader middleware in the place of Scrapy's, unless the project chose another."""
    base = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE")
    own = settings.getdict("DOWNLOADER_MIDDLEWARES")
    names = [key for key in base if load_object(key) is scrapys]
    overridden = any(load_object(key) is scrapys for key in own)
    if names and base[names[0]] is not None and not overridden:
        settings.replace_in_component_priority_dict("DOWNLOADER_MIDDLEWARES_BASE", scrapys, ours)


def give_kinds(settings: BaseSettings) -> None:
    """Let failures of Scrapy's own downloader middlewares have a kind."""
    replace_middleware(settings, RedirectMiddleware, Redirects)
    replace_middleware(settings, MetaRefreshMiddleware, MetaRefreshes)
    replace_middleware(settings, HttpCompressionMiddleware, BoundedCompression)
