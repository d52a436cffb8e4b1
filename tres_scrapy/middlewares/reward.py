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

from tres_scrapy.extensions.learner import LEASE, SAMPLE, VISIT, Learner, Visit
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

    def process_spider_input(self, response: Response) -> None:
        row = response.meta.get(LEASE)
        if row is None:
            return
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
        if self._follows_all:
            self._book_links(visit)
            async for output in result:
                yield output
            return
        requests = []
        try:
            async for output in result:
                if isinstance(output, Request):
                    requests.append(output)
                else:
                    yield output
        finally:
            requests = self._book_requests(visit, requests)
        for request in requests:
            yield request

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

    def _book_links(self, visit: Visit) -> None:
        links = visit.judged.page.links
        self._learner.book_page(
            visit,
            [link.url for link in links],
            [link.anchor for link in links],
            visit.judged.judgement.actions,
        )

    def _book_requests(self, visit: Visit, requests: list[Request]) -> list[Request]:
        """Book the page with the requests' URLs as its outlinks and mark each with its row.

        Return the requests, of those for one URL the first only unless it may be repeated.
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
        urls = list(links)
        rows = self._learner.book_page(visit, urls, *self._described(visit, urls))
        for row in rows.tolist():
            request = links[self._learner.crawl.store.url(row)]
            request.meta[SAMPLE] = row
            self._learner.requests[row] = request
        return [*links.values(), *others]

    def _described(self, visit: Visit, urls: list[str]) -> tuple[list[str], NDArray[np.float32]]:
        """Return anchors and features 4 to 6 of URLs; one not on the page has no anchor."""
        page, judgement = visit.judged
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
