"""The JSON lines of a crawl: their loss-free writing, and what happens when it fails."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import fields
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Final, Self, TextIO

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.parquet import FORMAT
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.topic_source import learns
from tres_scrapy.items import RelevantPage
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import find_record
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.url.message import plainly, plural
from tres_scrapy.url.whole_file import drop_torn_line

OUTPUT_FAILED: Final = "output_failed"

logger = logging.getLogger(__name__)


def beside(path: Path, ending: str) -> Path:
    """Return the path of another file of the crawl: food.warc.gz, for example, for food.jsonl."""
    return path.with_name(path.name.removesuffix(".jsonl") + ending)


def end_crawl(
    path: Path | str, error: OSError, job: Job | None, stop: Callable[[str], None]
) -> None:
    """Stop the crawl with one line; a resumed job exports the items that are missing."""
    if job is not None:
        job.hold_items()
    logger.error("%s cannot be written (%s): the crawl stops", path, plainly(error, named=True))
    stop(OUTPUT_FAILED)


class LineFile:
    """A text file to which a pipeline appends lines; if one cannot be written, the crawl stops."""

    def __init__(
        self,
        path: Path,
        job: Job | None = None,
        stop: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.path = path
        self._job = job
        self._stop = stop
        self._file: TextIO | None = None  # None also when writing has failed

    def append(self, line: str) -> None:
        """Write and flush a line; raise OSError if that fails."""
        assert self._file is not None
        self._file.write(line)
        self._file.flush()

    def fail(self, error: OSError) -> None:
        """Close the file and stop the crawl."""
        if self._file is not None:
            with suppress(OSError):  # close() tries to write the rest again
                self._file.close()
        self._file = None
        end_crawl(self.path, error, self._job, self._stop)


class FeedFlush:
    """Flushes the files of Scrapy's feeds after each item, before JOBDIR forgets it.

    Scrapy's exporter must receive `item_scraped` before this extension, and the job after it: so
    the order in EXTENSIONS is between theirs.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._failed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings["JOBDIR"]:
            raise NotConfigured
        feeds = crawler.settings.getdict("FEEDS").values()
        own = not follows_links(crawler.spider)  # no JSON lines hold them
        if own and any(options.get("format") == FORMAT for options in feeds):
            raise ConfigError(
                "JOBDIR: items of a Parquet feed wait in memory, where a kill loses them: use "
                "another format, such as jsonlines, or leave JOBDIR out"
            )
        flush = cls(crawler)
        crawler.signals.connect(flush.item_scraped, signal=signals.item_scraped)
        return flush

    def item_scraped(self) -> None:
        exporter = self._crawler.get_extension(FeedExporter)
        for slot in () if exporter is None or self._failed else exporter.slots:
            try:
                if slot.file is not None:
                    slot.file.flush()
            except OSError as error:
                self._failed = True
                session = CrawlSession.of(self._crawler)
                end_crawl(slot.uri, error, session.job, session.stop)
                return


class JsonLinesPipeline(LineFile):
    """Appends each relevant page to the crawl's output file and flushes it.

    All items are passed on unchanged, also to Scrapy's feeds.
    """

    _written = 0
    _is_continued = False  # whether the file held pages before
    _held: frozenset[str] = frozenset()  # URLs of items to export again that the file holds
    is_final: Callable[[], bool] = staticmethod(lambda: True)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.output.file is None and not follows_links(crawler.spider):
            raise NotConfigured  # a spider of another project exports its own items
        session = CrawlSession.of(crawler)
        _refuse_other_topic(session.output, str(config.topic))
        pipeline = cls(session.output, session.job, session.stop)
        pipeline.is_final = lambda: (
            not follows_links(crawler.spider)
            or not learns(config, session.output, crawler.settings["JOBDIR"])
        )
        pipeline.open()
        return pipeline

    def open(self) -> None:
        """Open and lock the file; raise ConfigError if it is locked or cannot be written.

        An error in Scrapy's open_spider would come after the crawl began, with tracebacks.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8")
            if self.path.is_file():  # several crawls may write to /dev/null
                flock(self._file, LOCK_EX | LOCK_NB)  # it ends with this process
                drop_torn_line(self.path)
                self._is_continued = self.path.stat().st_size > 0
            if self._job is not None and self._job.unexported:
                items = self._job.unexported
                self.hold({item.url for item in items if isinstance(item, RelevantPage)})
        except BlockingIOError:
            assert self._file is not None
            self._file.close()
            raise ConfigError(
                f"another crawl writes to {named('TRES_OUTPUT')} {str(self.path)!r}: name another "
                "file, or wait for its end"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{named('TRES_OUTPUT')} cannot be written: {plainly(error)}"
            ) from None

    def hold(self, urls: Set[str]) -> None:
        """Write no second line for those items to come, by URL, that the file has."""
        if not self.path.is_file():  # what went into a pipe cannot be read again
            return
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            self._held = frozenset(url for line in lines if (url := _url_of(line)) in urls)

    def close_spider(self) -> None:
        if self._file is None:
            return
        pages = plural(self._written, "relevant page")
        self._file.close()
        if not self.is_final():  # the last model of the topic writes it again
            return
        if self._is_continued:
            logger.info(
                "Wrote %d %s to %s, which has %d now",
                self._written,
                pages,
                self.path,
                count_lines(self.path),
            )
        elif self._written:
            logger.info("Wrote %d %s to %s", self._written, pages, self.path)
        if self.path.is_file() and not self.path.stat().st_size:  # not a device such as /dev/null
            logger.info("No relevant pages: %s is not written", self.path)
            self.path.unlink()  # an empty file would only mislead

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, RelevantPage) or self._file is None:
            return item
        if item.url in self._held:
            self._held -= {item.url}
        else:
            try:
                line = {each.name: getattr(item, each.name) for each in fields(item)}
                self.append(json.dumps(line, ensure_ascii=False) + "\n")
                self._written += 1
            except OSError as error:
                self.fail(error)
        return item


def _refuse_other_topic(path: Path, topic: str) -> None:
    """Raise ConfigError if a file holds anything but pages of a topic, as far as can be known."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        held = "" if _url_of(next(lines, "")) else "something other than pages"
    with suppress(RecordError):
        with Record(find_record(path)) as record:
            before = record.meta()["topic"]
        if before != topic:
            held = f"pages of the topic {before!r}"
    if held:
        raise ConfigError(f"{named('TRES_OUTPUT')} {str(path)!r} holds {held}: name another file")


def count_lines(path: Path) -> int:
    """Return the number of lines of a file."""
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _url_of(line: str) -> str:
    try:
        return str(json.loads(line)["url"])
    except (ValueError, KeyError, TypeError):  # not a line of ours
        return ""
