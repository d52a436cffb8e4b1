"""The downloader middleware that makes every request to a host wait for its robots.txt."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.internet.defer import Deferred

from tres_scrapy.crawl.failure import ROBOTS, Failure
from tres_scrapy.downloader.refusal import (
    failure_of,
    refusing,
    replace_middleware,
)

MAX_LENGTH: Final = 512 * 1024  # bytes of robots.txt that are read, as RFC 9309 (2.5) allows
# Bytes of all robots.txt in memory; parsed rules take up to 75 times as much as their text.
ROOM: Final = 8 * 1024 * 1024
MOST_ERRORS: Final = 100  # hosts whose last error is kept, for requests that wait for it
SMALLEST: Final = 1024  # bytes that any host's rules count as at least
_UNKNOWN: Final[Deferred[None]] = Deferred()  # stands for rules that were never requested


class RobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt even when many requests to a new host are made at once.

    In Scrapy 2.19 they wait for one Deferred, which gives the rules to one request and None, no
    rules, to the others. By then Scrapy's private table holds the rules. Only the first MAX_LENGTH
    bytes are parsed: eight megabytes would block the reactor for seven seconds. The least recently
    used rules are dropped, and fetched again when needed.

    When a robots.txt cannot be fetched, the requests that wait for it fail as it did, and the next
    request asks for it again: without it nothing is allowed (RFC 9309, 2.3.1.4).
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._errors: dict[str, Exception] = {}  # of the last request of a robots.txt, by host
        self._sizes: dict[str, int] = {}  # of known rules by host, least recently used first

    def process_request_2(self, rp: RobotParser | None, request: Request) -> None:
        with refusing(ROBOTS.kind):
            super().process_request_2(rp, request)

    async def robot_parser(self, request: Request) -> RobotParser | None:
        netloc = urlsplit(request.url).netloc
        while isinstance(parser := self._parsers.get(netloc, _UNKNOWN), Deferred):
            if netloc not in self._parsers:
                self._errors.pop(netloc, None)
            await super().robot_parser(request)
            if netloc in self._errors:
                self._parsers.pop(netloc, None)
                raise self._errors[netloc]
        self._sizes[netloc] = self._sizes.pop(netloc, SMALLEST)
        while sum(self._sizes.values()) > ROOM:
            oldest = next(iter(self._sizes))
            del self._sizes[oldest], self._parsers[oldest]
        return parser

    async def _parse_robots(self, response: Response, netloc: str, request: Request) -> None:
        if Failure.of_status(response.status).passes:
            raise HttpError(response, "robots.txt cannot be fetched")
        start = response.replace(body=response.body[:MAX_LENGTH])
        await super()._parse_robots(start, netloc, request)
        self._sizes[netloc] = max(SMALLEST, len(start.body))

    def _robots_error(self, exc: Exception, netloc: str) -> None:
        if failure_of(exc).passes:
            self._errors[netloc] = exc
            if len(self._errors) > MOST_ERRORS:
                del self._errors[next(iter(self._errors))]
        super()._robots_error(exc, netloc)


def wait_for_robots(settings: BaseSettings) -> None:
    """Replace Scrapy's middleware, unless the project has configured it."""
    replace_middleware(settings, RobotsTxtMiddleware, RobotsMiddleware)
