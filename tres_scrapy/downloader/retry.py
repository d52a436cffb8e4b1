"""The downloader middleware that leaves retries of the frontier's requests to the frontier."""

from __future__ import annotations

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings

from tres_scrapy.downloader.refusal import SHUTDOWN, FetchRefusedError, replace_middleware
from tres_scrapy.downloader.request import LEASE, follows_links
from tres_scrapy.downloader.wake import is_closing


class OtherRetries(RetryMiddleware):
    """Scrapy's retries, but for links of the frontier, robots.txt and probes of the network.

    When one of these fails, its host rests. The requests of a project's own spider are retried as
    Scrapy does. When the crawl ends, samples that have waited for their
    robots.txt are not sent any more: they would wait for one more answer.
    """

    def process_request(self, request: Request) -> None:
        if LEASE in request.meta and is_closing(self.crawler.engine):
            raise FetchRefusedError("the crawl ends", SHUTDOWN)

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


def leave_retries(settings: BaseSettings) -> None:
    """Replace Scrapy's middleware, unless the project has turned it off."""
    replace_middleware(settings, RetryMiddleware, OtherRetries)
