"""The downloader middleware that has every request wait for robots.txt, not only the first two."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from twisted.internet.defer import Deferred

from tres_scrapy.crawl.failure import ROBOTS
from tres_scrapy.downloader.refusal import refusing, replace_middleware

MAX_LENGTH: Final = 512 * 1024  # bytes of robots.txt that are read, as RFC 9309 (2.5) allows
# Of all that are remembered, in bytes: rules take up to 75 times as much memory as their text.
ROOM: Final = 8 * 1024 * 1024
SMALLEST: Final = 1024  # what the rules of a host count as at least
_UNKNOWN: Final[Deferred[None]] = Deferred()  # in the place of rules nobody has asked for


class RobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt also when many requests to a new host are made at once.

    Scrapy 2.19 keeps them waiting for one Deferred, which gives its result to one of them and None,
    that is no rules, to the others. By then the rules are in its private table. Eight megabytes of
    rules would hold the reactor for seven seconds: only the start of them is read. Rules that were
    not needed for longest are forgotten, and asked for again when they are.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._sizes: dict[str, int] = {}  # of known rules by host, those needed last at the end

    def process_request_2(self, rp: RobotParser | None, request: Request) -> None:
        with refusing(ROBOTS.kind):
            super().process_request_2(rp, request)

    async def robot_parser(self, request: Request) -> RobotParser | None:
        netloc = urlsplit(request.url).netloc
        while isinstance(parser := self._parsers.get(netloc, _UNKNOWN), Deferred):
            await super().robot_parser(request)
        self._sizes[netloc] = self._sizes.pop(netloc, SMALLEST)
        while sum(self._sizes.values()) > ROOM:
            oldest = next(iter(self._sizes))
            del self._sizes[oldest], self._parsers[oldest]
        return parser

    async def _parse_robots(self, response: Response, netloc: str, request: Request) -> None:
        start = response.replace(body=response.body[:MAX_LENGTH])
        await super()._parse_robots(start, netloc, request)
        self._sizes[netloc] = max(SMALLEST, len(start.body))


def wait_for_robots(settings: BaseSettings) -> None:
    """Put the middleware in the place of Scrapy's, unless the project has made another choice."""
    replace_middleware(settings, RobotsTxtMiddleware, RobotsMiddleware)
