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
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

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
    base = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE")
    own = settings.getdict("DOWNLOADER_MIDDLEWARES")
    names = [key for key in base if load_object(key) is RobotsTxtMiddleware]
    overridden = any(load_object(key) is RobotsTxtMiddleware for key in own)
    if names and base[names[0]] is not None and not overridden:
        settings.replace_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES_BASE", RobotsTxtMiddleware, RobotsMiddleware
        )
