"""While nothing can be sent: wakes the engine in time, says what it waits for, tries the net."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic, time
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import CallLaterResult, call_later

from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.host import Health
from tres_scrapy.crawl.slot import HostSlots
from tres_scrapy.downloader.engine import is_closing, wake
from tres_scrapy.extensions.ending import UNREACHABLE
from tres_scrapy.extensions.session import CrawlSession

TIMEOUT: Final = 10.0  # seconds for an answer to a probe

logger = logging.getLogger(__name__)


class Waking:
    """Wakes the engine when the rest of the first host ends, or the first site opens.

    Otherwise it would sleep until its next heartbeat, every five seconds. The end of a transfer
    wakes the engine anyway.
    """

    def __init__(self, crawler: Crawler, session: CrawlSession, slots: HostSlots) -> None:
        self._crawler = crawler
        self._session = session
        self._slots = slots
        self._call: CallLaterResult | None = None
        self._announced: float | None = None  # the time that the log has named

    def plan(self, now: float) -> None:
        """Plan to wake the engine; `now` is the time of the clock of hosts."""
        self.cancel()
        today = time()
        opens = self._session.sites.next_time(today)
        rested = self._session.health.until(now)
        self._say(now, rested, opens, today)
        times = [self._slots.next_time(), rested, None if opens is None else now + opens - today]
        if known := [each for each in times if each is not None]:
            self._call = call_later(max(0.0, min(known) - now), self._wake)

    def cancel(self) -> None:
        """Do not wake the engine."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _say(self, now: float, rested: float | None, opens: float | None, today: float) -> None:
        crawl, session = self._session.crawl, self._session
        pending = crawl.store.pending
        done = not pending or crawl.finished or crawl.leased
        idle = not done and self._slots.next_time() is None
        waits = idle and not session.health.exhausted(crawl.leased, now)  # else the crawl ends
        is_closed = opens is not None and (rested is None or now + opens - today < rested)
        session.sites.opens_at = opens if waits and is_closed else None
        until = opens if is_closed else rested
        if not waits or until is None or until == self._announced:
            return
        self._announced = until
        if is_closed:
            logger.info(
                "Links that wait: %d, all on sites that are closed (crawl_between, max_per_day): "
                "the crawl goes on at %s, in %s",
                pending,
                clock(until),
                in_hours(until - today),
            )
        else:
            logger.info(
                "All %d waiting links are on hosts that rest; the next is asked in %.0f s",
                pending,
                until - now,
            )

    def _wake(self) -> None:
        self._call = None
        wake(self._crawler.engine)


def clock(time: float) -> str:
    """Return a time in seconds since 1970 as 22:00 UTC."""
    return f"{datetime.fromtimestamp(time, UTC):%H:%M} UTC"


def in_hours(seconds: float) -> str:
    """Return a time as 7 h 5 min, in whole minutes that have begun."""
    hours, minutes = divmod(-int(-seconds // 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


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
