"""The output of a crawl that learned its topic: at the end, what its last model finds relevant.

While such a crawl runs, pages leave as items by the model of that moment. Then our own files are
written again from the record: lines of pages that are not relevant any more are taken out, those
that became relevant are added. Each file is replaced when it is complete.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self, TypeVar

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.csv_table import CsvPipeline
from tres_scrapy.export.known import NewnessPipeline
from tres_scrapy.export.output_file import count_lines
from tres_scrapy.export.topic_view import TopicView, topic_view, view_pages
from tres_scrapy.extensions.recorder import OUTPUT, Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.items import RelevantPage, item_class
from tres_scrapy.page.language import detect_language
from tres_scrapy.report.record import Record
from tres_scrapy.rights.signal import as_items
from tres_scrapy.run.run_file import Fetch
from tres_scrapy.url.message import TresError, plainly, plural
from tres_scrapy.url.whole_file import drop_torn_line, whole_file

TRAIL: Final = 100  # URLs in the path of an item
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Settled(NamedTuple):
    """An output that was written again: its pages and their domains, pages added and taken out."""

    pages: int
    domains: int
    added: int
    taken_out: int


class LastVerdicts:
    """What the last model says of each page of a run, by the URL that was chosen."""

    def __init__(self, record: Record, view: TopicView) -> None:
        self.start = _start(record)  # a line from before is another crawl's
        self.relevant: dict[str, float] = {}  # P(relevant) of the pages that are
        self._seen: set[str] = set()
        self.late: dict[str, Fetch] = {}  # relevant now, and not when they were fetched
        for page, _, probability, relevant in view_pages(record, view, 0.0):
            self._seen.add(page.url)
            if relevant:
                self.relevant[page.url] = probability
                if not page.relevant:
                    self.late[page.url] = page

    def of(self, row: Mapping[str, Any]) -> float | None:
        """Return P(relevant) of the page of a line or row, None if it is not relevant any more.

        Another crawl's keeps the value that it has.
        """
        url = row["url"]
        if url not in self._seen or row["fetched_at"] < self.start:
            return float(row["probability"])
        return self.relevant.get(url)


class FinalOutput:
    """Writes the JSON lines and the tables of a crawl from keywords again when it has ended."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if Config.of(crawler.settings).words.file is None or not follows_links(crawler.spider):
            raise NotConfigured
        output = cls(crawler)
        crawler.signals.connect(output.engine_stopped, signal=signals.engine_stopped)
        return output

    def engine_stopped(self) -> None:
        session = self._crawler.get_extension(CrawlSession)
        if session is None or not session.crawl.pages:
            return
        path, why = session.output, ""
        if path.exists() and not path.is_file():
            return  # a device or a pipe
        recorder = self._crawler.get_extension(Recorder)
        if recorder is None or not recorder.is_complete:
            why = ", by the model of the moment: without texts in a record none is judged again"
        else:
            try:
                why = self._settle(recorder.path, path)
            except (OSError, TresError) as error:
                logger.error("%s is not judged again: %s", path, plainly(error, named=True))
        pages = count_lines(path) if path.exists() else 0
        if pages:
            logger.info("Wrote %d %s to %s%s", pages, plural(pages, "relevant page"), path, why)
        else:
            path.unlink(missing_ok=True)  # an empty file would only mislead
            logger.info("No relevant pages: %s is not written", path)

    def _settle(self, run: Path, path: Path) -> str:
        """Write the files again; return what to say of that."""
        with Record(run) as record:
            view = topic_view(record, lambda line: logger.info("Topic: %s", line))
            if view is None:
                return ""
            verdicts = LastVerdicts(record, view)
            late = self._items(record, verdicts)
        settled = settle(path, verdicts, late)
        for table in self._pipelines(CsvPipeline):
            table.rewrite(verdicts.of, late)
        assert self._crawler.stats is not None
        for name, value in settled._asdict().items():
            self._crawler.stats.set_value(f"{OUTPUT}{name}", value)
        return (
            f" ({settled.added} of them found relevant at the end, {settled.taken_out} taken out)"
        )

    def _items(self, record: Record, verdicts: LastVerdicts) -> list[RelevantPage]:
        """Return the items of pages that turned relevant after they were fetched."""
        names = Config.of(self._crawler.settings).output.fields
        items = [
            late_item(record, page, verdicts.relevant[url], names)
            for url, page in verdicts.late.items()
        ]
        for known in self._pipelines(NewnessPipeline):
            for item in items:
                known.process_item(item)
        return items

    def _pipelines(self, kind: type[T]) -> list[T]:
        engine = self._crawler.engine
        assert engine is not None
        return [each for each in engine.scraper.itemproc.middlewares if isinstance(each, kind)]


def settle(path: Path, verdicts: LastVerdicts, late: Sequence[RelevantPage]) -> Settled:
    """Write JSON lines again as the last model judges; raise OSError if that fails.

    Raise TresError if another crawl writes to the file.
    """
    missing, kept, out = {item.url: item for item in late}, 0, 0
    domains = set()
    with _locked(path) as lines, whole_file(path) as file:
        for line in lines:
            row = _row(line)
            probability = verdicts.of(row) if row else 0.0
            if probability is None:
                out += 1
                continue
            kept += 1
            domains.add(row.get("domain", ""))
            missing.pop(row.get("url", ""), None)
            file.write(_line(row | {"probability": probability}) if row else line)
        for item in missing.values():
            file.write(_line({each.name: getattr(item, each.name) for each in fields(item)}))
    domains.update(item.domain for item in missing.values())
    return Settled(kept + len(missing), len(domains), len(missing), out)


def late_item(
    record: Record, page: Fetch, probability: float, names: Sequence[str]
) -> RelevantPage:
    """Return the item of a page, with all that the record keeps of it.

    Its further fields `names` are empty; whether it was rendered or a PDF is not known.
    """
    trail, stored = record.trail(page), record.text(page)
    return item_class(tuple(names))(
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
    )


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open an output for this process alone, made if it is missing; raise TresError if it is not.

    The lock ends when the file that was replaced is closed.
    """
    with path.open("a+b") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise TresError("another crawl writes to it") from None
        drop_torn_line(path)
        file.seek(0)
        yield file


def _row(line: bytes) -> dict[str, Any]:
    """Return the item of a line, {} if it is something else."""
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    is_item = isinstance(row, dict) and {"url", "fetched_at", "probability"} <= row.keys()
    return row if is_item else {}


def _line(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode()


def _start(record: Record) -> str:
    """Return when a crawl was started first, in the form of `fetched_at` in items."""
    started = datetime.strptime(record.meta()["started"], "%Y%m%dT%H%M%S.%f")
    return started.replace(tzinfo=UTC).isoformat()
