"""The extension that owns the crawl and lets it learn between requests."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.statscollectors import StatsCollector

from tres_scrapy.assembly import load_pack, make_crawl
from tres_scrapy.config import Config, ConfigError
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.policies.crawl import Crawl
from tres_scrapy.policies.policy import Decision, PageText
from tres_scrapy.policies.registry import POLICIES
from tres_scrapy.topic.duplicate import fingerprint
from tres_scrapy.topic.judge import Judge, Judged
from tres_scrapy.topic.text import Page

# Keys of Request.meta: SAMPLE holds the row of a request that waits in the frontier, LEASE that of
# one that was sent, VISIT the Visit of its response.
SAMPLE, LEASE, VISIT = "tres_sample", "tres_lease", "tres_visit"

PAGE_LIMIT = "page_limit"
FRONTIER_EXHAUSTED = "frontier_exhausted"
NO_PAGE = "no_page"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visit:
    """What is known of a fetched page when its callback runs."""

    row: int
    path: list[str]
    anchor: str
    decision: Decision
    judged: Judged
    fetched_at: datetime
    is_new: bool

    @property
    def relevant(self) -> bool:
        """Whether it is a page of the crawl, relevant and no copy of a page fetched before."""
        is_page = not self.decision.is_query
        return is_page and self.judged.judgement.relevant and self.is_new


class Learner:
    """Holds the frontier, the policy and the reward model; books what the fetches bring.

    Each booking ends with the gradient step that is due, so that learning happens between
    requests and, with CONCURRENT_REQUESTS=1, in an order that the random seed decides.
    """

    def __init__(
        self, crawl: Crawl, judge: Judge, stats: StatsCollector, *, language: str = ""
    ) -> None:
        self.crawl = crawl
        self.foreign = Counter[str]()  # pages by language, of those the pack does not read
        self._language = language
        self.requests: dict[int, Request] = {}  # by row, those of a spider's own
        self._judge = judge
        self._texts = set[bytes]()  # fingerprints of the pages
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.from_settings(crawler.settings)
        config.require_topic()
        if crawler.settings["JOBDIR"]:
            raise ConfigError("JOBDIR: the frontier is in memory and cannot be resumed; unset it")
        torch.set_num_threads(config.torch_threads)
        pack = load_pack(config)
        crawl = make_crawl(config, pack)
        contexts = POLICIES[config.policy].reads_text
        judge = Judge(pack, config.max_links, contexts=contexts)
        learner = cls(crawl, judge, crawler.stats, language=pack.language)
        crawler.signals.connect(learner.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(learner.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(learner.engine_stopped, signal=signals.engine_stopped)
        return learner

    def spider_idle(self, spider: Spider) -> None:
        if self.crawl.finished:
            raise CloseSpider(PAGE_LIMIT)
        raise CloseSpider(FRONTIER_EXHAUSTED if self.crawl.pages else NO_PAGE)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        if reason == NO_PAGE:
            kinds = ", ".join(self.crawl.failures) or "none could be tried"
            logger.error("No seed brought a page (%s): check -a seed= and the network", kinds)
        elif reason == FRONTIER_EXHAUSTED:
            logger.info(
                "Ran out of links after %d pages: every URL found is fetched or its domain has "
                "reached MAX",
                self.crawl.pages,
            )

        if self.foreign:
            kinds = ", ".join(f"{code} {count}" for code, count in self.foreign.most_common(5))
            logger.info(
                "%d pages are in a language that the pack does not read (%s): their verdict means "
                "little; `scrapy tres-train --language` makes a pack of another language",
                self.foreign.total(),
                kinds,
            )

    def engine_stopped(self) -> None:
        self._judge.close()

    def add_seed(self, url: str) -> int | None:
        """Put a seed into the frontier; return its row, None if its URL is closed."""
        actions = self._judge.action_features([url], [""])
        rows = self.crawl.add_seeds([url], [""], actions)
        return int(rows[0]) if len(rows) else None

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4 to 6 of links that are not on the page that yields them, [n, 3]."""
        return self._judge.action_features(urls, anchors)

    async def visit(self, row: int, html: str, url: str) -> Visit:
        """Judge the page that a leased row has brought, outside the reactor thread."""
        fetched_at = datetime.now(UTC)
        judged = await asyncio.wrap_future(self._judge.submit(html, url))
        store = self.crawl.store
        path, anchor = store.trail(row), store.anchors[row]
        decision, mark = self.crawl.decision(row), fingerprint(judged.page)
        is_new = mark not in self._texts
        self._texts.add(mark)
        if not is_new:
            self._stats.inc_value("tres/duplicates")
        language = judged.page.language
        if self._language and language not in {self._language, ""}:
            self.foreign[language] += 1
            self._stats.inc_value(f"tres/foreign/{language}")
        return Visit(row, path, anchor, decision, judged, fetched_at, is_new)

    def book_page(
        self,
        visit: Visit,
        urls: Sequence[str],
        anchors: Sequence[str],
        actions: NDArray[np.float32],
    ) -> Rows:
        """Book a page with the outlinks to follow and return their rows; learn from it."""
        reward = float(visit.relevant)
        text = text_of(visit.judged.page, visit.judged.judgement.probability)
        rows = self.crawl.book_page(visit.row, reward, urls, anchors, actions, text=text)
        self._report()
        return rows

    def book_failure(self, row: int, kind: str) -> None:
        """Book a fetch that brought no page; a row that is booked already is left alone."""
        if self.crawl.is_leased(row):
            self.crawl.book_failure(row, kind)
            self._report()

    def _report(self) -> None:
        for name, value in self.crawl.figures().items():
            self._stats.set_value(f"tres/{name}", value)


def text_of(page: Page, probability: float) -> PageText:
    """Return what policies that read more than x(s, a) are told of a page."""
    urls = (link.url for link in page.links)
    contexts = dict(zip(urls, page.contexts, strict=False))
    return PageText(f"{page.title} {page.text}", contexts, probability)
