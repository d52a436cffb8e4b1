"""The downloader middleware that has every request wait for robots.txt, not only the first two."""

from __future__ import annotations

from urllib.parse import urlsplit

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred


class RobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt also when many requests to a new host are made at once.

    Scrapy 2.19 keeps them waiting for one Deferred, which gives its result to one of them and None,
    that is no rules, to the others. By then the rules are in its private table.
    """

    async def robot_parser(self, request: Request) -> RobotParser | None:
        parser = await super().robot_parser(request)
        known = self._parsers[urlsplit(request.url).netloc]
        return parser if isinstance(known, Deferred) else known


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
