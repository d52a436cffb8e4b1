"""Items of pages that a topic that learns finds relevant only after they were fetched.

They leave through pipelines and feeds when nothing is left to fetch. A crawl that is stopped
earlier has no such moment in Scrapy: then only our own files get them, in final_output.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.output_file import JsonLinesPipeline
from tres_scrapy.export.topic_view import TopicView, topic_view, view_pages
from tres_scrapy.extensions.job import LATE, RETRACTED, Job
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.topic_source import learns
from tres_scrapy.items import RelevantPage, RetractedPage, item_class
from tres_scrapy.page.language import detect_language
from tres_scrapy.report.audit import identity_of
from tres_scrapy.report.record import Record
from tres_scrapy.rights.signal import as_items
from tres_scrapy.run.run_file import FINAL, LATE_ITEMS, OUT, Fetch
from tres_scrapy.topic.judge import Source
from tres_scrapy.url.message import TresError, plainly, plural

TRAIL: Final = 100  # URLs in the path of an item
PATIENCE: Final = 5.0  # seconds from one line of the log to the next

logger = logging.getLogger(__name__)


class LastVerdicts:
    """What the last model says of each page of a run, by the URL that was chosen.

    Late pages are relevant now, and were not when they were fetched: their items have empty further
    fields `names`. Retracted ones are the opposite. Pages that are `back` were relevant when they
    were fetched, then taken out of the output, and are relevant again.

    The log says that pages are judged again, and how far this is if it takes some seconds.
    """

    def __init__(self, record: Record, view: TopicView, names: Sequence[str] = ()) -> None:
        self.view = view
        count, told = sum(1 for _ in record.pages(0.0)), (began := monotonic())
        logger.info("Judges %d %s again by the last model", count, plural(count, "page"))
        self._start = _start(record)  # a line from before is another crawl's
        self._relevant: dict[str, float] = {}  # P(relevant) of the pages that are
        self.rows: dict[str, int] = {}  # of all pages
        self.late: dict[int, RelevantPage] = {}  # by row
        self.retracted: dict[int, RetractedPage] = {}
        self.back: list[RelevantPage] = []
        meta, output = record.meta(), []
        out = set(json.loads(meta.get(FINAL) or meta.get(OUT, "{}")).get("rows_out", []))
        for page, _, probability, relevant in view_pages(record, view, 0.0):
            self.rows[page.url] = page.row
            if monotonic() > told + PATIENCE:
                told = monotonic()
                logger.info("%d of %d pages are judged by the last model", len(self.rows), count)
            if relevant:
                output.append(page.row)
                self._relevant[page.url] = probability
                if not page.relevant:
                    self.late[page.row] = late_item(record, page, probability, names)
                elif page.row in out:
                    self.back.append(late_item(record, page, probability, names))
            elif page.relevant:
                final = page.final_url or page.url
                self.retracted[page.row] = RetractedPage(page.url, final, probability)
        if told > began:
            logger.info("All %d pages are judged by the last model", count)
        self.identity = identity_of(output)  # as an audit has it

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether a line or row is of a page of this run, not of another crawl."""
        return row["url"] in self.rows and row["fetched_at"] >= self._start

    def of(self, row: Mapping[str, Any]) -> float | None:
        """Return P(relevant) of the page of a line or row, None if it is not relevant any more.

        Another crawl's keeps the value that it has.
        """
        return self._relevant.get(row["url"]) if self.has(row) else float(row["probability"])


