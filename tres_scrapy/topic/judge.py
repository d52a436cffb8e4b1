"""The reward model away from the caller's thread, pages that wait together in one batch (P 3.3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.duplicate import fingerprint
from tres_scrapy.page.soft_404 import is_soft_404
from tres_scrapy.page.text import Page, read_page
from tres_scrapy.topic.pack import Judgement, Pack

_BATCH = 8  # pages at most in one call of the model


class Source(NamedTuple):
    """A page as it was fetched."""

    html: str
    url: str


class Judged(NamedTuple):
    """A page as it was read, what the reward model says of it, and its fingerprint.

    `is_missing` says that the page speaks of a missing page.
    """

    page: Page
    judgement: Judgement
    mark: bytes
    is_missing: bool


def judge_pages(
    pack: Pack, limits: ReadingLimits, sources: Sequence[Source], *, contexts: bool = False
) -> list[Judged]:
    """Read pages, with the words around their links if `contexts`, and judge them in one batch."""
    pages = [read_page(html, url, limits, contexts=contexts) for html, url in sources]
    return [
        Judged(page, judgement, fingerprint(page), is_soft_404(page))
        for page, judgement in zip(pages, pack.judge(pages), strict=True)
    ]


class _Task(NamedTuple):
    source: Source
    future: Future[Judged]


class Judge:
    """Has pages judged by `judge` in a separate thread, up to eight at a time.

    What `judge` raises over a batch belongs to one of its pages: each is then tried alone. `close`
    waits for all that were submitted.
    """

    def __init__(self, pack: Pack, judge: Callable[[Sequence[Source]], list[Judged]]) -> None:
        self._pack = pack
        self._judge = judge
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tres-judge", daemon=True)
        self._thread.start()

    @property
    def keywords(self) -> tuple[str, ...]:
        """The words of the topic, those that were given before those found by expansion."""
        given = self._pack.given
        return (*given, *sorted(self._pack.keywords.words.difference(given)))

    @property
    def waiting(self) -> int:
        """The number of pages that wait for the model."""
        return self._tasks.qsize()

    def submit(self, html: str, url: str) -> Future[Judged]:
        """Ask for the verdict on a page; the future has it, or what the model raised."""
        future: Future[Judged] = Future()
        self._tasks.put(_Task(Source(html, url), future))
        return future

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4 to 6 of a few links, [n, 3], at once and in the caller's thread."""
        return self._pack.action_features(urls, anchors)

    def close(self) -> None:
        """End the thread."""
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            tasks = [task]
            while len(tasks) < _BATCH and not self._tasks.empty():
                following = self._tasks.get()
                if following is None:
                    self._tasks.put(None)  # the end: it is met again after this batch
                    break
                tasks.append(following)
            self._try([task for task in tasks if task.future.set_running_or_notify_cancel()])

    def _try(self, tasks: list[_Task]) -> None:
        try:
            verdicts = self._judge([task.source for task in tasks])
        except BaseException as error:  # it belongs to a page: the thread never ends by one
            if len(tasks) == 1:
                if not isinstance(error, Exception):  # it would end the caller's thread as well
                    error = RuntimeError(f"{type(error).__name__}: {error}")
                tasks[0].future.set_exception(error)
                return
            for task in tasks:  # one bad page must not cost the others theirs
                self._try([task])
        else:
            for task, judged in zip(tasks, verdicts, strict=True):
                task.future.set_result(judged)
