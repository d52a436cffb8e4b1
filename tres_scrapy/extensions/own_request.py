"""A spider's own requests that wait in the frontier, and which of them are duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scrapy import Request

from tres_scrapy.downloader.request import SAMPLE
from tres_scrapy.extensions.dupefilter import OwnDupeFilter
from tres_scrapy.extensions.job import Job
from tres_scrapy.frontier.host import origin_of
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.url.canonical import canonicalise

SECRETS: Final = ("Authorization", "Cookie")  # headers that another site must not see


class OwnRequests:
    """Holds requests by row until their sample is booked or dropped."""

    def __init__(
        self, store: SampleStore, job: Job | None, dupefilter: OwnDupeFilter | None
    ) -> None:
        self._store = store
        self._job = job
        self.dupefilter = dupefilter
        self._requests: dict[int, Request] = {}
        store.on_drop = self._forget

    def __contains__(self, row: object) -> bool:
        return row in self._requests

    def recover(self, requests: Mapping[int, Request]) -> None:
        """Restore the requests that an interrupted crawl saved."""
        for row, request in requests.items():
            request.meta[SAMPLE] = row
        self._requests |= requests

    def keep(self, requests: Mapping[int, Request]) -> None:
        """Use these requests, by row, to fetch their samples."""
        if self._job is not None:
            self._job.keep(requests)
        self.recover(requests)

    def keep_of(self, rows: Iterable[int], by_url: Mapping[str, Request]) -> None:
        """Use the requests in `by_url` to fetch the samples of outlinks."""
        if by_url:
            self.keep({row: by_url[self._store.url(row)] for row in rows})

    def of(self, row: int) -> Request:
        """Return the request of a row, or a plain one if the spider gave none."""
        request, url = self._requests.get(row), self._store.url(row)
        if request is None:
            return Request(url)
        first = canonicalise(request.url)
        if first == url:
            return request
        # It was redirected, then its host failed or the crawl was killed.
        moved = request.replace(url=url, cookies=None)
        if first is None or origin_of(first) != origin_of(url):
            for name in SECRETS:
                moved.headers.pop(name, None)
        return moved

    def done(self, row: int) -> None:
        """Remove the request of a row that is booked."""
        self._requests.pop(row, None)

    def _forget(self, rows: Rows) -> None:
        gone = [row for row in rows.tolist() if self._requests.pop(row, None) is not None]
        if gone and self._job is not None:
            self._job.forget(gone)

    def repeats(self, url: str, request: Request) -> bool:
        """Return whether the project's own filter drops a request for a URL new to the frontier."""
        if self.dupefilter is None or self._store.knows(url):
            return False
        return self.dupefilter.drops(request)

    def is_link(self, url: str, request: Request) -> bool:
        """Return whether a request that is not a start request has the URL of a sample."""
        is_start = request.dont_filter or request.meta.get("is_start_request")
        return not is_start and self._store.knows(url)
