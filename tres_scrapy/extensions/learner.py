"""The extension that owns the crawl and lets it learn between requests."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.statscollectors import StatsCollector
from scrapy.utils.defer import deferred_from_coro

from tres_scrapy.assembly import load_pack, make_crawl
from tres_scrapy.config import Config
from tres_scrapy.extensions.job import Job
from tres_scrapy.items import RelevantPage
from tres_scrapy.policies.crawl import Crawl
from tres_scrapy.policies.policy import Decision, PageText
from tres_scrapy.policies.registry import POLICIES
from tres_scrapy.request import SAMPLE
from tres_scrapy.topic.duplicate import Duplicates
from tres_scrapy.topic.judge import Judge, Judged
from tres_scrapy.topic.text import Page

PAGE_LIMIT = "page_limit"
FRONTIER_EXHAUSTED = "frontier_exhausted"
NO_PAGE = "no_page"
UNREACHABLE = "unreachable"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visit:
    """What is known of a fetched page when its callback runs."""

    row: int
    depth: int
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


class Outlinks(NamedTuple):
    """The links of a page that are followed; `requests` are those of a spider's own, by URL."""

    urls: Sequence[str]
    anchors: Sequence[str]
    actions: NDArray[np.float32]  # features 4 to 6, [n, 3]
    requests: Mapping[str, Request] = {}


class Learner:
    """Holds the frontier, the policy and the reward model; books what the fetches bring.

    Each booking ends with the gradient step that is due, so that learning happens between
    requests and, with CONCURRENT_REQUESTS=1, in an order that the random seed decides.
    """

    def __init__(
        self,
        crawl: Crawl,
        judge: Judge,
        stats: StatsCollector,
        *,
        language: str = "",
        job: Job | None = None,
        max_unreachable: int = 0,
        stop: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.crawl = crawl
        self.job = job
        self.foreign = Counter[str]()  # pages by language, of those the pack does not read
        self._language = language
        self.requests: dict[int, Request] = {}  # by row, those of a spider's own
        self._judge = judge
        self._max_unreachable = max_unreachable
        self._unreachable: dict[str, str] = {}  # host and failure, of those in a row
        self._stop = stop
        self._texts = Duplicates()  # fingerprints of the pages
        self._stats = stats
        self._seeds: dict[str, int] = {}  # rows of the seeds that an interrupted crawl has left
        if job is not None:
            self.requests = job.recover(crawl)
            job.recover_texts(self._texts)
            self._seeds = {crawl.store.url(row): row for row in crawl.store.seeds().tolist()}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.from_settings(crawler.settings)
        config.require_topic()
        torch.set_num_threads(config.torch_threads)
        pack = load_pack(config)
        crawl = make_crawl(config, pack)
        contexts = POLICIES[config.policy].reads_text
        judge = Judge(pack, config.reading, contexts=contexts)

        def stop(reason: str) -> None:
            deferred_from_coro(crawler.engine.close_spider_async(reason=reason))

        job = Job.from_crawler(crawler, crawl, stop) if crawler.settings["JOBDIR"] else None
        learner = cls(
            *(crawl, judge, crawler.stats),
            language=pack.language,
            job=job,
            max_unreachable=config.max_unreachable,
            stop=stop,
        )
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
                "reached MAX or is given up",
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

    def next(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Lease the sample to fetch next; None when there is none to fetch now."""
        if self.job is None:
            return self.crawl.next(busy_hosts)
        decision = None if self.job.failed else self.crawl.next(busy_hosts)
        return decision if decision and self.job.lease(self.crawl, decision) else None

    def add_seed(self, url: str, request: Request) -> bool:
        """Put a seed with its request into the frontier; False if its URL is closed."""
        row = self._seeds.pop(url, None)  # it is there from before the crawl was interrupted
        if row is None:
            actions = self._judge.action_features([url], [""])
            rows = self.crawl.add_seeds([url], [""], actions)
            if not len(rows):
                return False
            row = int(rows[0])
        self._keep({row: request})
        return True

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4 to 6 of links that are not on the page that yields them, [n, 3]."""
        return self._judge.action_features(urls, anchors)

    async def visit(self, row: int, html: str, url: str) -> Visit:
        """Judge the page that a leased row has brought, outside the reactor thread."""
        fetched_at = datetime.now(UTC)
        judged = await asyncio.wrap_future(self._judge.submit(html, url))
        store = self.crawl.store
        depth, path, anchor = store.depth(row), store.trail(row), store.anchors[row]
        decision, is_new = self.crawl.decision(row), self._texts.add(judged.mark)
        if not is_new:
            self._stats.inc_value("tres/duplicates")
        language = judged.page.language
        if self._language and language not in {self._language, ""}:
            self.foreign[language] += 1
            self._stats.inc_value(f"tres/foreign/{language}")
        return Visit(row, depth, path, anchor, decision, judged, fetched_at, is_new)

    def book_page(
        self,
        visit: Visit,
        outlinks: Outlinks,
        item: RelevantPage | None = None,
    ) -> bool:
        """Book a page with the outlinks to follow and its item, and learn from it.

        False: it could not be written down in JOBDIR, and nothing may come of it.
        """
        reward, judged = float(visit.relevant), visit.judged
        urls, anchors, actions, _ = outlinks
        text = text_of(judged.page, judged.judgement.probability)
        booking = self.crawl.book_page(visit.row, reward, urls, anchors, actions, text=text)
        rows = booking.outlinks.tolist()
        if outlinks.requests:
            self._keep({row: outlinks.requests[self.crawl.store.url(row)] for row in rows})
        self._report()
        return self.job is None or self.job.book(self.crawl, booking, judged.mark, item)

    def book_failure(self, row: int, kind: str, *, reached: bool = True) -> None:
        """Book a fetch that brought no page; a row that is booked already is left alone.

        When no host in a row of many could be `reached`, it is the network that is gone: the crawl
        stops, and a job tries them again.
        """
        if not self.crawl.is_leased(row):
            return
        host = self.crawl.store.hosts[self.crawl.store.host(row)]
        booking = self.crawl.book_failure(row, kind)
        self._report()
        if self.job is not None:
            self.job.book(self.crawl, booking, certain=reached)
        if not reached:
            self._note_unreachable(host, kind)

    def note_answer(self) -> None:
        """Note that a host could be reached."""
        self._unreachable.clear()

    def _note_unreachable(self, host: str, kind: str) -> None:
        self._unreachable[host] = kind
        if len(self._unreachable) == self._max_unreachable:
            kinds = Counter(self._unreachable.values()).most_common()
            logger.error(
                "None of the last %d hosts could be reached (%s): the crawl stops; check the "
                "network and the proxy",
                *(len(self._unreachable), ", ".join(f"{kind} {count}" for kind, count in kinds)),
            )
            self._stop(UNREACHABLE)

    def _keep(self, requests: dict[int, Request]) -> None:
        """Let samples be fetched by requests of a spider's own, by row."""
        if self.job is not None:
            self.job.keep(requests)
        for row, request in requests.items():
            request.meta[SAMPLE] = row
        self.requests |= requests

    def _report(self) -> None:
        for name, value in self.crawl.figures().items():
            self._stats.set_value(f"tres/{name}", value)


def text_of(page: Page, probability: float) -> PageText:
    """Return what policies that read more than x(s, a) are told of a page."""
    urls = (link.url for link in page.links)
    contexts = dict(zip(urls, page.contexts, strict=False))
    return PageText(f"{page.title} {page.text}", contexts, probability)
