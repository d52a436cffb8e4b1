"""`scrapy crawl` with errors in one line and an exit status of 1 if the crawl failed."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from typing import Final

from scrapy.commands import crawl
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.downloader.rendering import NO_BROWSER
from tres_scrapy.export.archive import ARCHIVE_FAILED
from tres_scrapy.export.output_file import OUTPUT_FAILED
from tres_scrapy.extensions.ending import NO_JUDGE, NO_PAGE, UNREACHABLE
from tres_scrapy.extensions.job import JOB_FAILED
from tres_scrapy.lab.webs.web_process import OfflineWebError
from tres_scrapy.refresh.collection import CollectionError
from tres_scrapy.refresh.collection_file import StoreError
from tres_scrapy.report.record_file import RecordError
from tres_scrapy.run.job_file import JobError
from tres_scrapy.surface.spider import NO_SEARCH
from tres_scrapy.topic.judge_process import WorkerError
from tres_scrapy.topic.pack import PackError
from tres_scrapy.url.canonical import without_credentials

SAID_IN_ONE_LINE = (
    ConfigError,
    JobError,
    PackError,
    OfflineWebError,
    WorkerError,
    RecordError,
    CollectionError,
    StoreError,
)


# They log some 65 lines about Scrapy before a crawl begins.
LOUD: Final = ("scrapy.utils.log", "scrapy.addons", "scrapy.middleware", "scrapy.crawler")

logger = logging.getLogger(__name__)


class Command(crawl.Command):
    """Run a spider; a crawl that cannot start or fetches no page has exit status 1."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        asked = (self.settings.getpriority("LOG_LEVEL") or 0) >= SETTINGS_PRIORITIES["cmdline"]
        if not asked and not self.settings["LOG_FILE"]:
            for name in LOUD:  # by a filter: Scrapy resets levels
                logging.getLogger(name).addFilter(_is_warning)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError
        assert self.crawler_process is not None
        try:
            crawler = self._create_crawler(args[0])
        except KeyError as unknown:
            raise UsageError(str(unknown.args[0]), print_help=False) from None
        crawling = self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        # After exception() is called, asyncio does not print the traceback at exit.
        error = None
        if isinstance(crawling, asyncio.Task) and crawling.done() and not crawling.cancelled():
            error = crawling.exception()
        if isinstance(error, SAID_IN_ONE_LINE):
            refusal = f"scrapy crawl {args[0]}: {without_credentials(str(error))}"
            if crawler.settings["LOG_FILE"]:
                logger.error(refusal)
            sys.exit(refusal)
        if error is not None:
            raise error
        reason = crawler.stats.get_value("finish_reason")
        failed = {
            NO_PAGE,
            NO_SEARCH,
            NO_JUDGE,
            NO_BROWSER,
            UNREACHABLE,
            JOB_FAILED,
            ARCHIVE_FAILED,
            OUTPUT_FAILED,
        }
        if self.crawler_process.bootstrap_failed or reason in failed:
            self.exitcode = 1


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
