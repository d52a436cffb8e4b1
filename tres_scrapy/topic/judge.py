"""The reward model in a worker thread (P 3.3)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.topic.duplicate import fingerprint
from tres_scrapy.topic.pack import Judgement, Pack
from tres_scrapy.topic.text import Page, ReadingLimits, read_page

_BATCH = 8  # pages at most in one call of the model


class Judged(NamedTuple):
    """A page as it was read, what the reward model says of it, and its fingerprint."""

    page: Page
    judgement: Judgement
    mark: bytes


class _Task(NamedTuple):
    html: str
    url: str
    future: Future[Judged]


class Judge:
    """Reads and judges pages away from the caller's thread, those that wait together in one batch.

    `close` waits for all that were submitted.
    """

    def __init__(self, pack: Pack, limits: ReadingLimits, *, contexts: bool = False) -> None:
        self._pack = pack
        self._limits = limits
        self._contexts = contexts
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tres-judge", daemon=True)
        self._thread.start()

    def submit(self, html: str, url: str) -> Future[Judged]:
        """Ask for the verdict on a page; the future has it, or what the model raised."""
        future: Future[Judged] = Future()
        self._tasks.put(_Task(html, url, future))
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
            self._judge([task for task in tasks if task.future.set_running_or_notify_cancel()])

    def _judge(self, tasks: list[_Task]) -> None:
        try:
            pages = [
                read_page(task.html, task.url, self._limits, contexts=self._contexts)
                for task in tasks
            ]
            judgements = self._pack.judge(pages)
            marks = [fingerprint(page) for page in pages]
        except BaseException as error:  # it belongs to a page: the thread never ends by one
            if len(tasks) == 1:
                if not isinstance(error, Exception):  # it would end the caller's thread as well
                    error = RuntimeError(f"{type(error).__name__}: {error}")
                tasks[0].future.set_exception(error)
                return
            for task in tasks:  # one bad page must not cost the others theirs
                self._judge([task])
        else:
            for task, page, judgement, mark in zip(tasks, pages, judgements, marks, strict=True):
                task.future.set_result(Judged(page, judgement, mark))
