"""A crawl whose names lead to addresses of this machine: `python -m hostility.crawl FILE ...`.

The address stands in the name: `-at7` is 127.1.0.7; other names have an address for each domain. A
name with `-hang` is looked up for a minute, without success. HOSTILE_STATE is `paused`, to pause
the crawl after some seconds, or `ending`, to let its end take some. FILE receives the longest stall
of the reactor, in seconds, and the stats; the rest are arguments of `scrapy crawl tres`.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from scrapy import signals
from scrapy.cmdline import execute
from scrapy.crawler import Crawler

from tres_scrapy import settings
from tres_scrapy.downloader import private_address

TICK: Final = 0.05  # seconds between two looks at the reactor
HANGS: Final = 60.0  # seconds
MOMENT: Final = 10.0  # seconds until a crawl pauses, or that its end takes
PLACE = re.compile(r"-at(\d+)")
resolve = socket.gethostbyname


def address_of(name: str) -> str:
    """Return the address of a name; wait and raise OSError if the name hangs."""
    if not name.endswith(".com"):
        return resolve(name)
    if "-hang" in name:
        time.sleep(HANGS)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")
    if found := PLACE.search(name):
        place = int(found[1])
        return f"127.1.{place >> 8}.{place & 255}"
    number = crc32(".".join(name.split(".")[-2:]).encode())
    return f"127.2.{number >> 8 & 255}.{number & 255}"


class Watch:
    """Measures how long the reactor stands still, and writes it at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._longest = 0.0
        self._task: asyncio.Task[None] | None = None
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(self.engine_stopped, signal=signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Watch:
        """Watch a crawler."""
        return cls(crawler)

    def spider_opened(self) -> None:
        """Begin to measure."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._look())
        if self._crawler.settings["HOSTILE_STATE"] == "paused":
            loop.call_later(MOMENT, self._crawler.engine.pause)

    async def spider_closed(self) -> None:
        """Let the end take a while, if that is wished."""
        if self._crawler.settings["HOSTILE_STATE"] == "ending":
            await asyncio.sleep(MOMENT)

    async def _look(self) -> None:
        while True:
            last = time.monotonic()
            await asyncio.sleep(TICK)
            self._longest = max(self._longest, time.monotonic() - last - TICK)

    def engine_stopped(self) -> None:
        """Write what was measured."""
        stats: dict[str, Any] = self._crawler.stats.get_stats()
        found = {"stall": self._longest, "stats": stats}
        RESULT.write_text(json.dumps(found, default=str), encoding="utf-8")


if __name__ == "__main__":
    RESULT = Path(sys.argv[1])
    settings.EXTENSIONS |= {Watch: 1}  # type: ignore[dict-item]
    socket.gethostbyname = address_of
    setattr(private_address, "is_public", lambda address: True)  # noqa: B010 - of this machine
    execute(["scrapy", "crawl", "tres", *sys.argv[2:]])
