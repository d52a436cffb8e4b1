"""Why a crawl ends: the finish reasons of TRES and their log messages."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.statscollectors import StatsCollector

from tres_scrapy.config.limit import StopRule
from tres_scrapy.config.typed import typed
from tres_scrapy.crawl.crawl import LINKS_REFUSED, POSTPONED, Booking, Crawl
from tres_scrapy.crawl.failure import DEAD_LINKS, JUDGE_ERROR, ROBOTS
from tres_scrapy.crawl.host import Health
from tres_scrapy.crawl.outlook import Outlook
from tres_scrapy.crawl.verdict import FOREIGN
from tres_scrapy.frontier.admission import AT_MAX, FAILED, OUT_OF_SCOPE, RESTED
from tres_scrapy.page.kind import SCRIPTS
from tres_scrapy.url.message import below, counted, plural

PAGE_LIMIT: Final = "page_limit"
FRONTIER_EXHAUSTED: Final = "frontier_exhausted"
NO_PAGE: Final = "no_page"
SHUTDOWN: Final = "shutdown"
FINISHED: Final = "finished"  # Scrapy's, of a project's own spider
UNREACHABLE: Final = "unreachable"
NO_JUDGE: Final = "no_judge"
ENOUGH: Final = "found_enough"
NAMED: Final = 10  # hosts that the log names

SCRIPTED: Final = "built_by_scripts"  # the count of pages that hold little without their scripts
RESERVED: Final = "reserved/"  # and a use: counts of relevant pages kept out of the output
MANY_SCRIPTED: Final = 0.1  # share of the pages from which rendering is advised

logger = logging.getLogger(__name__)


class Ending:
    """Closes a spider that has nothing left to fetch, and logs why.

    A project's own spider ends as Scrapy says, unless it has fetched all its pages.
    """

    def __init__(
        self, crawl: Crawl, health: Health, *, is_kept: bool = False, is_ours: bool = True
    ) -> None:
        self._crawl = crawl
        self._is_ours = is_ours
        self._is_kept = is_kept  # in JOBDIR
        self._health = health
        self._stats: StatsCollector | None = None

    def connect(self, crawler: Crawler) -> None:
        """Listen to the signals of a crawler."""
        self._stats = crawler.stats
        crawler.signals.connect(self.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    @property
    def reason(self) -> str:
        """Why the spider is closed if nothing is left to do now, "" if Scrapy says it."""
        if self._crawl.finished:
            return PAGE_LIMIT
        return "" if not self._is_ours else FRONTIER_EXHAUSTED if self._crawl.pages else NO_PAGE

    def spider_idle(self, spider: Spider) -> None:
        if reason := self.reason:
            raise CloseSpider(reason)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        store = self._crawl.store
        if self._stats is not None:
            for rule, count in store.admission.refusals(store).items():
                self._stats.set_value(f"tres/{LINKS_REFUSED}{rule}", count)
        again = "; give another JOBDIR to try the seeds again" if self._is_kept else ""
        if reason == NO_PAGE and JUDGE_ERROR.kind in self._crawl.failures:
            logger.error(
                "No page could be judged (%s): the lines `Could not judge`, also of an earlier "
                "run, say why%s",
                self._kinds(),
                again,
            )
        elif reason == NO_PAGE:
            logger.error(
                "No seed brought a page (%s): check the seed and the network%s",
                self._kinds(),
                again,
            )
        elif reason == SHUTDOWN:
            rest = "the same command resumes it" if self._is_kept else "it was not kept in a JOBDIR"
            logger.info("Stopped after %s: %s", self._pages(), rest)
        elif reason == FRONTIER_EXHAUSTED or (reason == FINISHED and self._crawl.pages):
            logger.info("Ran out of links after %s. %s", self._pages(), self.left())
        if refused := Counter(below(self._crawl.counts, OUT_OF_SCOPE)):
            rules = ", ".join(f"{rule} {count}" for rule, count in refused.most_common())
            logger.info("Refused by the scope, by rule: %s", rules)
        if reserved := self.reserved():
            logger.info("Relevant pages kept out of the output, as they are reserved: %s", reserved)
        walls = self._crawl.failures[SCRIPTS]
        scripted, pages = self._crawl.counts[SCRIPTED] + walls, self._crawl.pages + walls
        if scripted and scripted >= MANY_SCRIPTED * pages:
            logger.warning(
                "%d of %d %s %s built by scripts: try %s",
                scripted,
                pages,
                plural(pages, "page"),
                "looks" if scripted == 1 else "look",
                typed("render", "auto"),
            )
        if given_up := self.given_up():
            logger.warning("Given up, to be tried once more when resumed: %s", given_up)
        if foreign := Counter(below(self._crawl.counts, FOREIGN)):
            most = ", ".join(f"{name} {count}" for name, count in foreign.most_common(5))
            logger.info(
                "Pages in a language that the pack does not support: %d (%s). Their verdicts "
                "are unreliable; train a pack with `tres train --language`",
                foreign.total(),
                most,
            )

    def left(self) -> str:
        """Return how many links were not fetched, and by which rule."""
        failures, store = self._crawl.failures, self._crawl.store
        refused = store.admission.refusals(store)
        counts = {
            "dead": sum(failures[kind] for kind in DEAD_LINKS),
            "forbidden by robots.txt": failures[ROBOTS.kind],
            "beyond max_per_domain": refused[AT_MAX],
            "on domains given up by max_failures": refused[FAILED],
            "on hosts that kept failing": refused[RESTED],
            "that did not fit into the frontier": store.admission.left_out,
        }
        told = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
        return f"Links without a page: {told}" if told else "Every link found is fetched"

    def reserved(self) -> str:
        """Return how many relevant pages are kept out of the output, by the use they reserve."""
        found = below(self._crawl.counts, RESERVED)
        return ", ".join(f"{use} {found[use]:,}" for use in sorted(found))

    def _pages(self) -> str:
        return counted(self._crawl.pages, "page")

    def given_up(self) -> str:
        """Return the hosts that were given up, each with its last failure."""
        hosts, gone = self._crawl.store.hosts.names, self._health.given_up
        named = [f"{hosts[host]} ({kind})" for host, kind in list(gone.items())[:NAMED]]
        more = len(gone) - len(named)
        return ", ".join(named) + (f" and {more:,} more" if more else "")

    def _kinds(self) -> str:
        postponed = below(self._crawl.counts, POSTPONED)
        return ", ".join([*self._crawl.failures, *postponed]) or "none could be requested"


class EarlyEnd:
    """Ends a crawl when its outlook meets a rule."""

    def __init__(self, outlook: Outlook, rule: StopRule, stop: Callable[[str], None]) -> None:
        self._outlook = outlook
        self._rule = rule
        self._stop = stop
        self._is_over = False

    def note(self, booking: Booking) -> None:
        """Look at the outlook after a booking."""
        if not self._is_over and self._outlook.meets(self._rule):
            self._is_over = True
            logger.info("Stops by the rule %s: %s", self._rule, self._outlook.look())
            self._stop(ENOUGH)
