"""The extension that logs the progress of the crawl."""

from __future__ import annotations

import logging
import sys
from typing import Final, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed_setting
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.crawl.patience import WAITED
from tres_scrapy.downloader.contact import lacks_contact
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.terminal import TerminalLine
from tres_scrapy.extensions.waking import clock
from tres_scrapy.live.state import BOUND, ECHOES, CrawlState, Monitor, in_leaves, warnings_of
from tres_scrapy.url.message import plural

_REDRAW: Final = 1.0  # seconds

logger = logging.getLogger(__name__)


def state_of(session: CrawlSession, **more: float) -> CrawlState:
    """Return the state of a crawl in this process, with more figures."""
    crawl = session.crawl
    now: dict[str, float] = {"leased": crawl.leased, "offline": session.health.in_doubt}
    now["opens_at"] = session.sites.opens_at or 0.0
    return CrawlState({0: crawl.figures() | now | more}, crawl.limit)


class Progress:
    """Logs a line every LOGSTATS_INTERVAL seconds, if not 0, and one at the end.

    In a terminal, a single line redrawn every second replaces those log lines. A shard has none:
    its crawl draws one for all.
    """

    def __init__(self, crawler: Crawler, interval: float, *, live: bool) -> None:
        self._crawler = crawler
        self._interval = interval
        self._live = live
        self._line: TerminalLine | None = None
        self._monitor: Monitor | None = None
        self._loops: list[AsyncioLoopingCall | LoopingCall] = []
        self._warned: set[str] = set()  # what the log has warned of

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        live = sys.stderr.isatty() and not config.shard.count
        extension = cls(crawler, crawler.settings.getfloat("LOGSTATS_INTERVAL"), live=live)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        session = CrawlSession.of(self._crawler)
        self._monitor = Monitor(state_of(session))
        session.listeners.append(self.booked)
        settings = self._crawler.settings
        config = Config.of(settings)
        if lacks_contact(settings["USER_AGENT"], config, config.seed or spider.start_urls):
            logger.warning(
                "USER_AGENT has no contact: add %s (a mail address or a URL), so that the owners "
                "of sites can reach you",
                typed_setting("contact", "you@example.org"),
            )
        intervals = []
        if self._live:  # not earlier: Scrapy opens its log more than once
            self._line = TerminalLine(sys.stderr)
            intervals.append((self._draw, _REDRAW))
        if self._interval and not (self._line and self._line.shares_log):
            intervals.append((self._log, self._interval))
        for call, interval in intervals:
            self._loops.append(create_looping_call(call, self._monitor))
            self._loops[-1].start(interval, now=False)

    def booked(self, booking: Booking) -> None:
        """Log what looks wrong of the crawl, once; a shard sees only its own pages."""
        crawl = CrawlSession.of(self._crawler).crawl
        domains, counts = crawl.store.ledger.relevant_domains, crawl.counts
        found = warnings_of(crawl.pages, crawl.relevant, domains, counts[BOUND], counts[ECHOES])
        for name in found.keys() - self._warned:
            self._warned.add(name)
            logger.warning("%s", found[name])

    def spider_closed(self, spider: Spider) -> None:
        for loop in self._loops:
            loop.stop()
        if self._line is not None:
            self._line.close()
        if self._monitor is not None:
            self._log(self._monitor, closing=True)

    def _log(self, monitor: Monitor, *, closing: bool = False) -> None:
        session = CrawlSession.of(self._crawler)
        state = monitor.take(state_of(session)).state
        if closing and (reach := session.crawl.outlook.at_end()) is not None:
            logger.info("By the yields of its hosts, %s", reach)
        domains, phase = state.sum("relevant_domains"), state.shards[0].get("phase")
        of_limit = f"/{state.limit}" if state.limit is not None else ""
        left = None if closing else monitor.left
        waits = "" if closing else self._waits(session)
        logger.info(
            "%d%s %s, harvest rate %.1f %%, %d %s, frontier %d%s, %s%s",
            state.pages,
            of_limit,
            plural(state.pages if state.limit is None else state.limit, "page"),
            100 * state.harvest_rate,
            domains,
            plural(domains, "relevant domain"),
            state.sum("frontier_size"),
            f"{leaves} ({phase})" if (leaves := in_leaves(state)) else "",
            waits or monitor.speed(closing=closing),
            "" if left is None or waits else f", {left:.0f} s left",
        )
        if closing and (waited := self._crawler.stats.get_value(WAITED, 0.0)) >= 1:
            logger.info(
                "Request slots were left idle for %.0f s in all%s, for better hosts (hurry)",
                waited,
                monitor.since,
            )

    def _draw(self, monitor: Monitor) -> None:
        session = CrawlSession.of(self._crawler)
        hurry = "waits for better hosts" if session.crawl.waits else ""
        if self._line is not None:
            parts = monitor.take(state_of(session)).described(short=True)
            self._line.show(self._waits(session), *parts, hurry)

    def _waits(self, session: CrawlSession) -> str:
        """Return why no requests are sent, "" if they are."""
        if self._crawler.engine.paused:
            return "paused"
        if session.health.in_doubt:
            return "network gone"
        opens = session.sites.opens_at
        return "" if opens is None else f"all sites are closed until {clock(opens)}"
