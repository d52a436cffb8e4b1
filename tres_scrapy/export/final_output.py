"""The output of a crawl that learned its topic: at the end, what its last model finds relevant.

While such a crawl runs, pages leave as items by the model of that moment. Then our own files are
written again from the record: lines of pages that are not relevant any more are taken out, those
that became relevant are added. Each file is replaced when it is complete.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import fields
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.csv_table import CsvPipeline
from tres_scrapy.export.known import NewnessPipeline
from tres_scrapy.export.late_item import LastVerdicts, LateItems, pipelines
from tres_scrapy.export.output_file import count_lines
from tres_scrapy.export.topic_view import topic_view
from tres_scrapy.extensions.recorder import OUTPUT, Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.items import RelevantPage
from tres_scrapy.report.record import Record
from tres_scrapy.url.message import TresError, plainly, plural
from tres_scrapy.url.whole_file import drop_torn_line, whole_file

logger = logging.getLogger(__name__)


class Settled(NamedTuple):
    """An output that was written again: its pages and their domains, pages added and taken out."""

    pages: int
    domains: int
    added: int
    taken_out: int


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
            late = self._items(verdicts)
        sender = self._crawler.get_extension(LateItems)
        settled = settle(path, verdicts, late, frozenset() if sender is None else sender.sent)
        for table in pipelines(self._crawler, CsvPipeline):
            table.rewrite(verdicts.of, late)
        assert self._crawler.stats is not None
        for name, value in settled._asdict().items():
            self._crawler.stats.set_value(f"{OUTPUT}{name}", value)
        return (
            f" ({settled.added} of them found relevant at the end, {settled.taken_out} taken out)"
        )

    def _items(self, verdicts: LastVerdicts) -> list[RelevantPage]:
        """Return the items of late pages, without those that a pipeline has dropped."""
        sender = self._crawler.get_extension(LateItems)
        dropped = frozenset() if sender is None else sender.dropped
        found = verdicts.items(Config.of(self._crawler.settings).output.fields).values()
        items = [item for item in found if item.url not in dropped]
        for known in pipelines(self._crawler, NewnessPipeline):
            for item in items:
                known.process_item(item)
        return items


def settle(
    path: Path,
    verdicts: LastVerdicts,
    late: Sequence[RelevantPage],
    sent: Set[str] = frozenset(),
) -> Settled:
    """Write JSON lines again as the last model judges; raise OSError if that fails.

    Late pages are added, unless the file has them; those with a URL in `sent` were added before.
    Raise TresError if another crawl writes to the file.
    """
    missing, kept, out, added = {item.url: item for item in late}, 0, 0, 0
    domains = set()
    with _locked(path) as lines, whole_file(path) as file:
        for line in lines:
            row = _row(line)
            probability = verdicts.of(row) if row else 0.0
            if probability is None:
                out += 1
                continue
            kept += 1
            added += row.get("url") in sent
            domains.add(row.get("domain", ""))
            missing.pop(row.get("url", ""), None)
            file.write(_line(row | {"probability": probability}) if row else line)
        for item in missing.values():
            file.write(_line({each.name: getattr(item, each.name) for each in fields(item)}))
    domains.update(item.domain for item in missing.values())
    return Settled(kept + len(missing), len(domains), added + len(missing), out)


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
