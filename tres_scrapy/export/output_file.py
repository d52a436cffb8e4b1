"""The files of a crawl's output: their names, their loss-free writing, and when it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, TextIO

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.parquet import FORMAT
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.url.message import plainly

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
                session = self._crawler.get_extension(CrawlSession)
                assert session is not None  # the add-on installs both
                end_crawl(slot.uri, error, session.job, session.stop)
                return
