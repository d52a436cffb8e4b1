"""The extension that assembles a crawl and owns what lives as long as it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import speak_of
from tres_scrapy.crawl.assembly import make_crawl
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.host import Health
from tres_scrapy.crawl.visit import Visits
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.extensions.ending import NO_JUDGE, EarlyEnd, Ending
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.own_queue import OwnDupeFilter
from tres_scrapy.extensions.own_request import OwnRequests
from tres_scrapy.extensions.step import CrawlStats, Listener, Steps
from tres_scrapy.extensions.topic_source import new_folder, remove_unused, task_of
from tres_scrapy.run.identity import now
from tres_scrapy.run.reason import Reasons
from tres_scrapy.topic.judge import Judge
from tres_scrapy.topic.judge_process import Worker
from tres_scrapy.topic.pack import load_packs
from tres_scrapy.url.message import TresError

logger = logging.getLogger(__name__)


class CrawlSession:
    """Holds the crawl of this process, the judge of its pages, and the steps that it takes.

    With a `job` it continues the crawl that the job holds.
    """

    def __init__(
        self,
        crawl: Crawl,
        judge: Judge,
        *,
        started: str = "",
        output: Path = Path(),
        job: Job | None = None,
        dupefilter: OwnDupeFilter | None = None,
        config: Config | None = None,
        follows_all: bool = True,
        stop: Callable[[str], None] = lambda reason: None,
    ) -> None:
        config = config or Config()
        self.crawl = crawl
        self.judge = judge
        self.judge_is_lost = False  # its process has ended for good: the crawl stops
        self.job = job
        self.started = started
        self.output = output
        self.stop = stop
        self.follows_all = follows_all  # else the requests are those of a project's own spider
        self.requests = OwnRequests(crawl.store, job, dupefilter, follows_all=follows_all)
        if job is not None:
            self.requests.recover(job.requests())
            job.recover(crawl, self.requests)
            self.requests.note_past()
        self.sites = Visits(crawl.store.ledger, config.visits)
        if job is not None and self.sites.is_limited:
            self.sites.restore(job.visits())
        # once the job has told which hosts are known
        self.health = Health(crawl.store, config.rest)
        self.listeners: list[Listener] = []  # receive each booking that is saved
        self.steps = Steps(
            crawl,
            judge,
            self.health,
            self.requests,
            job,
            listeners=self.listeners,
            is_offline=config.web.kind is not None,
        )
        self.reasons = Reasons(crawl)
        self.ending = Ending(crawl, self.health, is_kept=job is not None, is_ours=follows_all)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config, connect = Config.of(crawler.settings), crawler.signals.connect
        jobdir, began = crawler.settings["JOBDIR"], now()
        output = config.output.file or Path("output", f"{config.topic}-{began}.jsonl")
        new_topic = new_folder(output, jobdir)  # before it is made
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
        if not hasattr(crawler.spider, "follow_every_link"):
            speak_of(())  # its arguments are its own
        # with one request at a time no other page comes; more are shared between the network and
        # the judges
        at_once = crawler.settings.getint("CONCURRENT_REQUESTS")
        session = cls(
            crawl,
            Judge(pack, *workers, together=at_once // (1 + len(workers))),
            started=began,
            output=config.output.file or Path("output", f"{config.topic}-{began}.jsonl"),
            job=job,
            dupefilter=OwnDupeFilter.from_crawler(crawler),
            config=config,
            follows_all=follows_links(crawler.spider),
            stop=stop,
        )
        session.listeners.append(CrawlStats(crawler, crawl, session.health).note)
        if config.stop is not None:
            session.listeners.append(EarlyEnd(crawl.outlook, config.stop, stop).note)
        connect(session.steps.note_answer, signal=signals.response_downloaded)
        connect(freeze, signal=signals.spider_opened)
        session.ending.connect(crawler)
        connect(session.judge.close, signal=signals.engine_stopped)
        # after the judge; nothing else holds the processes then
        connect(running.close, signal=signals.engine_stopped, weak=False)
        if new_topic is not None:
            unused = lambda: remove_unused(new_topic, crawl)  # noqa: E731
            connect(unused, signal=signals.engine_stopped, weak=False)
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


def freeze() -> None:
    """Keep the objects loaded so far: collecting them took 0.2 s each time."""
    gc.collect()
    gc.freeze()
