"""Judge fetched pages outside the reactor's thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import BAD_DOCUMENT, JUDGE_ENDED, JUDGE_ERROR, Failure
from tres_scrapy.crawl.reward import Verdicts
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.extensions.ending import NO_JUDGE
from tres_scrapy.frontier.column import Rows
from tres_scrapy.topic.judge import Judge, Source
from tres_scrapy.topic.judge_process import PageError, WorkerError

logger = logging.getLogger(__name__)


class Judging:
    """Turns the page fetched for a leased row into a Visit or a Failure."""

    def __init__(
        self, crawl: Crawl, judge: Judge, verdicts: Verdicts, stop: Callable[[str], None]
    ) -> None:
        self._crawl = crawl
        self.judge = judge
        self._verdicts = verdicts
        self._stop = stop
        self.is_lost = False  # the process that judges pages: the crawl stops

    async def visit(self, row: int, source: Source) -> Visit | Failure | None:
        """Judge a page; return its Visit, or a Failure if it cannot be judged.

        Return None if the judging process is lost: the crawl stops and leased rows stay leased.
        """
        fetched_at = datetime.now(UTC)
        waiting = self._crawl.revision.take()
        source = self._with_links(source, row, waiting)
        try:
            judged = await asyncio.wrap_future(self.judge.submit(source))
        except WorkerError as error:
            self._lose(error)
            return None
        except Exception as error:
            logger.error("Could not judge %s: %s: %s", source.url, type(error).__name__, error)
            ended = isinstance(error, PageError) and error.page is not None
            return JUDGE_ENDED if ended else JUDGE_ERROR
        self._crawl.revision.note(judged.model, described=judged.actions is not None)
        if judged.actions is not None:
            self._crawl.revise(waiting, judged.actions)
        if judged.is_broken:
            return BAD_DOCUMENT
        for note in judged.notes:
            logger.info("Topic: %s", note)
        lease, store = self._crawl.lease_of(row), self._crawl.store
        assert lease is not None  # the caller books it after this
        store.names.learn(judged.names)  # of any page: each text is sent once
        scope = store.admission.scope
        is_foreign = scope is not None and not scope.reads(judged.page.language)
        verdict = self._verdicts.of(
            judged.judgement.probability,
            judged.mark,
            is_missing=judged.is_missing,
            is_hidden=not judged.page.may_be_kept,
            is_query=lease.decision.is_query,
            is_foreign=is_foreign,
        )
        if isinstance(verdict, Failure):
            return verdict
        depth, path, anchor = store.depth(row), store.trail(row), store.anchors[row]
        return Visit(row, depth, path, anchor, lease.decision, judged, verdict, fetched_at)

    def _with_links(self, source: Source, row: int, waiting: Rows) -> Source:
        """Return a source with what its row says, and links to describe again."""
        store = self._crawl.store
        links = tuple((store.url(each), store.anchors[each]) for each in waiting.tolist())
        return source._replace(is_seed=store.is_seed(row), waiting=links)

    def _lose(self, error: WorkerError) -> None:
        if not self.is_lost:
            self.is_lost = True
            logger.error("The crawl stops: %s", error)
            self._stop(NO_JUDGE)
