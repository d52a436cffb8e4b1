"""The output of a crawl that learned its topic: at the end, what its last model finds relevant.

While such a crawl runs, pages leave as items by the model of that moment. Then our own files are
written again from the record: lines of pages that are not relevant any more are taken out, those
that became relevant are added. Each file is replaced when it is complete.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import fields
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.csv_table import CsvPipeline
from tres_scrapy.export.known import NewnessPipeline
from tres_scrapy.export.late_item import LastVerdicts, LateItems
from tres_scrapy.export.output_file import count_lines
from tres_scrapy.export.topic_view import topic_view
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.topic_source import learns
from tres_scrapy.items import RelevantPage
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import REPORT
from tres_scrapy.run.run_file import FINAL, open_to_write
from tres_scrapy.url.message import TresError, counted, plainly, plural
from tres_scrapy.url.whole_file import drop_torn_line, whole_file

DIGITS: Final = 4  # of P(relevant) in the file of the run
OUTPUT: Final = "tres/output/"  # figures of the output that was written again at the end

logger = logging.getLogger(__name__)


class Settled(NamedTuple):
    """An output that was written again: P(relevant) of its pages by row, domains, changes."""

    rows: dict[int, float]
    domains: int
    added: int
    taken_out: int


class FinalOutput:
    """Writes the JSON lines and the tables of a crawl that learned again when it has ended."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not follows_links(crawler.spider):
            raise NotConfigured
        output = cls(crawler)
        crawler.signals.connect(output.engine_stopped, signal=signals.engine_stopped)
        return output

    def engine_stopped(self) -> None:
        session = CrawlSession.of(self._crawler)
        if session.output.exists() and not session.output.is_file():
            return  # a device or a pipe
        path, settings = session.output, self._crawler.settings
        if not learns(Config.of(settings), path, settings["JOBDIR"]):
            return
        own, said = self._judge_again(path) if session.crawl.pages else (None, "")
        pages = count_lines(path) if path.exists() else 0
        own = pages if own is None else own
        if pages:
            of_all = "" if own == pages else f", which has {pages} now"
            found = counted(own, "relevant page")
            logger.info("Wrote %s to %s%s%s", found, path, said, of_all)
        else:
            path.unlink(missing_ok=True)  # an empty file would only mislead
            logger.info("No relevant pages: %s is not written", path)

    def _judge_again(self, path: Path) -> tuple[int | None, str]:
        """Write the files again if that is possible.

        Return how many pages of this crawl they have, if it is known, and what to say of them.
        """
        recorder = self._crawler.get_extension(Recorder)
        if recorder is None or not recorder.is_complete:
            none = "without texts in a record none is judged again"
            return None, f", by the model of the moment: {none}"
        try:
            return self._settle(recorder, path)
        except (OSError, TresError) as error:
            logger.error("%s is not judged again: %s", path, plainly(error, named=True))
            return None, ""

    def _settle(self, recorder: Recorder, path: Path) -> tuple[int | None, str]:
        """Write the files again; return how many pages they have, and what to say of that."""
        sender = self._crawler.get_extension(LateItems)
        verdicts = None if sender is None else sender.verdicts
        with Record(recorder.path) as record:
            view = topic_view(record, lambda line: logger.info("Topic: %s", line))
            if view is None:
                return None, ""
            if verdicts is None or verdicts.view[1:] != view[1:]:  # new answers, or another model
                fields = Config.of(self._crawler.settings).output.fields
                verdicts = LastVerdicts(record, view, fields)
        late = self._items(verdicts)
        settled = settle(path, verdicts, late, frozenset() if sender is None else sender.sent)
        if (table := self._crawler.get_item_pipeline(CsvPipeline)) is not None:
            table.rewrite(verdicts.of, late)
        recorder.note_final(_final(settled, verdicts))
        figures = settled._asdict() | {"identity": verdicts.identity}
        figures["pages"] = len(figures.pop("rows"))
        for name, value in figures.items():
            self._crawler.stats.set_value(f"{OUTPUT}{name}", value)
        return len(settled.rows), (
            f" ({settled.added} of them found relevant at the end, {settled.taken_out} taken out)"
        )

    def _items(self, verdicts: LastVerdicts) -> list[RelevantPage]:
        """Return the items that may be missing, without those that a pipeline has dropped."""
        sender = self._crawler.get_extension(LateItems)
        dropped = frozenset() if sender is None else sender.dropped
        found = [*verdicts.late.values(), *verdicts.back]
        items = [item for item in found if item.url not in dropped]
        if (known := self._crawler.get_item_pipeline(NewnessPipeline)) is not None:
            for item in items:
                known.process_item(item)
        return items


def renew(path: Path) -> list[str]:
    """Write the output and the report of the ended crawl of a record again, by the topic of now.

    Return what to say of that. Nothing is done while the crawl runs, or if it has no output. Raise
    OSError or TresError if a file cannot be used.
    """
    # Imported here because the templates are slow to import.
    from tres_scrapy.report.crawl_report import report_beside  # noqa: PLC0415

    with Record(path) as record:
        meta, view = record.meta(), topic_view(record)
        output = Path(meta.get("output", ""))
        if view is None or "ended" not in meta or (output.exists() and not output.is_file()):
            return []
        fields = record.settings().get("TRES_FIELDS", "").split(", ")
        verdicts = LastVerdicts(record, view, fields)
        late = [*verdicts.late.values(), *verdicts.back]
        pages = {name: count for name, count, _ in record.domains(-1)}
    settled = settle(output, verdicts, late)
    table = CsvPipeline(output, lambda name: pages.get(name, 0))
    if table.path.is_file():
        pages |= table.pages()  # those of earlier crawls too
        table.rewrite(verdicts.of, late)
    with closing(open_to_write(path)) as file:
        final = FINAL, _final(settled, verdicts)
        file.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", final)
        if path.with_suffix(REPORT).is_file():
            report_beside(path)
    count = len(settled.rows)
    return [
        f"{output} has {count} relevant {plural(count, 'page')} of this crawl now "
        f"({settled.added} added, {settled.taken_out} taken out)"
    ]


def _final(settled: Settled, verdicts: LastVerdicts) -> str:
    """Return what the file of the run keeps of an output that was written again."""
    known: dict[str, Any] = {"identity": verdicts.identity, "rows_out": [*verdicts.retracted]}
    known["is_blind"] = verdicts.view.fit.mean_prior is not None
    probabilities = {row: round(value, DIGITS) for row, value in settled.rows.items()}
    return json.dumps(known | {"rows": [*settled.rows], "probabilities": probabilities})


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
    missing, taken_out, domains = {item.url: item for item in late}, 0, set[str]()
    added, rows = 0, dict[int, float]()
    with _locked(path) as lines, whole_file(path) as file:
        for line in lines:
            row = _row(line)
            if not (row and verdicts.has(row)):
                file.write(line)
                continue
            probability = verdicts.of(row)
            if probability is None:
                taken_out += 1
                continue
            missing.pop(row["url"], None)
            added += row["url"] in sent
            rows[verdicts.rows[row["url"]]] = probability
            domains.add(row.get("domain", ""))
            file.write(_line(row | {"probability": probability}))
        for item in missing.values():
            file.write(_line({each.name: getattr(item, each.name) for each in fields(item)}))
            rows[verdicts.rows[item.url]] = item.probability
            domains.add(item.domain)
    return Settled(rows, len(domains), added + len(missing), taken_out)


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
