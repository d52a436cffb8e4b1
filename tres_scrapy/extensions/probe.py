"""Waits for the network when no host answers any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK

from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.host import Health
from tres_scrapy.downloader.engine import is_closing, wake
from tres_scrapy.extensions.ending import UNREACHABLE

TIMEOUT: Final = 10.0  # seconds for an answer to a probe

logger = logging.getLogger(__name__)


class Probe:
    """Asks hosts that have answered before for their robots.txt, until one answers.

    If none does for `max_outage` seconds, the crawl stops; a resumed job loses nothing.
    """

    def __init__(self, crawler: Crawler, health: Health, stop: Callable[[str], None]) -> None:
        self._crawler = crawler
        self._health = health
        self._stop = stop
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask, unless that has begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._ask())

    def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()

    async def _ask(self) -> None:
        health, began, gone = self._health, monotonic(), False
        while health.in_doubt and not is_closing(self._crawler.engine):
            answers = await asyncio.gather(*map(self._answers, health.origins()))
            if not health.in_doubt:
                break  # another request was answered meanwhile
            pause = health.note_probe(answered=any(answers), now=monotonic())
            if health.in_doubt and not gone:
                gone = True
                logger.warning(
                    "The network is gone: the last %d hosts failed, and hosts that answered before "
                    "do not answer; the crawl pauses",
                    health.silent,
                )
            if health.in_doubt and pause is None:
                logger.error(
                    "No host has answered for %.0f s: the crawl stops; check the network and the "
                    "proxy",
                    monotonic() - began,
                )
                self._stop(UNREACHABLE)
                return
            await asyncio.sleep(pause or 0)
        if gone and not health.in_doubt:
            logger.info("The network is back after %.0f s", monotonic() - began)
        wake(self._crawler.engine)

    async def _answers(self, origin: str) -> bool:
        meta = {"dont_obey_robotstxt": True, "download_timeout": TIMEOUT}
        request = Request(f"{origin}/robots.txt", callback=NO_CALLBACK, meta=meta)
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception:
            return False
        return not Failure.of_status(response.status).passes
