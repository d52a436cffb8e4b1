"""The spider `tres-seeds`: fetches seeds and a few of their best links, to rate the seeds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.settings import Settings
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed_setting
from tres_scrapy.crawl.assembly import threshold_of
from tres_scrapy.crawl.failure import ROBOTS
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.extensions.topic_source import task_of
from tres_scrapy.frontier.host import origin_of
from tres_scrapy.middlewares.reward import source_of
from tres_scrapy.page.kind import WALLS
from tres_scrapy.page.robots import EVERYONE, product_token
from tres_scrapy.spiders.fetch import run_politely
from tres_scrapy.topic.judge import Judge
from tres_scrapy.topic.judge_process import Worker
from tres_scrapy.topic.pack import Judged, load_packs
from tres_scrapy.topic.seed_rating import ALLOWED, FORBIDDEN, Sampled, SeedRating
from tres_scrapy.url.message import plural, printable

STEP: Final = 10  # sampled links between two lines of progress
SAID: Final = {  # of errors whose names say little
    CannotResolveHostError: "the name of the host is not known",
    DownloadConnectionRefusedError: "the host refuses the connection",
    DownloadTimeoutError: "the host does not answer in time",
}


class SeedSpider(Spider):
    """Fetches each seed and `most` of its links; `ratings` holds what was found, in order."""

    has_frontier = False

    def __init__(
        self, seeds: Sequence[str], judge: Judge, threshold: float, most: int, max_delay: float
    ) -> None:
        super().__init__("tres-seeds")  # a class attribute `name` would list it in `scrapy crawl`
        self.ratings = {url: SeedRating(url) for url in seeds}
        self.reason = ""
        self._judge = judge
        self._threshold = threshold
        self._most = most
        self._max_delay = max_delay
        self._delays: dict[str, float] = {}  # by origin
        self._askers: dict[str, list[tuple[SeedRating, Sampled]]] = {}  # of a sampled URL
        self._done = self._sampled = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.robots_parsed, signal=signals.robots_parsed)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        web = self.crawler.get_extension(OfflineWeb)
        if not self.ratings and web is not None:
            self.ratings = {url: SeedRating(url) for url in web.seeds}
        for url in self.ratings:
            yield Request(
                Config.of(self.settings).web.spoken(url),
                errback=self.fail,
                cb_kwargs={"seed": url},
                dont_filter=True,
                priority=1,
            )

    def robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        """Note the Crawl-delay of a host."""
        self._delays[origin_of(request.url)] = robotparser.crawl_delay(EVERYONE) or 0.0

    async def parse(self, response: Response, seed: str = "", **kwargs: Any) -> AsyncIterator[Any]:
        rating = self.ratings[seed]
        self._note_rules(rating, response)
        judged = await self._judged(response)
        if isinstance(judged, str):
            rating.error = judged
        else:
            for sampled in rating.read(judged, self._threshold, self._most):
                askers = self._askers.setdefault(sampled.url, [])
                askers.append((rating, sampled))
                if len(askers) == 1:
                    arguments = {"asked": sampled.url}
                    yield Request(
                        sampled.url,
                        self.parse_sampled,
                        errback=self.fail_sampled,
                        cb_kwargs=arguments,
                        dont_filter=True,
                    )
        self._say(rating)

    async def parse_sampled(self, response: Response, asked: str) -> None:
        """Judge the page of a sampled link for all the seeds that have it."""
        self._count_sampled()
        judged = await self._judged(response)
        if isinstance(judged, str):
            return
        for rating, sampled in self._askers[asked]:
            sampled.probability = judged.probability
            sampled.relevant = sampled.probability >= self._threshold
            rating.note_language(judged)

    def fail_sampled(self, failure: Failure) -> None:
        """Count a sampled link whose page cannot be fetched."""
        self._count_sampled()

    def fail(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        rating = self.ratings[request.cb_kwargs["seed"]]
        self._note_rules(rating, request)
        rating.error = self._reason(failure.value, rating)
        self._say(rating)

    def closed(self, reason: str) -> None:
        self.reason = reason
        for rating in self.ratings.values():
            if rating.probability is None:
                rating.error = rating.error or "not fetched"

    async def _judged(self, response: Response) -> Judged | str:
        """Return what the judge says of a page, or why it cannot judge it."""
        settings = self.crawler.settings
        agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"] or ""
        documents = Config.of(settings).reading.documents
        source = source_of(response, documents=documents, crawler=product_token(agent))
        if source is None:
            return "neither HTML nor PDF"
        try:
            judged = await asyncio.wrap_future(self._judge.submit(source))
        except Exception as error:  # a page may break the judge in any way
            return f"the page could not be judged: {error}"
        if judged.is_broken:
            return "a PDF that cannot be read"
        if judged.wall:
            return WALLS[judged.wall]
        return "the page says that it was not found" if judged.is_missing else judged

    def _reason(self, error: BaseException | None, rating: SeedRating) -> str:
        if failure_of(error).kind == ROBOTS.kind:
            rating.robots = FORBIDDEN
            if (rating.delay or 0.0) > self._max_delay:
                return (
                    f"robots.txt asks for {rating.delay:g} s between fetches; "
                    f"{typed_setting('max_crawl_delay', f'{rating.delay:g}')} allows it"
                )
            return "robots.txt forbids it"
        if isinstance(error, HttpError):
            place = "robots.txt: " if error.response.url.endswith("/robots.txt") else ""
            return f"{place}HTTP {error.response.status}"
        said = next((said for kind, said in SAID.items() if isinstance(error, kind)), "")
        if said or isinstance(error, IgnoreRequest):
            return said or str(error)
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

    def _say(self, rating: SeedRating) -> None:
        """Say on standard error what was found at a seed."""
        self._done += 1
        count = len(rating.sample)
        links = plural(rating.links, "link")
        found = rating.error or f"{rating.links:,} {links}; {count} of them are fetched next"
        _progress(f"{self._done} of {len(self.ratings)}: {rating.url}: {found}")

    def _count_sampled(self) -> None:
        self._sampled += 1
        if self._sampled % STEP == 0 or self._sampled == len(self._askers):
            _progress(f"{self._sampled} of {len(self._askers)} links fetched")

    def _note_rules(self, rating: SeedRating, message: Request | Response) -> None:
        """Note what the robots.txt of a host says, if it could be read."""
        delay = self._delays.get(origin_of(message.url))
        rating.robots = "" if delay is None else ALLOWED
        rating.delay = delay or None


def _progress(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def rate_seeds(config: Config, settings: Settings, most: int) -> SeedSpider:
    """Fetch the seeds of a crawl and at most `most` links of each; return the spider, closed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tres-seeds-")))
        task = task_of(config, folder / "topic.jsonl", None)
        worker = stack.enter_context(closing(Worker(task)))
        pack = load_packs(task.packs, lazily=config.words.file is None)
        threshold = threshold_of(config.judge, pack)
        worker.wait()
        judge = Judge(pack, worker)
        stack.callback(judge.close)
        return run_politely(
            SeedSpider,
            settings,
            seeds=config.seed,
            judge=judge,
            threshold=threshold,
            most=most,
            max_delay=config.download.max_crawl_delay,
        )
