"""The spider middleware that judges pages and gives their outlinks state-action features."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.spidermiddlewares.httperror import HttpError

from tres_scrapy.config.config import Config
from tres_scrapy.config.download import NEVER
from tres_scrapy.crawl.failure import (
    JUDGE_ENDED,
    JUDGE_ERROR,
    NOT_HTML,
    SLOW_PAGE,
    Failure,
)
from tres_scrapy.downloader.engine import CrawlEndsError, before_end, is_closing
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.downloader.request import LEASE, OWN, SAMPLE, START, VISIT
from tres_scrapy.extensions.ending import RESERVED, SCRIPTED
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.admission import NO_ACTIONS, NO_CUES, NO_LINKS, Outlinks
from tres_scrapy.frontier.store import NO_PARENT
from tres_scrapy.links.code import ABSENT, RaggedArray
from tres_scrapy.middlewares.page_rights import PageRights
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.language import UTF_8
from tres_scrapy.page.robots import US, product_token
from tres_scrapy.page.text import Link
from tres_scrapy.topic.judge import Source, finds_little
from tres_scrapy.topic.judge_process import PageError, WorkerError
from tres_scrapy.topic.pack import Judged

OK: Final = 200  # the status of a page

logger = logging.getLogger(__name__)


class RewardMiddleware:
    """Judges each page of a frontier sample and books it before its outlinks are scheduled.

    If the spider has a true `follow_every_link`, all links of the page enter the frontier as one
    batch. Otherwise the requests that its callback yields do.
    """

    def __init__(
        self,
        session: CrawlSession,
        *,
        renders: bool = False,
        documents: bool = True,
        name: str = US,
        rights: PageRights | None = None,
        ends: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ends = ends
        self._session = session
        self._documents = documents
        self._name = name  # by which pages may address us
        self._rights = rights or PageRights(name)
        self._renders = renders
        self._turn = asyncio.Lock()
        self._follows_all = session.follows_all

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings, config = crawler.settings, Config.of(crawler.settings)
        agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"] or ""
        name = product_token(agent)
        return cls(
            CrawlSession.of(crawler),
            renders=config.render.mode != NEVER,
            documents=config.reading.documents,
            name=name,
            rights=PageRights.from_crawler(crawler, name),
            ends=lambda: is_closing(crawler.engine),
        )

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Export again the items that an interrupted crawl may not have exported."""
        if self._session.job is not None:
            for item in self._session.job.unexported:
                if self._ends():
                    return  # JOBDIR keeps it
                yield item
        async for output in start:
            yield output

    def process_spider_input(self, response: Response) -> None:
        """Give the request of a spider of the project's its own errback back."""
        if self._follows_all:
            return
        row = response.meta.get(LEASE)
        if row is not None and self._session.crawl.is_leased(row):
            self._session.requests.answered.add(row)
            assert response.request is not None
            response.request.errback = self._session.requests.of(row).errback
        else:
            response.meta[VISIT] = None  # callbacks may ask for it

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        row = response.meta.get(LEASE)
        if row is None or not self._session.crawl.is_leased(row):
            self._note_own(response)
            async for output in result:
                if isinstance(output, Request):
                    for key in (OWN, VISIT, START):
                        output.meta.pop(key, None)  # copied from the meta of the answer
                yield output
            return
        page = await self._page(row, response)
        if page is None:
            return
        response.meta[VISIT] = None if isinstance(page, Failure) else page
        outputs, raised = await _gathered(result)
        async with self._turn:
            booked = self._book(row, page, response, outputs)
            await asyncio.sleep(0)  # let the event loop run between pages that were judged together
        for output in booked:
            yield output
        if raised is not None:
            raise raised

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        row = response.meta.get(LEASE)
        if row is not None and VISIT not in response.meta:  # else it is booked with its links
            self._session.steps.book(row, failure_of(exception))

    async def _page(self, row: int, response: Response) -> Judged | Failure | None:
        """Return the judged page of a leased row, its failure, or None if it cannot be judged."""
        if response.status != OK:
            return failure_of(HttpError(response))
        source = source_of(response, documents=self._documents, crawler=self._name)
        if source is None:
            return NOT_HTML
        if response.request is not None and response.request.method != "GET":
            source = source._replace(url=self._session.crawl.store.url(row))  # not the renderer's
        page = await self._judge(row, source)
        if isinstance(page, Judged) and page.needs_scripts and not self._renders:
            self._session.crawl.count(SCRIPTED)
        if isinstance(page, Judged):
            page = await self._rights.added(page, response)
            for use in page.reserved if page.relevant else ():
                self._session.crawl.count(f"{RESERVED}{use}")
        return page

    async def _judge(self, row: int, source: Source) -> Judged | Failure | None:
        """Judge a page outside the reactor's thread; return it, or why that failed.

        Return None if the judging process is lost, or if the crawl ends: leased rows stay leased.
        """
        session, crawl, store = self._session, self._session.crawl, self._session.crawl.store
        waiting, again = crawl.revision.take(), crawl.revision.asks()
        links = tuple((store.url(each), store.anchors[each]) for each in waiting.tolist())
        little = finds_little(crawl.pages, crawl.harvest_rate)
        source = source._replace(
            is_seed=store.is_seed(row), waiting=links, again=again, little=little
        )
        try:
            verdict = asyncio.wrap_future(session.judge.submit(source))
            judged = await before_end(self._ends, verdict)
        except CrawlEndsError:
            return None
        except WorkerError as error:
            session.lose_judge(error)
            return None
        except Exception as error:
            if links or again:
                crawl.revision.give_back()
            logger.error("Could not judge %s: %s: %s", source.url, type(error).__name__, error)
            if not isinstance(error, PageError) or error.page is None:
                return JUDGE_ERROR
            return SLOW_PAGE if error.is_slow else JUDGE_ENDED
        for note in judged.notes:
            logger.info("Topic: %s", note)
        return crawl.decide(row, judged, waiting)

    def _book(
        self, row: int, page: Judged | Failure, response: Response, outputs: list[Any]
    ) -> list[Any]:
        """Book the page with its outlinks and its items; return the outputs to pass on.

        The outlinks are the links of the page or the spider's own requests.
        """
        if not self._follows_all:
            return self._book_own(row, page, response, outputs)
        links = NO_LINKS if isinstance(page, Failure) else outlinks_of(page)
        booked = self._session.steps.book(row, page, links, items=_items_of(outputs))
        return outputs if booked else []

    def _book_own(
        self, row: int, page: Judged | Failure, response: Response, outputs: list[Any]
    ) -> list[Any]:
        """Book an answer to a spider of the project's; return the outputs to pass on.

        An answer from which the spider makes items or requests is no failure, whatever it is. If it
        is a text that is not HTML, such as JSON, it was the call of an API. What an errback asks
        for instead of an error becomes a seed, which is fetched first.
        """
        items = _items_of(outputs)
        requests = [output for output in outputs if isinstance(output, Request)]
        request = self._session.requests.of(row)
        is_data = isinstance(page, Failure) and bool(items or requests)
        is_call = is_data and page is NOT_HTML and isinstance(response, TextResponse)
        if is_call or isinstance(page, Judged):
            calls = self._session.requests.note_answer(request, is_page=not is_call)
            self._session.crawl.bring_forward(calls)
        is_fallback = response.status != OK and request.errback is not None
        _clean(requests)
        links = {} if is_fallback else self._links_of(requests)
        outlinks = NO_LINKS
        if is_data or isinstance(page, Judged):
            outlinks = Outlinks(list(links), *self._described(page, list(links)))
        booked = self._session.steps.book(row, None if is_data else page, outlinks, links, items)
        for each in links.values():
            each.meta.setdefault(SAMPLE, NO_PARENT)  # a rule keeps its URL out of the frontier
        return outputs if booked else []

    def _note_own(self, response: Response) -> None:
        """Note that an answer to a request that is not a sample is a page after all."""
        request = response.request
        if request is not None and OWN in request.meta and isinstance(response, HtmlResponse):
            self._session.requests.note_answer(request, is_page=True)

    def _described(
        self, page: Judged | Failure, urls: list[str]
    ) -> tuple[list[str], NDArray[np.float32], RaggedArray]:
        """Return anchors, features 4 to 6 and cues of URLs.

        A URL not on the page has the anchor "" and no cues.
        """
        page_links: Sequence[Link] = ()
        known, cues = NO_ACTIONS, NO_CUES
        if isinstance(page, Judged):
            page_links, known, cues = page.page.links, page.actions, page.cues
        places = {link.url: i for i, link in enumerate(page_links)}
        absent = [url for url in urls if url not in places]
        if absent:
            known = np.concatenate(
                [known, self._session.judge.action_features(absent, [""] * len(absent))]
            )
            places |= {url: len(page_links) + i for i, url in enumerate(absent)}
        anchors = [
            page_links[i].anchor if (i := places[url]) < len(page_links) else "" for url in urls
        ]
        found = [places[url] for url in urls]
        said = cues.take([i if i < len(page_links) else ABSENT for i in found])
        return anchors, known[found], said

    def _links_of(self, requests: list[Request]) -> dict[str, Request]:
        """Return the requests that can be samples, by URL.

        A URL that waits already becomes a sample once more, for another page links to it; of the
        requests for it, the scheduler drops all but the first, as Scrapy does.
        """
        own = self._session.requests
        links: dict[str, Request] = {}
        for request in requests:
            url = own.url_of_sample(request)
            if url is None:
                links |= own.copy_waiting(request)
            else:
                links.setdefault(url, request)
        return links


