"""The graph of an offline web: its pages and the links that a crawl reads on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol, runtime_checkable
from urllib.parse import urljoin

import numpy as np
from comparing.library import read_answer
from numpy.typing import ArrayLike, NDArray

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.page.kind import is_soft_404
from tres_scrapy.url.canonical import canonicalise

NO_PAGE: Final = -1
HOPS: Final = 10  # most redirects of a crawl, REDIRECT_MAX_TIMES

Numbers = NDArray[np.int64]


@runtime_checkable
class FiniteWeb(Web, Hashable, Protocol):
    """A web whose pages are known."""

    @property
    def urls(self) -> Sequence[str]:
        """The URLs that have an answer; other URLs may lead to the same pages."""


class Graph:
    """Pages by number and the links between them.

    `urls` are the URLs of the pages, at the end of redirects. `links` [n, 2] holds the numbers of
    a page and of a page that it links to. `aliases` are further URLs that lead to a page.
    """

    def __init__(
        self,
        urls: Sequence[str],
        links: ArrayLike,
        relevant: ArrayLike,
        aliases: Mapping[str, int] | None = None,
    ) -> None:
        self.urls = urls
        self.relevant: NDArray[np.bool_] = np.asarray(relevant, dtype=np.bool_)
        self._pages = {url: number for number, url in enumerate(urls)} | dict(aliases or {})
        pairs = np.unique(np.asarray(links, dtype=np.int64).reshape(-1, 2), axis=0)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        self._sources = pairs[np.argsort(pairs[:, 1], kind="stable"), 0]  # by target
        self._sizes = np.bincount(pairs[:, 1], minlength=len(urls))
        self._ends = np.cumsum(self._sizes)

    def __len__(self) -> int:
        return len(self.urls)

    def page(self, url: str) -> int:
        """Return the number of the page that a URL leads to, NO_PAGE if there is no page."""
        return self._pages.get(url, NO_PAGE)

    def inlinks(self, pages: Numbers) -> tuple[Numbers, Numbers]:
        """Return the links to distinct pages as two arrays: the linking pages and `pages`."""
        sizes = self._sizes[pages]
        places = np.arange(sizes.sum()) + np.repeat(self._ends[pages] - np.cumsum(sizes), sizes)
        return self._sources[places], np.repeat(pages, sizes)


@lru_cache(maxsize=1)  # the next crawls of the same web share its graph
def read_graph(web: FiniteWeb, limits: ReadingLimits) -> Graph:
    """Read every page of a web; this takes some 5 ms a page."""
    reader = _Reader(web, limits)
    reader.read(web.urls)
    ends = {url: page for url in reader.known if (page := reader.end(url)) != NO_PAGE}
    links = [
        (source, ends[url])
        for source, urls in enumerate(reader.links)
        for url in urls
        if url in ends
    ]
    urls = list(reader.pages)
    return Graph(urls, links, web.labels(urls), ends)


class _Reader:
    """Fetches each URL once, also those that are only found as links."""

    def __init__(self, web: FiniteWeb, limits: ReadingLimits) -> None:
        self.known: set[str] = set()
        self.pages: dict[str, int] = {}  # by URL
        self.links: list[list[str]] = []  # by page
        self._redirects: dict[str, str] = {}
        self._web = web
        self._limits = limits

    def read(self, urls: Sequence[str]) -> None:
        waiting = deque(filter(None, map(canonicalise, urls)))
        while waiting:
            url = waiting.popleft()
            if url not in self.known:
                self.known.add(url)
                waiting.extend(self._fetch(url))

    def end(self, url: str) -> int:
        """Return the page at the end of redirects."""
        for _ in range(HOPS):
            url = self._redirects.get(url, url)
        return self.pages.get(url, NO_PAGE)

    def _fetch(self, url: str) -> list[str]:
        """Fetch a URL and return those that it leads to."""
        answer = self._web.answer(url)
        if answer.kind not in {"page", "soft404", "redirect"}:
            return []
        page = read_answer(url, answer, self._limits)
        if isinstance(page, Failure):
            return []
        if isinstance(page, str):
            target = canonicalise(urljoin(url, page))
            return [self._redirects.setdefault(url, target)] if target else []
        links = [] if is_soft_404(page) else [link.url for link in page.links]
        self.pages[url] = len(self.pages)
        self.links.append(links)
        return links
