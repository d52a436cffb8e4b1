"""Adds to each judged page what its site and its answer say about its use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.headers import Headers
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.request import RIGHTS
from tres_scrapy.page.robots import US
from tres_scrapy.rights.signal import (
    CONTENT_USAGE,
    HEADERS,
    NONE,
    TDM_RESERVATION,
    Signal,
    header_signals,
    reserved_uses,
)
from tres_scrapy.rights.site import NO_RULES, TDM_FILE, SiteRules
from tres_scrapy.topic.pack import Judged

MAX_HOSTS: Final = 10_000  # whose tdmrep.json is remembered
KEYS: Final = frozenset(Headers(dict.fromkeys(HEADERS, "")))  # as an answer holds them
OK, GONE = 200, range(400, 500)  # a status of GONE means that there is no file

logger = logging.getLogger(__name__)


class PageRights:
    """Collects the signals of a page and names those of the uses `use` that it reserves.

    With a `crawler`, it reads the file tdmrep.json of each host that gives a relevant page.
    """

    def __init__(
        self, name: str = US, use: Sequence[str] = (), crawler: Crawler | None = None
    ) -> None:
        self._name = name
        self._use = use
        self._crawler = crawler
        self._files: dict[str, asyncio.Task[SiteRules]] = {}  # by origin, oldest first

    @classmethod
    def from_crawler(cls, crawler: Crawler, name: str) -> Self:
        output = Config.of(crawler.settings).output
        reads = crawler if output.use or output.tdmrep else None
        return cls(name, output.use, reads)

    async def added(self, judged: Judged, response: Response) -> Judged:
        """Return a page with all its signals; those on the page itself are there already."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        site = [] if response.request is None else response.request.meta.get(RIGHTS)
        own = (*header_signals(_headers(response), self._name), *judged.page.rights)
        found = [Signal(*each) for each in site or ()]
        if self._crawler is not None and judged.relevant:
            found += (await self._tdm_file(response)).of(response.url)
        found += [each._replace(when=when) for each in own]
        reserved = reserved_uses(found) if self._use else frozenset()
        if not found:
            read = [] if site is None else ["robots.txt"]
            read += ["tdmrep.json"] if self._crawler is not None and judged.relevant else []
            found = [Signal(NONE, "", ", ".join([*read, "header", "page"]), when)]
        page = replace(judged.page, rights=tuple(found))
        uses = tuple(use for use in self._use if use in reserved)
        return judged._replace(page=page, reserved=uses)

    async def _tdm_file(self, response: Response) -> SiteRules:
        url = urlparse_cached(response)
        origin = f"{url.scheme}://{url.netloc}"
        if origin not in self._files:
            self._files[origin] = asyncio.create_task(self._fetched(origin))
            if len(self._files) > MAX_HOSTS:
                del self._files[next(iter(self._files))]
        return await asyncio.shield(self._files[origin])

    async def _fetched(self, origin: str) -> SiteRules:
        """Return the rules of a host's tdmrep.json; why they are not known, if they are not."""
        assert self._crawler is not None
        when = datetime.now(UTC).isoformat(timespec="seconds")
        request = Request(f"{origin}{TDM_FILE}", callback=NO_CALLBACK)
        try:
            answer = await self._crawler.engine.download_async(request)
            if answer.status in GONE:
                return NO_RULES
            if answer.status != OK:
                raise ValueError(f"HTTP {answer.status}")
            return SiteRules.of_tdm_file(answer.body, when)
        except Exception as error:
            logger.debug("Could not read %s: %s", request.url, error)
            why = f"unknown: {type(error).__name__}"
            return SiteRules.unknown(TDM_RESERVATION, why, "tdmrep.json", when)


def _headers(response: Response) -> list[tuple[str, str]]:
    if KEYS.isdisjoint(response.headers):
        return []
    found = []
    for name in HEADERS:
        values = [each.decode("latin-1") for each in response.headers.getlist(name)]
        if name == CONTENT_USAGE and values:
            values = [", ".join(values)]  # one dictionary (RFC 9651)
        found += [(name, value) for value in values]
    return found
