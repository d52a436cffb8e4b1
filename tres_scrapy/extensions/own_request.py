"""The requests of a spider's own that wait in the frontier, and which of them are repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from scrapy import Request

from tres_scrapy.downloader.request import SAMPLE
from tres_scrapy.extensions.dupefilter import OwnDupeFilter
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import SampleStore


class RequestKeeper(Protocol):
    """What writes requests down, so that they outlive the process."""

    def keep(self, wanted: Mapping[int, Request]) -> None:
        """Write down requests by row."""


class OwnRequests:
    """Holds requests by the row of their sample until that is fetched or dropped."""

    def __init__(
        self, store: SampleStore, keeper: RequestKeeper | None, dupefilter: OwnDupeFilter | None
    ) -> None:
        self._store = store
        self._keeper = keeper
        self.dupefilter = dupefilter
        self._requests: dict[int, Request] = {}
        store.on_drop = self._forget

    def __contains__(self, row: object) -> bool:
        return row in self._requests

    def __iter__(self) -> Iterator[int]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def recover(self, requests: Mapping[int, Request]) -> None:
        """Take in the requests that an interrupted crawl had written down."""
        for row, request in requests.items():
            request.meta[SAMPLE] = row
        self._requests |= requests

    def keep(self, requests: Mapping[int, Request]) -> None:
        """Let samples be fetched by these requests, by row."""
        if self._keeper is not None:
            self._keeper.keep(requests)
        self.recover(requests)

    def keep_of(self, rows: Iterable[int], by_url: Mapping[str, Request]) -> None:
        """Let the samples of outlinks be fetched by the requests for their URLs."""
        if by_url:
            self.keep({row: by_url[self._store.url(row)] for row in rows})

    def take(self, row: int) -> Request:
        """Remove and return the request of a row; a plain one if the spider had none."""
        return self._requests.pop(row, None) or Request(self._store.url(row))

    def _forget(self, rows: Rows) -> None:
        for row in rows.tolist():
            self._requests.pop(row, None)

    def repeats(self, url: str, request: Request) -> bool:
        """Return whether the project's own filter drops a request for a URL that is new here."""
        if self.dupefilter is None or self._store.knows(url):
            return False
        return self.dupefilter.drops(request)

    def is_link(self, url: str, request: Request) -> bool:
        """Return whether a request repeats a sample's URL on a page that is no sample."""
        is_start = request.dont_filter or request.meta.get("is_start_request")
        return not is_start and self._store.knows(url)
