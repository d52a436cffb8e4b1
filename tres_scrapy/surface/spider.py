"""The spider `surface`: what a site's search box finds, for the frontier."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

import numpy as np
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.downloader.request import ASIDE, VISIT
from tres_scrapy.extensions.learner import Learner
from tres_scrapy.items import FoundRecord
from tres_scrapy.page.text import STOP_WORDS, tokenise
from tres_scrapy.spiders.tres import TresSpider
from tres_scrapy.surface.result_page import Hit, ResultReader
from tres_scrapy.surface.search_box import (
    POST,
    Interface,
    find_description,
    find_interface,
    read_description,
)
from tres_scrapy.surface.selector import make_selector
from tres_scrapy.surface.settings import SurfaceOptions
from tres_scrapy.surface.surfacing import Surfacing

NO_SEARCH = "no_search"
PROBES: Final = 2  # queries of words that nobody has
FIRST: Final = 5  # keywords of the topic that are asked before any word of a record
MIN_DF: Final = 2  # records that a candidate stands in
MOST_FAILURES: Final = 3  # in a row, until a site is left

logger = logging.getLogger(__name__)
Outputs = Iterator[Request | FoundRecord]


@dataclass
class Site:
    """A site with a search box: what it was asked, what is known of it, the query under way."""

    row: int  # of its seed in the frontier
    host: str
    interface: Interface
    reader: ResultReader
    surfacing: Surfacing
    probes: list[str]
    known: dict[str, int] = field(default_factory=dict)  # URLs of records, numbered as they came
    query: dict[str, Hit] = field(default_factory=dict)  # what it has returned so far, by URL
    pages: int = 0
    failures: int = 0


class SurfaceSpider(TresSpider):
    """Asks the search box of each seed's site; the records it returns join the frontier.

    One query of a site is under way at a time. Each argument `-a name=value` is the setting
    TRES_NAME.
    """

    name = "surface"
    options = (Config, SurfaceOptions)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        if crawler.settings.get("JOBDIR"):
            raise ConfigError(
                "JOBDIR: a surface crawl cannot be gone on with; leave JOBDIR out, or list the "
                "records with -a surface_follow=0 -O records.jsonl and crawl them by `tres`"
            )
        spider.config = SurfaceOptions.of(crawler.settings)
        spider.follow_every_link = spider.config.follow
        spider.random_seed = Config.of(crawler.settings).random_seed
        spider.hosts, spider.unopened, spider.asking, spider.queries = set(), 0, 0, 0
        return spider

    config: SurfaceOptions
    random_seed: int
    hosts: set[str]  # whose search box was looked for
    unopened: int  # seeds whose search box is not found yet
    asking: int  # sites that are being asked
    queries: int

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            self.unopened += 1
            yield request

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        async for item in super().parse(response, **kwargs):
            yield item
        visit: Visit | None = response.meta.get(VISIT)
        if visit is None or visit.depth:
            return
        host = urlsplit(response.url).netloc
        if host in self.hosts:
            self.unopened -= 1
            return
        self.hosts.add(host)
        for output in self.look(response, row=visit.row):
            yield output

    def look(self, response: Response, row: int) -> Outputs:
        """Look for the search box on a page, in what it names, and on the site's home page."""
        assert isinstance(response, TextResponse)
        url, home = response.url, urljoin(response.url, "/")
        if (interface := find_interface(response.text, url)) is not None:
            yield from self.open(interface, url, row)
        elif (description := find_description(response.text, url)) is not None:
            yield self._aside(description, self.describe, row=row)
        elif url != home:
            yield self._aside(home, self.look, row=row)
        else:
            self.refuse(url, "has no search box that can be recognised")

    def describe(self, response: Response, row: int) -> Outputs:
        """Read an OpenSearch description."""
        interface = read_description(response.text, response.url)
        if interface is not None:
            yield from self.open(interface, response.url, row)
        else:
            self.refuse(response.url, "describes no search of web pages by GET")

    def open(self, interface: Interface, url: str, row: int) -> Outputs:
        """Begin to ask a search box, first what nobody has."""
        if interface.method == POST and not self.config.post:
            self.refuse(url, "is searched by POST only: -a surface_post=1 allows it")
            return
        self.unopened -= 1
        self.asking += 1
        config, host = self.config, urlsplit(url).netloc
        surfacing = Surfacing(
            make_selector(config.selector, self.random_seed),
            self._keywords(),
            first=FIRST,
            budget=config.queries,
            min_yield=config.min_yield,
            min_df=MIN_DF,
        )
        random = np.random.default_rng(self.random_seed)
        probes = ["".join(random.choice([*"bcdfghjkmpqvwxz"], 11)) for _ in range(PROBES)]
        reader = ResultReader(interface.action)
        site = Site(row, host, interface, reader, surfacing, probes)
        logger.info("%s: asking %s (found by %s)", host, interface.action, interface.sign)
        self._count("sites")
        yield self._ask(site, site.probes[0], self.probe)

    def refuse(self, url: str, why: str) -> None:
        """Say why a site cannot be asked; end the crawl if none can."""
        logger.warning("%s %s", urlsplit(url).netloc, why)
        self._count("refused")
        self.unopened -= 1
        self._stop_if_in_vain()

    def probe(self, response: Response, site: Site, word: str) -> Outputs:
        """Learn what stands on a page of results whatever is asked."""
        if isinstance(response, TextResponse):
            site.reader.learn_empty(response.text, response.url)
        yield from self._probed(site, word)

    def _probed(self, site: Site, word: str) -> Outputs:
        following = site.probes.index(word) + 1
        if following < len(site.probes):
            yield self._ask(site, site.probes[following], self.probe)
        else:
            yield from self.next_query(site)

    def results(self, response: Response, site: Site, word: str) -> Outputs:
        """Take the records of a page of results; go on with the next page or the next query."""
        text = response.text if isinstance(response, TextResponse) else ""
        hits = [hit for hit in site.reader.read(text, response.url) if hit.url not in site.query]
        site.failures = 0
        site.pages += 1
        site.query |= {hit.url: hit for hit in hits}
        yield from self._deliver(site, word, [hit for hit in hits if hit.url not in site.known])
        following = site.reader.next_page(text, response.url) if hits else None
        if following and site.pages < self.config.pages and not self._done:
            yield self._aside(following, self.results, site=site, word=word)
        else:
            yield from self._end_query(site, word)

    def next_query(self, site: Site) -> Outputs:
        """Ask what promises most, or leave the site."""
        word = None if self._done else site.surfacing.next()
        if word is None:
            self._leave(site, site.surfacing.ended or "page_limit")
            return
        self.queries += 1
        self._count("queries")
        site.query, site.pages = {}, 0
        yield self._ask(site, word, self.results)

    def failed(self, failure: Failure) -> Outputs:
        """Leave a site whose robots.txt forbids it or that fails again and again."""
        arguments = failure.request.cb_kwargs  # type: ignore[attr-defined]
        site, reason = arguments.get("site"), _reason(failure)
        if site is None:
            self.refuse(failure.request.url, f"does not tell how it is searched: {reason}")  # type: ignore[attr-defined]
            return
        if reason == "http_404":  # so do some sites answer what nobody has
            yield from (self._probed if arguments["word"] in site.probes else self._end_query)(
                site, arguments["word"]
            )
            return
        site.failures += 1
        self._count(f"failures/{reason}")
        if reason == "robots":
            logger.warning("%s: robots.txt forbids its search box", site.host)
        if reason == "robots" or site.failures == MOST_FAILURES or arguments["word"] in site.probes:
            self._leave(site, reason)
        else:
            yield from self._end_query(site, arguments["word"])

    def _end_query(self, site: Site, word: str) -> Outputs:
        new = [hit for url, hit in site.query.items() if url not in site.known]
        again = [site.known[url] for url in site.query if url in site.known]
        site.known |= {hit.url: number for number, hit in enumerate(new, len(site.known))}
        site.surfacing.book(word, [hit.tokens for hit in new], again)
        self._count("empty_queries", not site.query)
        logger.info(
            "%s: query %d, %r, returned %d records, %d of them new, %d in all",
            *(site.host, len(site.surfacing.trials), word, len(site.query), len(new)),
            len(site.known),
        )
        yield from self.next_query(site)

    def _deliver(self, site: Site, word: str, hits: list[Hit]) -> Outputs:
        """Put records into the frontier, or yield their links."""
        self._count("records", len(hits))
        if self.config.follow and hits:
            self._learner.add_outlinks(
                site.row, [hit.url for hit in hits], [hit.anchor for hit in hits]
            )
        elif hits:
            now = datetime.now(UTC).isoformat()
            for hit in hits:
                yield FoundRecord(hit.url, hit.anchor, word, site.host, now)

    def _stop_if_in_vain(self) -> None:
        if not (self.unopened or self.asking or self.queries or self._done):
            self._learner.stop(NO_SEARCH)

    def _leave(self, site: Site, reason: str) -> None:
        self.asking -= 1
        self._count(f"ended/{reason}")
        logger.info(
            "%s: left after %d queries and %d records (%s)",
            *(site.host, len(site.surfacing.trials), len(site.known), reason),
        )
        self._stop_if_in_vain()

    def _keywords(self) -> list[str]:
        """Return the words to start with: the single words of the topic."""
        words = [word for keyword in self._learner.judging.keywords for word in tokenise(keyword)]
        return [word for word in words if word not in STOP_WORDS]

    def _ask(self, site: Site, word: str, callback: Callable[..., Any]) -> Request:
        interface = site.interface
        request = self._aside(interface.url(word), callback, site=site, word=word)
        if interface.method != POST:
            return request
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return request.replace(method=POST, body=interface.payload(word), headers=kind)

    def _aside(self, url: str, callback: Callable[..., Any], **arguments: Any) -> Request:
        return Request(
            url,
            callback=callback,
            errback=self.failed,
            cb_kwargs=arguments,
            meta={ASIDE: True},
            dont_filter=True,
        )

    def _count(self, name: str, by: int = 1) -> None:
        self.crawler.stats.inc_value(f"tres/surface/{name}", by)

    @property
    def _learner(self) -> Learner:
        learner = self.crawler.get_extension(Learner)
        assert learner is not None  # the scheduler has asked for it
        return learner

    @property
    def _done(self) -> bool:
        return self._learner.crawl.finished


def _reason(failure: Failure) -> str:
    error = failure.value
    if isinstance(error, HttpError):
        return f"http_{error.response.status}"
    if isinstance(error, IgnoreRequest) and "robots.txt" in str(error):
        return "robots"
    return type(error).__name__
