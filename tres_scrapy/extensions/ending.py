"""Why a crawl ends: the finish reasons of TRES and their log messages."""

from __future__ import annotations

import logging
from typing import Final

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider

from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.foreign import foreign_pages
from tres_scrapy.frontier.scope import refused_links

PAGE_LIMIT: Final = "page_limit"
FRONTIER_EXHAUSTED: Final = "frontier_exhausted"
NO_PAGE: Final = "no_page"
UNREACHABLE: Final = "unreachable"
NO_JUDGE: Final = "no_judge"

SCRIPTED: Final = "built_by_scripts"  # the count of pages that hold little without their scripts
MANY_SCRIPTED: Final = 0.1  # share of the pages from which rendering is advised

logger = logging.getLogger(__name__)


class Ending:
    """Closes a spider that has nothing left to fetch, and logs why."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    def connect(self, crawler: Crawler) -> None:
        """Listen to the signals of a crawler."""
        crawler.signals.connect(self.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    def spider_idle(self, spider: Spider) -> None:
        if self._crawl.finished:
            raise CloseSpider(PAGE_LIMIT)
        raise CloseSpider(FRONTIER_EXHAUSTED if self._crawl.pages else NO_PAGE)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        if reason == NO_PAGE:
            kinds = ", ".join(self._crawl.failures) or "none could be requested"
            logger.error("No seed brought a page (%s): check the seed and the network", kinds)
        elif reason == FRONTIER_EXHAUSTED:
            logger.info(
                "Ran out of links after %d pages: every URL found is fetched, out of scope, or on "
                "a domain that has reached MAX or failed too often",
                self._crawl.pages,
            )
        if refused := refused_links(self._crawl.counts):
            rules = ", ".join(f"{rule} {count}" for rule, count in refused.most_common())
            logger.info("Links that the scope refused, by rule: %s", rules)
        scripted, pages = self._crawl.counts[SCRIPTED], self._crawl.pages
        if scripted and scripted >= MANY_SCRIPTED * pages:
            logger.warning("%d of %d pages look built by scripts: try render=auto", scripted, pages)
        if foreign := foreign_pages(self._crawl.counts):
            most = ", ".join(f"{name} {count}" for name, count in foreign.most_common(5))
            logger.info(
                "%d pages are in a language that the pack does not support (%s), so their verdicts "
                "are unreliable; train a pack with `tres train --language`",
                *(foreign.total(), most),
            )
