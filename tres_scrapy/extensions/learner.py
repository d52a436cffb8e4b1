"""The extension that owns the crawl and lets it learn between requests."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
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

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import NO_ACTIONS, Booking, Crawl
from tres_scrapy.crawl.policy import Decision, PageText
from tres_scrapy.downloader.request import SAMPLE
from tres_scrapy.extensions.dupefilter import OwnDupeFilter
from tres_scrapy.extensions.job import Job, now
from tres_scrapy.items import RelevantPage
from tres_scrapy.page.duplicate import Duplicates
from tres_scrapy.page.soft_404 import is_soft_404
from tres_scrapy.page.text import Page
from tres_scrapy.policies.assembly import make_crawl, require_pack
from tres_scrapy.policies.registry import POLICIES
from tres_scrapy.report.reason import Reasons
from tres_scrapy.topic.judge import Judge, Judged
from tres_scrapy.topic.judge_process import Task, Worker, WorkerError
from tres_scrapy.topic.pack import Pack

PAGE_LIMIT = "page_limit"
FRONTIER_EXHAUSTED = "frontier_exhausted"
NO_PAGE = "no_page"
UNREACHABLE = "unreachable"
FOREIGN = "foreign/"  # pages by language
NO_JUDGE = "no_judge"

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


NO_LINKS = Outlinks((), (), NO_ACTIONS)


Listener = Callable[[Booking, Visit | None], None]


class Learner:
    """Holds the frontier, the policy and the reward model; books what the fetches bring.

    Each booking ends with the gradient step that is due, so that learning happens between
    requests and, with CONCURRENT_REQUESTS=1, in an order that the random seed decides. `listeners`
    are told of each booking, and of the visit that brought a page.
    """

    def __init__(
        self,
        crawl: Crawl,
        judge: Judge,
        stats: StatsCollector,
        *,
        language: str = "",
        job: Job | None = None,
        dupefilter: OwnDupeFilter | None = None,
        max_unreachable: int = 0,
        stop: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.crawl = crawl
        self.job = job
        self.dupefilter = dupefilter
        self.started = now() if job is None else job.started
        self.listeners: list[Listener] = []
        self._reasons = Reasons(crawl)
        self._language = language
        self.requests: dict[int, Request] = {}  # by row, those of a spider's own
        self._judge = judge
        self._max_unreachable = max_unreachable
        self._unreachable: dict[str, str] = {}  # host and failure, of those in a row
        self._stop = stop
        self._lost = False
        self._texts = Duplicates()  # fingerprints of the pages
        self._stats = stats
        self._seeds: dict[str, int] = {}  # rows of the seeds that an interrupted crawl has left
        if job is not None:
            self.requests = job.recover(crawl)
            job.recover_texts(self._texts)
            if dupefilter is not None:
                dupefilter.remember(crawl.store.urls)
            self._seeds = {crawl.store.url(row): row for row in crawl.store.seeds().tolist()}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        place = require_pack(config)
        torch.set_num_threads(config.torch_threads)
        contexts = POLICIES[config.policy].reads_text
        task = Task(place, config.reading, contexts, config.torch_threads)

        def stop(reason: str) -> None:
            deferred_from_coro(crawler.engine.close_spider_async(reason=reason))

        with ExitStack() as started:
            # it loads the model while this process loads its own
            worker = started.enter_context(closing(Worker(task)))
            pack = Pack.load(place)
            crawl = make_crawl(config, pack)
            job = Job.from_crawler(crawler, crawl, stop) if crawler.settings["JOBDIR"] else None
            worker.wait()
            started.pop_all()
        learner = cls(
            *(crawl, Judge(pack, worker), crawler.stats),
            language=pack.language,
            job=job,
            dupefilter=OwnDupeFilter.from_crawler(crawler),
            max_unreachable=config.download.max_unreachable,
            stop=stop,
        )
        crawler.signals.connect(learner.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(learner.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(learner.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(learner.engine_stopped, signal=signals.engine_stopped)
        crawler.signals.connect(worker.close, signal=signals.engine_stopped)  # after the judge
        return learner

    def spider_opened(self) -> None:
        self._report()  # what an interrupted crawl had, if nothing comes any more
        gc.collect()
        gc.freeze()  # what is loaded by now stays: looking it through took 0.2 s every time

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

        counts = self.crawl.counts.items()
        foreign = Counter({name: n for name, n in counts if name.startswith(FOREIGN)})
        if foreign:
            most = foreign.most_common(5)
            kinds = ", ".join(f"{name.removeprefix(FOREIGN)} {count}" for name, count in most)
            logger.info(
                "%d pages are in a language that the pack does not read (%s): their verdict means "
                "little; `scrapy tres-train --language` makes a pack of another language",
                foreign.total(),
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

    def repeats(self, url: str, request: Request) -> bool:
        """Say whether the project's own filter drops a request for a URL that is new here."""
        if self.dupefilter is None or self.crawl.store.knows(url):
            return False
        return self.dupefilter.drops(request)

    def _is_link(self, url: str, request: Request) -> bool:
        """Say whether a request is a sample's URL, met again on a page that was no sample."""
        is_start = request.dont_filter or request.meta.get("is_start_request")
        return not is_start and self.crawl.store.knows(url)

    def add_seed(self, url: str, request: Request) -> bool:
        """Put a seed with its request into the frontier; False if its URL is closed."""
        row = self._seeds.pop(url, None)  # it is there from before the crawl was interrupted
        if row is None:
            if self.repeats(url, request) or self._is_link(url, request):
                return False
            actions = self._judge.action_features([url], [""])
            rows = self.crawl.add_seeds([url], [""], actions)
            if not len(rows):
                return False
            row = int(rows[0])
        self._keep({row: request})
        return True

    @property
    def judge_waiting(self) -> int:
        """The number of pages that wait for the reward model."""
        return self._judge.waiting

    def add_outlinks(self, parent: int, urls: Sequence[str], anchors: Sequence[str]) -> None:
        """Put links that the search box of a seed's site has found into the frontier."""
        actions = self._judge.action_features(urls, anchors)
        self.crawl.add_outlinks(parent, urls, anchors, actions)
        self._report()

    def stop(self, reason: str) -> None:
        """End the crawl."""
        self._stop(reason)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The words of the topic, those that were given before those found by expansion."""
        return self._judge.keywords

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4 to 6 of links that are not on the page that yields them, [n, 3]."""
        return self._judge.action_features(urls, anchors)

    def why(self, decision: Decision) -> str:
        """Say in a sentence why a leased sample was chosen."""
        return self._reasons.why(decision)

    async def visit(self, row: int, html: str, url: str) -> Visit:
        """Judge the page that a leased row has brought, outside the reactor's process."""
        fetched_at = datetime.now(UTC)
        judged = await asyncio.wrap_future(self._judge.submit(html, url))
        store = self.crawl.store
        depth, path, anchor = store.depth(row), store.trail(row), store.anchors[row]
        # What is no page is no page's copy, nor is any page its.
        is_new = is_soft_404(judged.page) or self._texts.add(judged.mark)
        decision = self.crawl.decision(row)
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
        self._count(visit)
        text = text_of(judged.page, judged.judgement.probability)
        booking = self.crawl.book_page(visit.row, reward, urls, anchors, actions, text=text)
        self._keep_of(booking, outlinks)
        self._report()
        booked = self.job is None or self.job.book(self.crawl, booking, judged.mark, item)
        for listener in self.listeners if booked else ():
            listener(booking, visit)
        return booked

    def lose_judge(self, error: WorkerError) -> None:
        """Stop the crawl, once, as nothing can be judged any more; its leased rows stay leased."""
        if not self._lost:
            self._lost = True
            logger.error("The crawl stops: %s", error)
            self._stop(NO_JUDGE)

    def book_failure(
        self, row: int, kind: str, outlinks: Outlinks = NO_LINKS, *, reached: bool = True
    ) -> None:
        """Book a fetch that brought no page; a row that is booked already is left alone.

        When no host in a row of many could be `reached`, it is the network that is gone: the crawl
        stops, and a job tries them again.
        """
        if not self.crawl.is_leased(row):
            return
        host = self.crawl.store.hosts[self.crawl.store.host(row)]
        booking = self.crawl.book_failure(row, kind, *outlinks[:3])
        self._keep_of(booking, outlinks)
        self._report()
        if self.job is not None:
            self.job.book(self.crawl, booking, certain=reached)
        for listener in self.listeners:
            listener(booking, None)
        if not reached:
            self._note_unreachable(host, kind)

    def note_answer(self) -> None:
        """Note that a host could be reached."""
        self._unreachable.clear()

    def _count(self, visit: Visit) -> None:
        """Count a page that is a copy, or in a language that the pack does not read."""
        if not visit.is_new:
            self.crawl.counts["duplicates"] += 1
        language = visit.judged.page.language
        if self._language and language not in {self._language, ""}:
            self.crawl.counts[FOREIGN + language] += 1

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

    def _keep_of(self, booking: Booking, outlinks: Outlinks) -> None:
        if outlinks.requests:
            rows = booking.outlinks.tolist()
            self._keep({row: outlinks.requests[self.crawl.store.url(row)] for row in rows})

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
