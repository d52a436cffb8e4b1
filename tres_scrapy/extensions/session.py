"""The extension that holds the crawl and makes it learn between requests."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from shutil import rmtree
from time import monotonic, time
from typing import Any, Final, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.statscollectors import StatsCollector
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.agent.policy import Decision
from tres_scrapy.config.config import Config
from tres_scrapy.config.download import RestOptions
from tres_scrapy.crawl.assembly import make_crawl
from tres_scrapy.crawl.crawl import POSTPONED, Booking, Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.host import Health, Rest
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.downloader.request import LEASE, ROBOTS_TXT, follows_links
from tres_scrapy.extensions.ending import NO_JUDGE, Ending
from tres_scrapy.extensions.job import Job, now
from tres_scrapy.extensions.own_queue import OwnDupeFilter
from tres_scrapy.extensions.own_request import OwnRequests
from tres_scrapy.extensions.topic_source import new_folder, task_of
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.ledger import Availability
from tres_scrapy.run.reason import Reasons
from tres_scrapy.topic.judge import Judge
from tres_scrapy.topic.judge_process import Worker
from tres_scrapy.topic.pack import Judged, load_packs
from tres_scrapy.url.message import TresError

Listener = Callable[[Booking], None]
REST: Final = RestOptions()
EVERY: Final = 1.0  # seconds between two reports of the stats

logger = logging.getLogger(__name__)


class CrawlSession:
    """Holds the crawl and books the result of each fetch.

    Each booking ends with the gradient step that is due, so learning happens between requests.
    With CONCURRENT_REQUESTS=1 the random seed determines its order. `listeners` receive each
    booking.
    """

    def __init__(
        self,
        crawl: Crawl,
        judge: Judge,
        stats: StatsCollector,
        *,
        started: str = "",
        output: Path = Path(),
        job: Job | None = None,
        dupefilter: OwnDupeFilter | None = None,
        rest: RestOptions = REST,
        is_offline: bool = False,
        follows_all: bool = True,
        stop: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.crawl = crawl
        self.job = job
        self.started = started
        self.output = output
        self.stop = stop
        self.listeners: list[Listener] = []
        self.follows_all = follows_all  # else the requests are those of a project's own spider
        self.new_topic: Path | None = None  # the folder of a topic that this crawl has made
        self.judge = judge
        self.judge_is_lost = False  # its process has ended for good: the crawl stops
        self.requests = OwnRequests(crawl.store, job, dupefilter, follows_all=follows_all)
        self.reasons = Reasons(crawl)
        self._stats = stats
        self._next_report = 0.0
        if job is not None:
            self.requests.recover(job.requests())
            job.recover(crawl, self.requests)
            if dupefilter is not None:
                dupefilter.remember(crawl.store.closure.urls)
            self.requests.note_past()
        self.health = Health(crawl.store, rest)  # once the job has told which hosts are known
        self._resume_rests()
        self.ending = Ending(crawl, self.health, is_kept=job is not None, is_ours=follows_all)
        self._is_offline = is_offline

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        jobdir, began = crawler.settings["JOBDIR"], now()
        output = config.output.file or Path("output", f"{config.topic}-{began}.jsonl")
        new_topic = new_folder(config, output, jobdir)  # before it is made
        task = task_of(config, output, jobdir)

        def stop(reason: str) -> None:
            deferred_from_coro(crawler.engine.close_spider_async(reason=reason))

        with ExitStack() as started:
            # all processes load their models at the same time
            workers = [started.enter_context(closing(Worker(task))) for _ in range(config.judges)]
            # the files of a topic that learns are replaced
            pack = load_packs(task.packs, lazily=config.words.file is None)
            crawl = make_crawl(config, pack)
            job = Job.from_crawler(crawler, crawl, stop) if jobdir else None
            for worker in workers:
                worker.wait()
            running = started.pop_all()
        began = began if job is None else job.started
        # with one request at a time no other page comes; more are shared between the network and
        # the judges
        at_once = crawler.settings.getint("CONCURRENT_REQUESTS")
        judge = Judge(pack, *workers, together=at_once // (1 + len(workers)))
        session = cls(
            crawl,
            judge,
            crawler.stats,
            started=began,
            output=config.output.file or Path("output", f"{config.topic}-{began}.jsonl"),
            job=job,
            dupefilter=OwnDupeFilter.from_crawler(crawler),
            rest=config.rest,
            is_offline=config.web.kind is not None,
            follows_all=follows_links(crawler.spider),
            stop=stop,
        )
        crawler.signals.connect(session.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(session.response_downloaded, signal=signals.response_downloaded)
        crawler.signals.connect(session.spider_closed, signal=signals.spider_closed)
        session.ending.connect(crawler)
        crawler.signals.connect(judge.close, signal=signals.engine_stopped)
        # after the judge; nothing else holds the processes then
        crawler.signals.connect(running.close, signal=signals.engine_stopped, weak=False)
        if new_topic is not None:
            session.new_topic = new_topic
            crawler.signals.connect(session.remove_unused, signal=signals.engine_stopped)
        return session

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Return the session of a crawler; raise TresError if the add-on is not installed."""
        session = crawler.get_extension(cls)
        if session is None:
            raise TresError("the classes of TRES work with its add-on: add TresAddon to ADDONS")
        return session

    def lose_judge(self, error: Exception) -> None:
        """Stop the crawl, as the process that judges pages has ended for good."""
        if not self.judge_is_lost:
            self.judge_is_lost = True
            logger.error("The crawl stops: %s", error)
            self.stop(NO_JUDGE)

    def response_downloaded(self, response: Response, request: Request) -> None:
        """Note that a host has answered, be it with its robots.txt; what waits for it is next.

        It rests if it asks for that in answer to a sitemap or the like, which no sample waits for.
        """
        url = urlparse_cached(request)
        host = self.crawl.store.hosts.find(url.hostname or "")
        if (failure := failure_of(HttpError(response))).passes:
            aside = not (request.meta.keys() & {LEASE, ROBOTS_TXT} or self._is_offline)
            if host is not None and failure.retry_after and aside and self.follows_all:
                self._rest(host, failure, monotonic())
        else:
            self.health.note_answer(host, f"{url.scheme}://{url.netloc}")
            if host is not None and LEASE in request.meta:
                self.crawl.bring_forward(self.health.note_page(host))

    def spider_opened(self) -> None:
        self._report()  # figures of a resumed crawl, which may have nothing left to fetch
        gc.collect()
        gc.freeze()  # objects loaded so far stay: collecting them took 0.2 s each time

    def spider_closed(self) -> None:
        self._report(last=True)

    def remove_unused(self) -> None:
        """Remove the folder of a new topic that has learned nothing: no page was fetched."""
        if self.new_topic is not None and not self.crawl.pages:
            rmtree(self.new_topic, ignore_errors=True)

    def next(self, available: Availability) -> Decision | None:
        """Lease the sample to fetch next; return None if none can be fetched now."""
        if self.job is None:
            return self.crawl.next(available)
        decision = None if self.job.failed else self.crawl.next(available)
        is_saved = decision and self.job.write(self.job.journal.lease, self.crawl, decision)
        return decision if is_saved else None

    def exhausted(self, now: float) -> bool:
        """Return whether nothing is left to fetch, whatever the limit of pages."""
        store = self.crawl.store
        if not store.pending or store.hosts.known_domains or self.crawl.leased:
            return not store.pending
        # none of the hosts that rest has answered: it is not worth waiting
        return bool(self.health.resting(now)) and not self.health.promises(now)

    def redirect(self, row: int, url: str) -> bool:
        """Redirect a leased row; return False if its new URL must not be fetched."""
        moved = self.crawl.redirect(row, url)
        return moved and (
            self.job is None or self.job.write(self.job.journal.redirect, self.crawl, row)
        )

    def add_seed(self, url: str, request: Request) -> bool:
        """Add a seed with its request to the frontier; return False if its URL is closed.

        A shard takes the seeds on its own domains only.
        """
        if not self.crawl.owns(url):
            return False
        row = self.requests.seeds.pop(url, None)  # it was there before the crawl was interrupted
        if row is None:
            if self.requests.repeats(url, request):
                return False
            if self.requests.is_link(url, request) or self.crawl.store.closure.is_closed(url):
                return self.requests.drop(request)
            actions = self.judge.action_features([url], [""])
            rows = self.crawl.add_seeds(Outlinks([url], [""], actions), request.priority)
            if not len(rows):
                return False
            row = int(rows[0])
        self.requests.keep({row: request})
        return True

    def add_outlinks(self, parent: int, urls: Sequence[str], anchors: Sequence[str]) -> None:
        """Add links found by the search box of a seed's site to the frontier."""
        actions = self.judge.action_features(urls, anchors)
        self.crawl.add_outlinks(parent, Outlinks(urls, anchors, actions))
        self._report()

    def add_links(self, parent: int, judged: Judged) -> int:
        """Add the new links of a sitemap or feed to the frontier; return how many.

        `parent` is the row of the page that led to it; the store has learned the judge's names.
        """
        store, links = self.crawl.store, judged.page.links
        places = [i for i, link in enumerate(links) if not store.closure.knows(link.url)]
        urls, anchors = [links[i].url for i in places], [links[i].anchor for i in places]
        actions, cues = judged.actions[places], judged.cues.take(places)
        rows = self.crawl.add_unlinked(parent, Outlinks(urls, anchors, actions, cues))
        if self.job is not None:
            self.job.write(self.job.journal.save, self.crawl)
        self._report()
        return len(rows)

    def book(
        self,
        row: int,
        result: Judged | Failure | None,
        links: Outlinks = NO_LINKS,
        own: Mapping[str, Request] | None = None,
        items: Sequence[Any] = (),
    ) -> bool:
        """Book a leased row with the outlinks to follow and its items, and learn from it.

        `result` is as in `Crawl.book`, `own` are the spider's own requests for the outlinks, by
        URL. Return False if the booking could not be saved in JOBDIR: then discard the page's items
        and requests. A row that is not leased is booked already.
        """
        if not self.crawl.is_leased(row):
            return True
        booking = self.crawl.book(row, result, links)
        if isinstance(result, Failure) and result.ends_in_rest:
            host = int(self.crawl.store["host"][row])
            self.health.note_failure(host, result, monotonic())
        self.health.note_booking(row)
        self.requests.note_booking(booking, own or {})
        self._report()
        booked = self.job is None or self.job.book(self.crawl, booking, items)
        for listener in self.listeners if booked else ():
            listener(booking)
        return booked

    def set_back(self, row: int, failure: Failure, now: float) -> bool:
        """Put the host of a leased row to rest; return whether the row waits for its host.

        It does not if the failure is the link's own, or if the host is given up.
        """
        offline = self._is_offline and failure.is_status  # these pages never answer otherwise
        if not self.crawl.is_leased(row) or offline or self.health.blames(row, failure):
            return False
        host = int(self.crawl.store["host"][row])
        last = self.health.set_back(row, host)
        self.crawl.set_back(row, last=last)
        if last and self.job is not None and not self.crawl.store.is_held(row):
            self.job.write(self.job.journal.set_back, row)
        self.crawl.count(POSTPONED + failure.kind)
        return self._rest(host, failure, now)

    def _rest(self, host: int, failure: Failure, now: float) -> bool:
        """Put a host to rest; return False if it is given up instead."""
        rests = self.health.rests
        rest = self.health.note_failure(host, failure, now)
        self._report()
        name = self.crawl.store.hosts.names[host]
        if rest is None:
            logger.warning(
                "Gave up %s (%s): a resumed crawl tries it once more", name, failure.kind
            )
            if self.job is not None:
                self.job.write(self.job.journal.save, self.crawl)  # no booking may follow
        elif self.health.rests > rests:
            logger.info("%s rests for %.0f s (%s)", name, rest.until - now, failure.kind)
        if rest is not None and failure.retry_after and self.job is not None:
            self.job.note_rest(name, time() + rest.until - now, failure.kind)
        return rest is not None

    def _resume_rests(self) -> None:
        """Let hosts rest that asked an earlier run for it, until then."""
        steady = monotonic() - time()
        for name, (until, kind) in self.job.rests().items() if self.job is not None else ():
            host = self.crawl.store.hosts.find(name)
            if host is not None and until > time():
                self.health.rest(host, Rest(1, until + steady, kind), monotonic())

    def _report(self, *, last: bool = False) -> None:
        """Set the stats, at most once a second."""
        if not last and monotonic() < self._next_report:
            return
        self._next_report = monotonic() + EVERY
        for name, value in self.crawl.figures().items():
            self._stats.set_value(f"tres/{name}", value)
        self._stats.set_value("tres/rests", self.health.rests)
        self._stats.set_value("tres/outages", self.health.outages)