class LateItems:
    """Sends late items through pipelines and feeds when nothing is left to fetch, then ends."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._is_sending = False
        self._is_done = False
        self._rows: dict[int, set[int]] = {LATE: set(), RETRACTED: set()}  # of items sent
        self.verdicts: LastVerdicts | None = None  # once all pages were judged again
        self.sent: set[str] = set()  # URLs of late pages
        self.dropped: set[str] = set()  # those of them that a pipeline has dropped

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not follows_links(crawler.spider):
            raise NotConfigured
        late = cls(crawler)
        crawler.signals.connect(late.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(late.item_dropped, signal=signals.item_dropped)
        return late

    def spider_idle(self) -> None:
        session = CrawlSession.of(self._crawler)
        recorder = self._crawler.get_extension(Recorder)
        config, jobdir = Config.of(self._crawler.settings), self._crawler.settings["JOBDIR"]
        if not learns(config, session.output, jobdir):
            return
        if self._is_done or recorder is None or not recorder.is_complete or not session.crawl.pages:
            return
        if not self._is_sending:
            self._is_sending = True
            deferred_from_coro(self._send(session, recorder))
        raise DontCloseSpider

    def item_dropped(self, item: Any, response: Response | None) -> None:
        """Note that a pipeline of the user's keeps a late page out of the output."""
        if response is None and isinstance(item, RelevantPage) and item.url in self.sent:
            self.dropped.add(item.url)

    async def _send(self, session: CrawlSession, recorder: Recorder) -> None:
        engine = self._crawler.engine
        self.verdicts = verdicts = None
        try:
            with suppress(TresError):  # after this answer, the topic has learned from all pages
                await asyncio.wrap_future(session.judge.submit(Source(b"", "", is_sitemap=True)))
            recorder.flush()
            verdicts = await asyncio.to_thread(self._judge_again, recorder.path)
            if verdicts is not None:
                await self._hand_over(LATE, verdicts.late, session.job, recorder)
                if Config.of(self._crawler.settings).output.retract:
                    await self._hand_over(RETRACTED, verdicts.retracted, session.job, recorder)
        except (OSError, TresError) as error:
            logger.error("Pages relevant only now are not sent: %s", plainly(error, named=True))
        except Exception:
            logger.exception("Bug in the sending of pages relevant only now")
        self._is_sending = False
        self._is_done = engine.spider_is_idle()  # else a seed was added meanwhile
        if self._is_done:
            self.verdicts = verdicts
            await engine.close_spider_async(reason=session.ending.reason)

    def _judge_again(self, run: Path) -> LastVerdicts | None:
        with Record(run) as record:
            view = topic_view(record)
            fields = Config.of(self._crawler.settings).output.fields
            return None if view is None else LastVerdicts(record, view, fields)

    async def _hand_over(
        self, kind: int, items: Mapping[int, Any], job: Job | None, recorder: Recorder
    ) -> None:
        """Send items that were not sent before; with JOBDIR each of them once, whatever happens."""
        before = self._rows[kind] | (set() if job is None else job.rows_handed_over(kind))
        new = {row: item for row, item in items.items() if row not in before}
        self._rows[kind].update(new)
        if not new or not (job is None or job.hand_over(kind, new)):
            return
        if kind == LATE:
            if job is None:
                recorder.note(LATE_ITEMS, json.dumps([*new]))  # `tres forget` names them
            self.sent.update(item.url for item in new.values())
            if (output := self._crawler.get_item_pipeline(JsonLinesPipeline)) is not None:
                output.hold(self.sent)
        send = self._crawler.engine.scraper.start_itemproc_async
        await asyncio.gather(*(send(item, response=None) for item in new.values()))


def late_item(
    record: Record, page: Fetch, probability: float, names: Sequence[str]
) -> RelevantPage:
    """Return the item of a page, with all that the record keeps of it.

    Its further fields `names` are empty; whether it was rendered or a PDF is not known.
    """
    trail, stored, scores = record.trail(page), record.text(page), record.scores(page)
    more: dict[str, Any] = {"scores": scores} if len(scores) > 1 else {}
    return item_class((*names, *more))(
        url=page.url,
        final_url=page.final_url or page.url,
        title=stored.title,
        text=stored.text,
        language=detect_language(stored.text),
        probability=probability,
        depth=len(trail) - 1,
        path=[each.final_url or each.url for each in trail[-TRAIL:]],
        anchor=page.anchor,
        q_value=page.q_value,
        leaf=page.leaf,
        fetched_at=datetime.fromtimestamp(page.time, UTC).isoformat(),
        status=200,  # other answers are no pages
        why=record.why(page),
        domain=page.domain,
        rights=as_items(stored.rights),
        **more,
    )


def _start(record: Record) -> str:
    """Return when a crawl was started first, in the form of `fetched_at` in items."""
    started = datetime.strptime(record.meta()["started"], "%Y%m%dT%H%M%S.%f")
    return started.replace(tzinfo=UTC).isoformat()
