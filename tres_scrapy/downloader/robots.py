"""The downloader middleware that obeys robots.txt (RFC 9309)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from time import monotonic
from typing import Final, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.failure import ROBOTS
from tres_scrapy.downloader.delay import HeldError
from tres_scrapy.downloader.refusal import TOO_LARGE, failure_of, refusing
from tres_scrapy.downloader.request import FOR_SAMPLE, LEASE, RIGHTS, ROBOTS_TXT
from tres_scrapy.page.robots import MAX_LENGTH, own_rules, product_token
from tres_scrapy.rights.site import NO_RULES, SiteRules

# Bytes of all rules in memory; parsed rules take up to 75 times as much as their text.
ROOM: Final = 8 * 1024 * 1024
SMALLEST: Final = 1024  # bytes that any host's rules count as at least
LONG: Final = 16 * 1024  # bytes; longer rules are parsed in a thread
VALID: Final = 24 * 3600.0  # seconds after which rules are fetched again
AGAIN: Final = 10.0  # seconds after which rules that could not be had are asked for again, at most
LONGEST: Final = 1_000  # bytes of a validator that is kept
VALIDATORS: Final = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rules:
    """The rules of a host until a time; `error` is why they could not be had.

    `if_changed` are the headers with which the host sends them again only if they have changed.
    """

    until: float = 0.0
    parser: RobotParser | None = None
    error: Exception | None = None
    size: int = SMALLEST
    usage: SiteRules = NO_RULES
    if_changed: Mapping[str, bytes] = field(default_factory=dict)


NOT_ASKED: Final = Rules()


class RobotsMiddleware(RobotsTxtMiddleware):
    """Obeys the robots.txt of each scheme, host and port, and asks for it once a day.

    Only the groups that name this crawler are parsed, or those for everyone, and of a file without
    end only the first MAX_LENGTH bytes are read. A status of 400 to 499 means that there are no
    rules. Where rules cannot be had (429, 500 and above, no answer) nothing is fetched: each
    request fails as its robots.txt did. The least recently used rules are dropped.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"] or ""
        self._token = product_token(agent)
        # a host that has rested is asked again, instead of failing by its last error
        self._again = min(AGAIN, Config.of(settings).rest.first / 2)
        self._rules: dict[str, Rules] = {}  # by origin, least recently used first
        self._size = 0  # bytes of all rules
        self._asked: dict[str, asyncio.Future[Rules]] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        middleware = cls(crawler)
        crawler.signals.connect(middleware.bytes_received, signal=signals.bytes_received)
        return middleware

    def bytes_received(self, data: bytes, request: Request) -> None:
        """Stop reading a robots.txt that is too long."""
        if ROBOTS_TXT in request.meta:
            request.meta[ROBOTS_TXT] += len(data)
            if request.meta[ROBOTS_TXT] > MAX_LENGTH:
                raise StopDownload(fail=False)

    def process_request_2(self, rp: RobotParser | None, request: Request) -> None:
        with refusing(ROBOTS.kind):
            super().process_request_2(rp, request)

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Return the rules for a request; raise the error that keeps them from us."""
        url = urlparse_cached(request)
        origin = f"{url.scheme}://{url.netloc}"
        rules = self._rules.get(origin)
        if rules is None or rules.until <= monotonic():
            rules = await self._ask(origin, request, rules or NOT_ASKED)
        self._drop(origin)
        self._rules[origin] = rules
        self._size += rules.size
        while self._size > ROOM:
            self._drop(next(iter(self._rules)))
        if rules.error is not None:
            raise rules.error.with_traceback(None)
        request.meta[RIGHTS] = list(rules.usage.of(request.url))
        return rules.parser

    def _drop(self, origin: str) -> None:
        if (rules := self._rules.pop(origin, None)) is not None:
            self._size -= rules.size

    async def _ask(self, origin: str, request: Request, old: Rules) -> Rules:
        """Fetch rules once for all requests that wait for them."""
        if (asked := self._asked.get(origin)) is not None:
            return await asyncio.shield(asked)
        answer = self._asked[origin] = asyncio.get_running_loop().create_future()
        try:
            rules = await self._fetch(origin, request, old)
            answer.set_result(rules)
        finally:
            answer.cancel()  # does nothing if there is a result
            del self._asked[origin]
        return rules

    async def _fetch(self, origin: str, request: Request, old: Rules) -> Rules:
        wanted = Request(
            f"{origin}/robots.txt",
            headers=old.if_changed,
            priority=self.DOWNLOAD_PRIORITY,
            meta={
                "dont_obey_robotstxt": True,
                "download_fail_on_dataloss": True,
                ROBOTS_TXT: 0,
                FOR_SAMPLE: LEASE in request.meta,
            },
            callback=NO_CALLBACK,
        )
        self._stats.inc_value("robotstxt/request_count")
        try:
            response = await self.crawler.engine.download_async(wanted)
            if response.status == HTTPStatus.NOT_MODIFIED and old.if_changed:
                self._count(response)
                return replace(old, until=monotonic() + VALID, error=None)
            rules = await self._read(response, request)
            return replace(rules, if_changed=_if_changed(wanted, response))
        except HeldError as error:
            # they are asked for when it is their turn
            return replace(old, until=monotonic(), error=error)
        except IgnoreRequest as error:
            if isinstance(error, HttpError) or failure_of(error).kind == TOO_LARGE:
                return replace(old, until=monotonic() + self._again, error=error)
            return Rules(monotonic() + VALID)  # too many redirects: RFC 9309 (2.3.1.2)
        except Exception as error:
            self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            logger.info("Could not fetch %s, so nothing of it is fetched: %s", wanted.url, error)
            return replace(old, until=monotonic() + self._again, error=error)

    def _count(self, response: Response) -> None:
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")

    async def _read(self, response: Response, request: Request) -> Rules:
        self._count(response)
        if response.status == HTTPStatus.TOO_MANY_REQUESTS or response.status >= 500:
            asked = {"Retry-After": response.headers.get("Retry-After") or b""}
            bare = Response(response.url, response.status, headers=asked)  # its body may be long
            raise HttpError(bare, f"HTTP {response.status} for {response.url}")
        body = response.body if response.status == HTTPStatus.OK else b""
        if len(body) > LONG:
            parser, own = await asyncio.to_thread(self._parse, body)
        else:
            parser, own = self._parse(body)
        await self.crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        usage = SiteRules.of_robots(own.decode(), now)
        return Rules(monotonic() + VALID, parser, size=max(SMALLEST, len(own)), usage=usage)

    def _parse(self, body: bytes) -> tuple[RobotParser, bytes]:
        """Return our rules and their text."""
        own = own_rules(body, self._token)
        return build_from_crawler(self._parserimpl, self.crawler, own), own


def _if_changed(wanted: Request, response: Response) -> dict[str, bytes]:
    """Return the headers that ask for a file only if it changes; none after a redirect."""
    if response.status != HTTPStatus.OK or response.url != wanted.url:
        return {}
    given = {ask: response.headers.get(name) for name, ask in VALIDATORS.items()}
    return {ask: value for ask, value in given.items() if value and len(value) <= LONGEST}
