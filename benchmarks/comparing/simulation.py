"""A crawl of an offline web in one process, without HTTP.

It makes the same choices in the same order as `scrapy crawl tres` with CONCURRENT_REQUESTS=1.
Rules of robots.txt and redirects are applied as Scrapy and the adapters do. A test compares the two
for every policy. Retries and delays are not simulated: they do not affect choices.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from urllib.parse import urljoin, urlsplit

from scrapy.robotstxt import ProtegoRobotParser

from comparing.library import OK, Fetched, Library
from comparing.result import Result, Run
from tres_scrapy.config.config import Config
from tres_scrapy.crawl.assembly import load_pack, make_crawl
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.crawl.failure import (
    REDIRECT_CLOSED,
    REDIRECT_LIMIT,
    REDIRECT_NOT_HTTP,
    ROBOTS,
    Failure,
)
from tres_scrapy.crawl.registry import kind_of
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.lab.webs.server import open_web
from tres_scrapy.lab.webs.web import Count
from tres_scrapy.page.robots import EVERYONE, own_rules, product_token
from tres_scrapy.settings import REDIRECT_MAX_TIMES
from tres_scrapy.topic.pack import Judged
from tres_scrapy.url.canonical import canonicalise

STEP = 25  # pages between two reports of progress


class World:
    """A web and a topic pack; pages are read and judged once for all crawls."""

    def __init__(self, config: Config, *, user_agent: str) -> None:
        web = config.web
        assert web.kind is not None
        self.web = open_web(web.kind, str(config.topic), web.seed, web.data, web.labels)
        self.pack = load_pack(config)
        self.library = Library(self.web, self.pack, config.reading)
        self.user_agent = user_agent
        self._robots: dict[str, ProtegoRobotParser] = {}

    def crawl(self, config: Config, progress: Callable[[int], None] = lambda pages: None) -> Result:
        """Crawl with the policy of `config`; call `progress` with the number of new pages."""
        return Simulation(self, config).run(progress)

    def seeds(self, config: Config) -> Outlinks:
        """Return the seeds of `config`, or those that the web has."""
        seeds = config.seed or self.web.seeds
        texts = [""] * len(seeds)
        return Outlinks(seeds, texts, self.pack.action_features(seeds, texts))

    def allows(self, url: str, longest_delay: float) -> bool:
        """Return whether robots.txt allows the URL, with a delay of `longest_delay` at most."""
        parts = urlsplit(url)
        if parts.netloc not in self._robots:
            answer = self.web.answer(f"{parts.scheme}://{parts.netloc}/robots.txt")
            body = answer.body if answer.status == OK else b""
            own = own_rules(body, product_token(self.user_agent))
            self._robots[parts.netloc] = ProtegoRobotParser(own, None)
        rules = self._robots[parts.netloc]
        delay = rules.crawl_delay(EVERYONE) or 0
        return delay <= longest_delay and rules.allowed(url, EVERYONE)


class Simulation:
    """One crawl of a world, which fetches as Scrapy and the adapters do.

    The shards of a crawl share a `count`.
    """

    def __init__(self, world: World, config: Config, count: Count | None = None) -> None:
        self.count = Count() if count is None else count
        self.crawl = make_crawl(config, world.pack, world.web)
        self.order: list[str] = []  # the URLs in the order in which they were chosen
        self._world = world
        self._config = config
        self._kind = kind_of(config.policy)
        self._found: list[int] = []

    def run(self, progress: Callable[[int], None] = lambda pages: None) -> Result:
        """Crawl until the last page or the last link."""
        start = process_time()
        self.crawl.add_seeds(self._world.seeds(self._config))
        while (decision := self.crawl.next()) is not None:
            before = self.count.pages
            self.order.append(self.crawl.store.url(decision.row))
            self.fetch(decision.row)
            if self.count.pages > before and self.count.pages % STEP == 0:
                progress(STEP)
        progress(self.count.pages % STEP)
        count = self.count
        return Result(
            run_of(self._config),
            count.pages,
            count.relevant,
            len(count.domains),
            count.fetches,
            not self.crawl.finished,
            round(process_time() - start, 1),
            self._found,
        )

    def fetch(self, row: int) -> Booking:
        """Fetch the URL of a leased row, follow redirects, and book the outcome."""
        url = self.crawl.store.url(row)
        for hops in range(REDIRECT_MAX_TIMES + 1):
            if not self._world.allows(url, self._config.download.max_crawl_delay):
                return self.crawl.book(row, ROBOTS)
            fetched = self._world.library.fetch(url, self._kind)
            self._add(url, fetched)
            if fetched.location is None:
                return self._book(row, fetched)
            if hops == REDIRECT_MAX_TIMES:
                break
            target = canonicalise(urljoin(url, fetched.location))
            if target is not None and not self.crawl.owns(target):
                return self.crawl.book(row, self.crawl.redirect_away(row, target))
            if failure := self._redirect(row, url, target):
                return self.crawl.book(row, failure)
            assert target is not None
            url = target
        return self.crawl.book(row, REDIRECT_LIMIT)

    def _add(self, url: str, fetched: Fetched) -> None:
        relevant = self.count.relevant
        self.count.add(url, fetched.answer)
        if self.count.relevant > relevant:
            self._found.append(self.count.fetches)

    def _redirect(self, row: int, source: str, target: str | None) -> Failure | None:
        """Make a row stand for the target of a redirect; return a Failure if it cannot."""
        if target is None:
            return REDIRECT_NOT_HTTP
        current = self.crawl.store.url(row)
        if target == current:
            return REDIRECT_CLOSED if canonicalise(source) == current else None
        return None if self.crawl.redirect(row, target) else REDIRECT_CLOSED

    def _book(self, row: int, fetched: Fetched) -> Booking:
        result = fetched.failure or fetched.judged
        if isinstance(result, Judged):
            result = self.crawl.decide(row, result)
        return self.crawl.book(row, result, fetched.links)


def run_of(config: Config) -> Run:
    """Return the run that a configuration describes."""
    cap = config.max_per_domain
    return Run(
        str(config.web.kind),
        str(config.topic),
        config.web.seed,
        config.policy,
        "none" if cap is None else str(cap),
        config.pages or 0,
        ",".join(config.seed),
    )
