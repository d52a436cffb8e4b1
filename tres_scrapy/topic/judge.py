"""Runs the reward model in separate threads, waiting pages in one batch (P 3.3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.links.code import RaggedArray, Wordbook, page_codes, silent
from tres_scrapy.page.content import content_of_html, content_of_pdf
from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.kind import is_pdf, is_soft_404, needs_scripts, wall_of
from tres_scrapy.page.language import UTF_8, decoded
from tres_scrapy.page.pdf_page import PDFS, DocumentError, read_document
from tres_scrapy.page.robots import US
from tres_scrapy.page.sitemap import SitemapError, read_sitemap
from tres_scrapy.page.text import Page, read_page
from tres_scrapy.topic.pack import Judged, Pack

MAX_BATCH: Final = 16  # pages in one call of the model
PATIENCE: Final = 5.0  # seconds that a crawl which ends waits for its judges
PAUSE: Final = 0.05  # seconds that a page waits for others: eight together cost a third each
FIRST_PAGES: Final = 50  # of a crawl, that do not say yet whether it finds little
FEW: Final = 0.2  # share of its pages that is relevant


def finds_little(pages: int, harvest: float) -> bool | None:
    """Return whether few of a crawl's pages are relevant, None before it has enough of them."""
    return None if pages < FIRST_PAGES else harvest < FEW


class Source(NamedTuple):
    """A page as it was fetched; `robots` are the values of its header X-Robots-Tag.

    `language` is its header Content-Language, "" without one. `crawler` is the name by which the
    page may address us. `is_seed` marks the page of a seed. `waiting` holds URLs and anchor texts
    of links that a topic which learns describes again; `again` asks it for earlier pages too.
    `little` says whether the crawl `finds_little`.
    """

    body: bytes
    url: str
    encoding: str = UTF_8
    robots: tuple[str, ...] = ()
    crawler: str = US
    is_seed: bool = False
    is_sitemap: bool = False  # or a feed
    waiting: tuple[tuple[str, str], ...] = ()
    language: str = ""
    again: bool = False
    little: bool | None = None


class _Reading(NamedTuple):
    page: Page
    content: Callable[[Sequence[str]], dict[str, Any]]  # from the names of fields
    needs_scripts: bool = False
    is_broken: bool = False
    wall: str = ""


def judge_pages(
    pack: Pack,
    sources: Sequence[Source],
    *,
    limits: ReadingLimits,
    contexts: bool = False,
    words: Wordbook | None = None,
    begin: Callable[[int | None], None] = lambda number: None,
    content: Sequence[str] = (),
) -> list[Judged]:
    """Read pages and judge them in one batch.

    With `contexts`, read the words around their links too; with `words`, all that the links say.
    `begin` receives the number of each page before it is read, and again before what is known of it
    is completed; None after the last. `content` names further fields to read of relevant pages.
    """
    readings = []
    for number, source in enumerate(sources):
        begin(number)
        if source.is_sitemap:
            readings.append(_sitemap(source, limits, pack))
        elif limits.documents and is_pdf(source.body):
            readings.append(_document(source, limits))
        else:
            readings.append(_page(source, limits, contexts=contexts, places=words is not None))
    begin(None)
    judged = pack.judge([each.page for each in readings])
    completed = []
    for number, (reading, each) in enumerate(zip(readings, judged, strict=True)):
        begin(number)
        completed.append(_completed(pack, reading, each, words, content))
    begin(None)
    return completed


def _completed(
    pack: Pack, reading: _Reading, judged: Judged, words: Wordbook | None, content: Sequence[str]
) -> Judged:
    page = judged.page
    is_wanted = content and judged.probability >= pack.threshold
    return judged._replace(
        page=replace(page, places=()),  # the crawl's process needs only their codes
        mark=fingerprint(page),
        is_missing=is_soft_404(page),
        wall=reading.wall,
        cues=silent(len(page.links)) if words is None else cues_of(pack, judged, words),
        names=() if words is None else tuple(words.new),
        needs_scripts=reading.needs_scripts,
        is_broken=reading.is_broken,
        content=tuple(reading.content(content).items()) if is_wanted else (),
    )


def _page(source: Source, limits: ReadingLimits, *, contexts: bool, places: bool) -> _Reading:
    html = decoded(source.body, source.encoding, limits.html)
    page = read_page(
        html,
        source.url,
        limits,
        contexts=contexts,
        places=places,
        robots=source.robots,
        crawler=source.crawler,
        declared=source.language,
    )
    content = partial(content_of_html, html=html, url=source.url)
    scripted = needs_scripts(html, page.text.count(" ") + 1)
    return _Reading(page, content, scripted, wall=wall_of(html, page))


