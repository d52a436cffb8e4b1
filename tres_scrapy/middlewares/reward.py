"""The spider middleware that rewards pages and gives requests their state-action features."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from tres_scrapy.extensions.learner import Learner, Outlinks, Visit
from tres_scrapy.items import RelevantPage
from tres_scrapy.request import LEASE, SAMPLE, VISIT
from tres_scrapy.topic.soft_404 import is_soft_404
from tres_scrapy.topic.text import canonicalise

logger = logging.getLogger(__name__)


class RewardMiddleware:
    """Judges each page of a frontier sample and books it before its outlinks are scheduled.

    A spider with a true `follow_every_link` has all links of the page enter the frontier as one
    batch; of any other spider, the requests that its callback yields do.
    """

    def __init__(self, learner: Learner, spider: Spider) -> None:
        self._learner = learner
        self._follows_all = bool(getattr(spider, "follow_every_link", False))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        learner = crawler.get_extension(Learner)
        if learner is None or crawler.spider is None:
            raise ValueError(f"{cls.__name__} needs the extension {Learner.__name__}: use ADDONS")
        return cls(learner, crawler.spider)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Export again the items that an interrupted crawl may not have exported."""
        if self._learner.job is not None:
            for item in list(self._learner.job.unexported.values()):
                yield item
        async for output in start:
            yield output

    def process_spider_input(self, response: Response) -> None:
        row = response.meta.get(LEASE)
        if row is None:
            return
        self._learner.note_answer()
        if response.status != 200:
            self._learner.book_failure(row, f"http_{response.status}")
        elif not isinstance(response, HtmlResponse):
            self._learner.book_failure(row, "not_html")

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        visit = await self._visit(response)
        if visit is None:
            async for output in result:
                yield output
            return
        response.meta[VISIT] = visit
        outputs, raised = await _gathered(result)
        for output in self._book(visit, outputs):
            yield output
        if raised is not None:
            raise raised

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        row = response.meta.get(LEASE)
        if row is not None and VISIT not in response.meta:  # else the page is booked with its links
            self._learner.book_failure(row, type(exception).__name__)

    async def _visit(self, response: Response) -> Visit | None:
        """Return the judged page of a leased sample; None if the response is nothing to learn."""
        row = response.meta.get(LEASE)
        if row is None or not self._learner.crawl.is_leased(row):
            return None
        assert isinstance(response, HtmlResponse)  # anything else is booked as a failure
        try:
            visit = await self._learner.visit(row, response.text, response.url)
        except Exception as error:
            logger.error("Could not judge %s: %s: %s", response, type(error).__name__, error)
            self._learner.book_failure(row, "judge_error")
            return None
        if is_soft_404(visit.judged.page):
            self._learner.book_failure(row, "soft_404")
            return None
        return visit

    def _book(self, visit: Visit, outputs: list[Any]) -> list[Any]:
        """Book the page with its outlinks and its item; return what the spider's outputs become.

        The outlinks are the links of the page or the spider's own requests.
        """
        item = next((output for output in outputs if isinstance(output, RelevantPage)), None)
        if self._follows_all:
            page, judgement, _ = visit.judged
            urls, anchors = [link.url for link in page.links], [link.anchor for link in page.links]
            outlinks = Outlinks(urls, anchors, judgement.actions)
        else:
            requests = [output for output in outputs if isinstance(output, Request)]
            items = [output for output in outputs if not isinstance(output, Request)]
            links, others = _parted(requests)
            outlinks = Outlinks(list(links), *self._described(visit, list(links)), links)
            outputs = [*items, *links.values(), *others]
        return outputs if self._learner.book_page(visit, outlinks, item) else []

    def _described(self, visit: Visit, urls: list[str]) -> tuple[list[str], NDArray[np.float32]]:
        """Return anchors and features 4 to 6 of URLs; one not on the page has no anchor."""
        page, judgement, _ = visit.judged
        places = {link.url: i for i, link in enumerate(page.links)}
        absent = [url for url in urls if url not in places]
        known = judgement.actions
        if absent:
            known = np.concatenate(
                [known, self._learner.action_features(absent, [""] * len(absent))]
            )
            places |= {url: len(page.links) + i for i, url in enumerate(absent)}
        anchors = [
            page.links[i].anchor if (i := places[url]) < len(page.links) else "" for url in urls
        ]
        return anchors, known[[places[url] for url in urls]]


async def _gathered(result: AsyncIterator[Any]) -> tuple[list[Any], Exception | None]:
    """Return all that a callback yields and what it raises in the end.

    A page is booked together with what comes of it, in one instant: a crawl that is killed has
    either all of it or nothing.
    """
    outputs: list[Any] = []
    try:
        async for output in result:
            outputs.append(output)  # noqa: PERF401 - what comes before an error is kept
    except Exception as error:
        return outputs, error
    return outputs, None


def _parted(requests: list[Request]) -> tuple[dict[str, Request], list[Request]]:
    """Return the requests that can be samples by URL, and the others.

    Of those for one URL the first only is a sample; another is dropped unless it may be repeated.
    """
    links: dict[str, Request] = {}
    others = []
    for request in requests:
        for key in (SAMPLE, LEASE, VISIT):
            request.meta.pop(key, None)  # those of the page, if its meta was passed on
        url = canonicalise(request.url)
        if url is None or request.method != "GET" or (url in links and request.dont_filter):
            others.append(request)
        else:
            links.setdefault(url, request)
    return links, others
