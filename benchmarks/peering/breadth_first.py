"""A spider of plain Scrapy that follows every link, breadth-first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response


class BreadthFirst(Spider):
    """Follow every link of every page; the settings are those that Scrapy's documentation names."""

    name = "breadth_first"
    custom_settings = {  # noqa: RUF012 - declared so by Scrapy
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "CONCURRENT_REQUESTS": 16,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": True,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._seed = seed

    async def start(self) -> AsyncIterator[Any]:
        """Begin at the seed."""
        yield Request(self._seed)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        """Follow every link."""
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a[href]")
