"""A spider's own requests: which of them are samples of the frontier, and which are Scrapy's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.downloader.request import ASIDE, OWN, SAMPLE
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.own_queue import OwnDupeFilter
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.host import origin_of
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.url.canonical import canonicalise

SECRETS: Final = ("Authorization", "Cookie")  # headers that another site must not see


_Kind = tuple[str, str]  # of a request: the name of its callback, and scheme, host and port


class OwnRequests:
    """Holds requests by row until their sample is booked or dropped.

    A sample is a plain GET whose answer the crawl may judge. All other requests are Scrapy's:
    those with another method or a body, those that set `dont_filter`, and calls of an API, which
    are known by the last answer to the same callback, from the same host if that has answered. So
    the first request of each callback is fetched at once.
    """

    def __init__(
        self,
        store: SampleStore,
        job: Job | None,
        dupefilter: OwnDupeFilter | None,
        *,
        follows_all: bool = True,
    ) -> None:
        self._store = store
        self._job = job
        self.dupefilter = dupefilter
        self._requests: dict[int, Request] = {}
        self._first: dict[str, Request] = {}  # by URL, the first of those that wait for it
        self.follows_all = follows_all
        self.seeds: dict[str, int] = {}  # rows of an interrupted crawl's seeds not yet fetched
        self.answered: set[int] = set()  # leased rows whose answer the spider has got
        self._before: set[str] = set()  # URLs of the earlier runs of this crawl
        self._calls: dict[_Kind, bool] = {}  # whether the last answer was data that the spider used
        self._tried: set[str] = set()  # callbacks that have a request
        store.on_drop = self._forget

    def note_past(self) -> None:
        """Note what an interrupted crawl knew, once it is recovered."""
        if self.dupefilter is not None:
            self.dupefilter.remember(self._store.closure.urls)
        self.seeds = {self._store.url(row): row for row in self._store.seeds().tolist()}
        if not self.follows_all:
            self._before = set(self._store.closure.urls)

    def __contains__(self, row: object) -> bool:
        return row in self._requests

    def recover(self, requests: Mapping[int, Request]) -> None:
        """Restore the requests that an interrupted crawl saved."""
        for row, request in requests.items():
            request.meta[SAMPLE] = row
            if request.priority:
                self._store.priorities[row] = request.priority
            self._first.setdefault(canonicalise(request.url) or "", request)
            self._tried.add(_kind_of(request)[0])
        self._requests |= requests

    def keep(self, requests: Mapping[int, Request]) -> None:
        """Use these requests, by row, to fetch their samples."""
        if self._job is not None:
            self._job.keep(requests)
        self.recover(requests)

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

    def note_booking(self, booking: Booking, wanted: Mapping[str, Request]) -> list[int]:
        """Remove the request of a booked row; keep those `wanted` for its outlinks, by URL.

        Return the rows of which each is the first of a callback.
        """
        row = booking.experience.row
        self._remove(row)
        self.answered.discard(row)
        if not wanted:
            return []
        kept = {each: wanted[self._store.url(each)] for each in booking.outlinks.tolist()}
        firsts = {_kind_of(request)[0]: row for row, request in reversed(kept.items())}
        new = sorted(row for name, row in firsts.items() if name not in self._tried)
        self.keep(kept)
        return new

    def refuse(self, row: int) -> None:
        """Take a sample out of the frontier: its request was refused when it was scheduled."""
        self._store.closure.close(self._store["url"][row])
        self._forget(np.array([row]))

    def _remove(self, row: int) -> bool:
        request = self._requests.pop(row, None)
        if request is None:
            return False
        self._store.priorities.pop(row, None)
        url = canonicalise(request.url) or ""
        if self._first.get(url) is request:
            del self._first[url]
        return True

    def _forget(self, rows: Rows) -> None:
        gone = [row for row in rows.tolist() if self._remove(row)]
        if gone and self._job is not None:
            self._job.forget(gone)

    def url_of_sample(self, request: Request) -> str | None:
        """Return the canonical URL of a request that can be a sample, None if it is Scrapy's."""
        url, is_apart = canonicalise(request.url), not request.meta.keys().isdisjoint((ASIDE, OWN))
        if url is None or request.method != "GET" or request.body or is_apart:
            return None
        if request.callback is NO_CALLBACK:
            return None
        if self.follows_all or url in self.seeds:
            is_again = request.dont_filter and self._store.closure.is_closed(url)
            return None if is_again else url
        if request.dont_filter and not request.meta.get("is_start_request"):
            return None
        if self._store.closure.knows(url):  # Scrapy's filter says whether it is fetched again
            return None
        name, host = _kind_of(request)
        is_call = self._calls.get((name, host), self._calls.get((name, "")))
        return None if is_call else url

    def is_done(self, request: Request) -> bool:
        """Return whether an earlier run of this crawl knew the URL of a request.

        The filter of Scrapy may not know of it: a killed crawl leaves it nothing.
        """
        return _plain_url(request) in self._before

    def note_answer(self, request: Request, *, is_page: bool) -> list[int]:
        """Note what a request brought: a page, or data that the spider has used.

        Return the rows of requests that are such calls too, as the first answer to their callback
        has shown.
        """
        name, host = _kind_of(request)
        is_new = (name, "") not in self._calls
        self._calls[name, host] = self._calls[name, ""] = not is_page
        if is_page or not is_new or self.follows_all:
            return []
        return [row for row, each in self._requests.items() if _kind_of(each)[0] == name]

    def repeats(self, url: str, request: Request) -> bool:
        """Return whether the filter of the project drops a request for a URL new to the frontier.

        Links that we follow ourselves are not asked for: the frontier knows its URLs.
        """
        if self.dupefilter is None or self._store.closure.knows(url):
            return False
        if self.follows_all and self.dupefilter.is_default:
            return False
        return self.dupefilter.drops(request)

    def copy_waiting(self, request: Request) -> dict[str, Request]:
        """Return a copy of the request that waits for the same URL, by the URL, if there is one.

        Scrapy sends the first request for a URL and drops the others; for the frontier another page
        links to it.
        """
        url = _plain_url(request)
        first = None if url is None else self._first.get(url)
        return {} if first is None or url is None else {url: first.copy()}

    def is_link(self, url: str, request: Request) -> bool:
        """Return whether a request that is not a start request has the URL of a sample."""
        is_start = request.dont_filter or request.meta.get("is_start_request")
        return not is_start and self._store.closure.knows(url)

    def drop(self, request: Request) -> bool:
        """Log and count that a request is a duplicate; return False, the answer to Scrapy."""
        if self.dupefilter is not None:
            self.dupefilter.log(request)
        return False


def _plain_url(request: Request) -> str | None:
    """Return the canonical URL of a plain GET, None of any other request."""
    is_plain = request.method == "GET" and not request.body and not request.dont_filter
    return canonicalise(request.url) if is_plain else None


def _kind_of(request: Request) -> _Kind:
    callback: Any = request.callback
    while isinstance(callback, partial):
        callback = callback.func
    return getattr(callback, "__name__", type(callback).__name__), origin_of(request.url)
