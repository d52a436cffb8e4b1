"""The spider middleware that judges pages and gives their outlinks state-action features."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.spidermiddlewares.httperror import HttpError

from tres_scrapy.config.config import Config
from tres_scrapy.config.download import NEVER
from tres_scrapy.crawl.failure import (
    BAD_DOCUMENT,
    JUDGE_ENDED,
    JUDGE_ERROR,
    NOT_HTML,
    Failure,
)
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.downloader.request import LEASE, OWN, SAMPLE, START, VISIT, follows_links
from tres_scrapy.extensions.ending import SCRIPTED
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.admission import NO_ACTIONS, NO_CUES, NO_LINKS, Outlinks
from tres_scrapy.frontier.store import NO_PARENT
from tres_scrapy.links.code import ABSENT, RaggedArray
from tres_scrapy.page.encoding import UTF_8
from tres_scrapy.page.pdf_page import is_pdf
from tres_scrapy.page.robots import US, product_token
from tres_scrapy.page.text import Link
from tres_scrapy.topic.judge import Source
from tres_scrapy.topic.judge_process import PageError, WorkerError

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
        spider: Spider,
        *,
        renders: bool = False,
        documents: bool = True,
        name: str = US,
    ) -> None:
        self._session = session
        self._documents = documents
        self._name = name  # by which pages may address us
        self._renders = renders
        self._turn = asyncio.Lock()
        self._follows_all = follows_links(spider)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        assert crawler.spider is not None
        settings, config = crawler.settings, Config.of(crawler.settings)
        agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"] or ""
        return cls(
            CrawlSession.of(crawler),
            crawler.spider,
            renders=config.render.mode != NEVER,
            documents=config.reading.documents,
            name=product_token(agent),
        )

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Export again the items that an interrupted crawl may not have exported."""
        if self._session.job is not None:
            for item in self._session.job.unexported:
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
        visit = await self._visit(row, response)
        if visit is None:
            return
        response.meta[VISIT] = None if isinstance(visit, Failure) else visit
        outputs, raised = await _gathered(result)
        async with self._turn:
            booked = self._book(row, visit, response, outputs)
            await asyncio.sleep(0)  # let the event loop run between pages that were judged together
        for output in booked:
            yield output
        if raised is not None:
            raise raised

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        row = response.meta.get(LEASE)
        if row is not None and VISIT not in response.meta:  # else it is booked with its links
            self._session.book_failure(row, failure_of(exception))

    async def _visit(self, row: int, response: Response) -> Visit | Failure | None:
        """Return the judged page of a leased row, its failure, or None if it cannot be judged."""
        if response.status != OK:
            return failure_of(HttpError(response))
        source = source_of(response, documents=self._documents, crawler=self._name)
        if source is None:
            return NOT_HTML
        if response.request is not None and response.request.method != "GET":
            source = source._replace(url=self._session.crawl.store.url(row))  # not the renderer's
        visit = await self._judge(row, source)
        if isinstance(visit, Visit) and visit.judged.needs_scripts and not self._renders:
            self._session.crawl.counts[SCRIPTED] += 1
        return visit

    async def _judge(self, row: int, source: Source) -> Visit | Failure | None:
        """Judge a page outside the reactor's thread; return its Visit, or why that failed.

        Return None if the judging process is lost: the crawl stops and leased rows stay leased.
        """
        session, crawl, store = self._session, self._session.crawl, self._session.crawl.store
        fetched_at = datetime.now(UTC)
        waiting = crawl.revision.take()
        links = tuple((store.url(each), store.anchors[each]) for each in waiting.tolist())
        source = source._replace(is_seed=store.is_seed(row), waiting=links)
        try:
            judged = await asyncio.wrap_future(session.judge.submit(source))
        except WorkerError as error:
            session.lose_judge(error)
            return None
        except Exception as error:
            logger.error("Could not judge %s: %s: %s", source.url, type(error).__name__, error)
            ended = isinstance(error, PageError) and error.page is not None
            return JUDGE_ENDED if ended else JUDGE_ERROR
        crawl.revision.note(judged.model, described=judged.actions is not None)
        if judged.actions is not None:
            crawl.revise(waiting, judged.actions)
        if judged.is_broken:
            return BAD_DOCUMENT
        for note in judged.notes:
            logger.info("Topic: %s", note)
        lease, scope = crawl.lease_of(row), store.admission.scope
        assert lease is not None  # the caller books it after this
        store.names.learn(judged.names)  # of any page: each text is sent once
        verdict = session.verdicts.of(
            judged.judgement.probability,
            judged.mark,
            is_missing=judged.is_missing,
            is_hidden=not judged.page.may_be_kept,
            is_query=lease.decision.is_query,
            is_foreign=scope is not None and not scope.reads(judged.page.language),
        )
        if isinstance(verdict, Failure):
            return verdict
        depth, path, anchor = store.depth(row), store.trail(row), store.anchors[row]
        return Visit(row, depth, path, anchor, lease.decision, judged, verdict, fetched_at)

    def _book(
        self, row: int, visit: Visit | Failure, response: Response, outputs: list[Any]
    ) -> list[Any]:
        """Book the page with its outlinks and its items; return the outputs to pass on.

        The outlinks are the links of the page or the spider's own requests.
        """
        if not self._follows_all:
            return self._book_own(row, visit, response, outputs)
        items = _items_of(outputs)
        outlinks = NO_LINKS
        if isinstance(visit, Visit):
            found = visit.judged.page.links
            urls, anchors = [link.url for link in found], [link.anchor for link in found]
            outlinks = Outlinks(urls, anchors, visit.judged.judgement.actions, visit.judged.cues)
        if isinstance(visit, Failure):
            booked = self._session.book_failure(row, visit)
        else:
            booked = self._session.book_page(visit, outlinks, None, items)
        return outputs if booked else []

    def _book_own(
        self, row: int, visit: Visit | Failure, response: Response, outputs: list[Any]
    ) -> list[Any]:
        """Book an answer to a spider of the project's; return the outputs to pass on.

        An answer from which the spider makes items or requests is no failure, whatever it is. If it
        is a text that is not HTML, such as JSON, it was the call of an API. What an errback asks
        for instead of an error becomes a seed, which is fetched first.
        """
        items = _items_of(outputs)
        requests = [output for output in outputs if isinstance(output, Request)]
        request = self._session.requests.of(row)
        is_data = isinstance(visit, Failure) and bool(items or requests)
        is_call = is_data and visit is NOT_HTML and isinstance(response, TextResponse)
        if is_call or isinstance(visit, Visit):
            self._session.requests.note_answer(request, is_page=not is_call)
        is_fallback = response.status != OK and request.errback is not None
        _clean(requests)
        links = {} if is_fallback else self._links_of(requests)
        outlinks = Outlinks(list(links), *self._described(visit, list(links)))
        if isinstance(visit, Visit):
            booked = self._session.book_page(visit, outlinks, links, items)
        elif is_data:
            booked = self._session.book_data(row, outlinks, links, items)
        else:
            booked = self._session.book_failure(row, visit)
        for each in links.values():
            each.meta.setdefault(SAMPLE, NO_PARENT)  # a rule keeps its URL out of the frontier
        return outputs if booked else []

    def _note_own(self, response: Response) -> None:
        """Note that an answer to a request that is not a sample is a page after all."""
        request = response.request
        if request is not None and OWN in request.meta and isinstance(response, HtmlResponse):
            self._session.requests.note_answer(request, is_page=True)

    def _described(
        self, visit: Visit | Failure, urls: list[str]
    ) -> tuple[list[str], NDArray[np.float32], RaggedArray]:
        """Return anchors, features 4 to 6 and cues of URLs.

        A URL not on the page has the anchor "" and no cues.
        """
        page_links: Sequence[Link] = ()
        known, cues = NO_ACTIONS, NO_CUES
        if isinstance(visit, Visit):
            judged = visit.judged
            page_links, known, cues = judged.page.links, judged.judgement.actions, judged.cues
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