def outlinks_of(judged: Judged) -> Outlinks:
    """Return the links of a page."""
    links = judged.page.links
    urls, anchors = [link.url for link in links], [link.anchor for link in links]
    return Outlinks(urls, anchors, judged.actions, judged.cues)


def _items_of(outputs: list[Any]) -> list[Any]:
    return [each for each in outputs if not (each is None or isinstance(each, Request))]


def _clean(requests: list[Request]) -> None:
    """Remove keys that were copied from the request of the page."""
    for request in requests:
        for key in (SAMPLE, LEASE, VISIT, OWN, START):
            request.meta.pop(key, None)


def source_of(response: Response, *, documents: bool = True, crawler: str = US) -> Source | None:
    """Return what the judge reads of a response, None if it is no HTML and no PDF.

    `crawler` is the name by which the page may address us.
    """
    encoding = UTF_8
    if isinstance(response, HtmlResponse):
        encoding = response.encoding
    elif not (documents and is_pdf(response.body)):
        return None
    robots = tuple(each.decode("latin-1") for each in response.headers.getlist("X-Robots-Tag"))
    language = (response.headers.get("Content-Language") or b"").decode("latin-1")
    return Source(
        response.body,
        response.url,
        encoding,
        robots,
        crawler,
        language="" if "," in language else language,  # several languages say nothing sure
    )


async def _gathered(result: AsyncIterator[Any]) -> tuple[list[Any], Exception | None]:
    """Return all that a callback yields, and the exception that ends it, if any.

    A page is booked in one step with its outputs: a killed crawl has all of them or none.
    """
    outputs: list[Any] = []
    try:
        async for output in result:
            outputs.append(output)  # noqa: PERF401 - what comes before an error is kept
    except Exception as error:
        return outputs, error
    return outputs, None