def _sitemap(source: Source, limits: ReadingLimits, pack: Pack) -> _Reading:
    try:
        page = read_sitemap(source.body, source.url, limits, pack.keywords.in_url)
    except SitemapError:
        return _broken(source)
    return _Reading(page, lambda _: {})


def _broken(source: Source) -> _Reading:
    return _Reading(Page(source.url, "", "", ()), lambda _: {}, is_broken=True)


def _document(source: Source, limits: ReadingLimits) -> _Reading:
    try:
        document = PDFS(source.body)
    except DocumentError:
        return _broken(source)
    page = read_document(document, source.url, limits, robots=source.robots, crawler=source.crawler)
    return _Reading(page, partial(content_of_pdf, said=document))


def cues_of(pack: Pack, judged: Judged, words: Wordbook | None = None) -> RaggedArray:
    """Return what the links of a page say, nothing of any link if their places were not read.

    `words` learns the texts behind it.
    """
    page = judged.page
    if not page.places:
        return silent(len(page.links))
    return page_codes(page, judged.probability, pack.keywords, words)


class _Task(NamedTuple):
    source: Source
    future: Future[Judged]


class Judge:
    """Calls one of `judges` on pages, each in a separate thread, those that wait in one call.

    The thread that is free collects the next pages, one thread at a time. A page waits for others
    for a moment if more than one is expected to be in flight: `together`.

    If a judge raises an error for a batch, only the bad page fails: the one that the error names by
    its number `page`, else each page is judged alone. `close` waits for all submitted pages.
    """

    def __init__(
        self,
        pack: Pack,
        *judges: Callable[[Sequence[Source]], list[Judged]],
        together: int = 1,
    ) -> None:
        self._pack = pack
        self._together = together
        # of several judges, none takes the pages of the others
        self._most = MAX_BATCH if len(judges) == 1 else min(MAX_BATCH, max(1, together))
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._turn = threading.Lock()  # to collect: two threads at once would halve the batches
        self._threads = [
            threading.Thread(target=self._work, args=[judge], name="tres-judge", daemon=True)
            for judge in judges
        ]
        for thread in self._threads:
            thread.start()

    @property
    def keywords(self) -> tuple[str, ...]:
        """The keywords of the topic: given words first, then those found by expansion."""
        given = self._pack.given
        return (*given, *sorted(self._pack.keywords.words.difference(given)))

    @property
    def waiting(self) -> int:
        """The number of pages that wait for the model."""
        return self._tasks.qsize()

    def submit(self, source: Source) -> Future[Judged]:
        """Submit a page; the future holds the result or the error that `judge` raised."""
        future: Future[Judged] = Future()
        self._tasks.put(_Task(source, future))
        return future

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Compute features 4 to 6 of a few links, [n, 3], in the caller's thread."""
        return self._pack.action_features(urls, anchors)

    def close(self) -> None:
        """Judge the submitted pages that somebody waits for, then end the threads.

        A judge that takes longer than PATIENCE for that is left alone: its process is killed next.
        """
        self._tasks.put(None)
        ends = monotonic() + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, ends - monotonic()))

    def _work(self, judge: Callable[[Sequence[Source]], list[Judged]]) -> None:
        while tasks := self._collect():
            self._try(judge, [task for task in tasks if task.future.set_running_or_notify_cancel()])

    def _collect(self) -> list[_Task]:
        """Return the next pages, none after the end mark."""
        with self._turn:
            tasks: list[_Task] = []
            task = self._tasks.get()
            until = monotonic() + PAUSE
            while task is not None:
                tasks.append(task)
                if len(tasks) == self._most:
                    return tasks
                wait = until - monotonic() if len(tasks) < self._together else 0
                try:
                    task = self._tasks.get(timeout=max(0.0, wait))
                except Empty:
                    return tasks
            self._tasks.put(None)  # read again after this batch, and by the other threads
            return tasks

    def _try(self, judge: Callable[[Sequence[Source]], list[Judged]], tasks: list[_Task]) -> None:
        try:
            verdicts = judge([task.source for task in tasks])
        except BaseException as error:  # the error of a page must not end the thread
            if len(tasks) == 1:
                if not isinstance(error, Exception):  # it would end the caller's thread
                    error = RuntimeError(f"{type(error).__name__}: {error}")
                tasks[0].future.set_exception(error)
                return
            bad: int | None = getattr(error, "page", None)
            if bad is None:
                for task in tasks:
                    self._try(judge, [task])
                return
            tasks[bad].future.set_exception(error)
            self._try(judge, tasks[:bad] + tasks[bad + 1 :])
        else:
            for task, judged in zip(tasks, verdicts, strict=True):
                task.future.set_result(judged)
