"""The spider `surface`: it queries the search boxes of sites and crawls the records."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse
from twisted.python.failure import Failure

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import typed
from tres_scrapy.crawl.failure import ROBOTS
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.downloader.request import ASIDE, LEASE, VISIT
from tres_scrapy.spiders.tres import TresSpider
from tres_scrapy.surface.result_page import Hit
from tres_scrapy.surface.search_box import (
    POST,
    Interface,
    find_description,
    find_interface,
    read_description,
)
from tres_scrapy.surface.settings import SurfaceOptions
from tres_scrapy.surface.surfacing import SearchedSite, Surfacing, single_words
from tres_scrapy.topic.pack import Judged

RESULT_PAGES: Final = 10  # read of a query at most
NO_SEARCH: Final = "no_search"  # the finish reason if no seed has a usable search box

logger = logging.getLogger(__name__)
Outputs = Iterator["Request | FoundRecord"]


@dataclass(slots=True)
class FoundRecord:
    """A record returned by a search box but not fetched: its URL and the text of its link.

    `query` is the first query that returned it, `site` the host of the search box.
    """

    url: str
    anchor: str
    query: str
    site: str
    found_at: str


class SurfaceSpider(TresSpider):
    """Asks the search box of each seed's site and adds the records it returns to the frontier.

    A site gets one query at a time. Each argument `-a name=value` is the setting TRES_NAME.
    """

    name = "surface"
    options = (Config, SurfaceOptions)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        if crawler.settings.get("JOBDIR"):
            raise ConfigError(
                "JOBDIR: a surface crawl cannot be resumed. Leave JOBDIR out, or list the "
                f"records with {typed('surface_follow', False)} -O records.jsonl and crawl them by "
                "`tres`"
            )
        spider.config = SurfaceOptions.of(crawler.settings)
        spider.follow_every_link = spider.config.follow
        spider.random_seed = Config.of(crawler.settings).random_seed
        spider.hosts, spider.unopened, spider.asking, spider.queries = set(), 0, 0, 0
        return spider

    config: SurfaceOptions
    random_seed: int
    hosts: set[str]  # that were checked for a search box
    unopened: int  # seeds without a search box so far
    asking: int  # sites with open queries
    queries: int

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            self.unopened += 1
            yield request

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        async for item in super().parse(response, **kwargs):
            yield item
        page: Judged | None = response.meta.get(VISIT)
        if page is None or page.depth:
            return
        host = urlsplit(response.url).netloc
        if host in self.hosts:
            self.unopened -= 1
            return
        self.hosts.add(host)
        if not isinstance(response, TextResponse):
            self.refuse(response.url, "is a document without a search box")
            return
        for output in self.look(response, row=response.meta[LEASE]):
            yield output

    def look(self, response: Response, row: int) -> Outputs:
        """Look for the search box on a page, in its OpenSearch file and on the home page."""
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
            self.refuse(response.url, "describes no GET search of web pages (OpenSearch)")

    def open(self, interface: Interface, url: str, row: int) -> Outputs:
        """Begin to ask a search box."""
        if interface.method == POST and not self.config.post:
            allowed = typed("surface_post", True)
            self.refuse(url, f"is searched by POST only: {allowed} allows it")
            return
        self.unopened -= 1
        self.asking += 1
        config = self.config
        surfacing = Surfacing(
            single_words(self.session.judge.keywords),
            budget=config.queries,
            min_yield=config.min_yield,
        )
        site = SearchedSite(row, urlsplit(url).netloc, interface, surfacing, self.random_seed)
        logger.info("%s: asking %s (found by %s)", site.host, interface.action, interface.sign)
        self._count("sites")
        yield from self.next_query(site)

    def refuse(self, url: str, why: str) -> None:
        """Log why a site cannot be asked; end the crawl if no site can."""
        logger.warning("%s %s", urlsplit(url).netloc, why)
        self._count("refused")
        self.unopened -= 1
        self._stop_if_in_vain()

    def next_query(self, site: SearchedSite) -> Outputs:
        """Ask the next probe or keyword, or leave the site."""
        if not site.next_query(stopped=self._done):
            self._leave(site, site.surfacing.ended or "page_limit")
        elif site.probing:
            yield self._ask(site, self.probe)
        else:
            self.queries += 1
            self._count("queries")
            yield self._ask(site, self.results)

    def probe(self, response: Response, site: SearchedSite) -> Outputs:
        """Learn from the answer to a probe."""
        if isinstance(response, TextResponse):
            site.learn_empty(response.text, response.url)
        yield from self.next_query(site)

    def results(self, response: Response, site: SearchedSite) -> Outputs:
        """Take the records of a page of results; ask for the next page or the next query."""
        text = response.text if isinstance(response, TextResponse) else ""
        hits, following = site.take(text, response.url)
        yield from self._deliver(site, hits)
        if following and site.pages < RESULT_PAGES and not self._done:
            yield self._aside(following, self.results, site=site)
        else:
            yield from self._end_query(site)

    def failed(self, failure: Failure) -> Outputs:
        """Leave a site if robots.txt forbids its search box or it keeps failing."""
        request: Request = failure.request  # type: ignore[attr-defined]
        site, reason = request.cb_kwargs.get("site"), failure_of(failure.value).kind
        if site is None:
            self.refuse(request.url, f"cannot be checked for a search box: {reason}")
        elif reason == "http_404":  # some sites answer so if nothing was found
            yield from self.next_query(site) if site.probing else self._end_query(site)
        else:
            self._count(f"failures/{reason}")
            if reason == ROBOTS.kind:
                logger.warning("%s: robots.txt forbids its search box", site.host)
            if site.fail(reason):
                self._leave(site, reason)
            else:
                yield from self._end_query(site)

    def _end_query(self, site: SearchedSite) -> Outputs:
        new = site.end_query()
        self._count("empty_queries", not site.returned)
        logger.info(
            "%s: query %d, %r, returned %d records, %d of them new, %d in all",
            site.host,
            len(site.surfacing.trials),
            site.word,
            len(site.returned),
            new,
            site.records,
        )
        yield from self.next_query(site)

    def _deliver(self, site: SearchedSite, hits: list[Hit]) -> Outputs:
        """Add records to the frontier, or yield their links."""
        self._count("records", len(hits))
        if self.config.follow and hits:
            self.session.steps.add_answers(
                site.row, [hit.url for hit in hits], [hit.anchor for hit in hits]
            )
        elif hits:
            now = datetime.now(UTC).isoformat()
            for hit in hits:
                yield FoundRecord(hit.url, hit.anchor, site.word, site.host, now)

    def _stop_if_in_vain(self) -> None:
        if not (self.unopened or self.asking or self.queries or self._done):
            self.session.stop(NO_SEARCH)

    def _leave(self, site: SearchedSite, reason: str) -> None:
        self.asking -= 1
        self._count(f"ended/{reason}")
        logger.info(
            "%s: left after %d queries and %d records (%s)",
            site.host,
            len(site.surfacing.trials),
            site.records,
            reason,
        )
        self._stop_if_in_vain()

    def _ask(self, site: SearchedSite, callback: Callable[..., Any]) -> Request:
        interface = site.interface
        request = self._aside(interface.url(site.word), callback, site=site)
        if interface.method != POST:
            return request
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return request.replace(method=POST, body=interface.payload(site.word), headers=kind)

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
    def _done(self) -> bool:
        return self.session.crawl.finished
