"""`scrapy crawl` with errors in one line and an exit status of 1 if the crawl failed.

Scrapy names a command of COMMANDS_MODULE after its module.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from typing import Any, Final

from scrapy.commands import crawl
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from tres_scrapy.config.declaration import ConfigError, suggestion
from tres_scrapy.config.guest import offered
from tres_scrapy.config.typed import crawl_of
from tres_scrapy.downloader.rendering import NO_BROWSER
from tres_scrapy.export.archive import ARCHIVE_FAILED
from tres_scrapy.export.output_file import OUTPUT_FAILED
from tres_scrapy.extensions.ending import NO_JUDGE, NO_PAGE, UNREACHABLE
from tres_scrapy.extensions.job import JOB_FAILED
from tres_scrapy.url.message import TresError, without_credentials

FAILURES: Final = {  # reasons for the end of a crawl
    NO_PAGE,
    NO_JUDGE,
    NO_BROWSER,
    UNREACHABLE,
    JOB_FAILED,
    ARCHIVE_FAILED,
    OUTPUT_FAILED,
}
# They log some 65 lines about Scrapy before a crawl begins.
LOUD: Final = ("scrapy.utils.log", "scrapy.addons", "scrapy.middleware", "scrapy.crawler")
RULES: Final = {bool: "1 or 0", int: "a number", float: "a number"}  # by the type of the default

logger = logging.getLogger(__name__)


class Command(crawl.Command):
    """Run a spider; a crawl that cannot start or fetches no page has exit status 1."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        try:
            check_scrapys(self.settings)
        except ConfigError as error:
            sys.exit(f"{crawl_of(' '.join(args[:1]))}: {error}")
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
        except KeyError:
            known = self.crawler_process.spider_loader.list()
            sys.exit(f"scrapy crawl: unknown spider {args[0]!r}{suggestion(args[0], known)}")
        crawling = self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        # After exception() is called, asyncio does not print the traceback at exit.
        error = None
        if isinstance(crawling, asyncio.Task) and crawling.done() and not crawling.cancelled():
            error = crawling.exception()
        if isinstance(error, TresError):
            refusal = f"{crawl_of(args[0])}: {without_credentials(str(error))}"
            if crawler.settings["LOG_FILE"]:
                logger.error(refusal)
            sys.exit(refusal)
        if error is not None:
            raise error
        failures = FAILURES.union(offered("failure"))
        if (
            self.crawler_process.bootstrap_failed
            or crawler.stats.get_value("finish_reason") in failures
        ):
            self.exitcode = 1


def check_scrapys(settings: BaseSettings) -> None:
    """Raise ConfigError if a setting of Scrapy's cannot be read: Scrapy stops with a traceback."""
    for name, default in vars(default_settings).items():
        value, kind = settings[name], type(default)
        if kind not in RULES or value is None:
            continue
        try:
            settings.getbool(name)  # of numbers as well: some of them are 1 for True
        except (TypeError, ValueError):
            if kind is bool or not _is_number(value):
                raise ConfigError(f"{name} {value!r}: must be {RULES[kind]}") from None
    levels, level = logging.getLevelNamesMapping(), settings["LOG_LEVEL"]
    if not isinstance(level, int) and level not in levels:
        raise ConfigError(f"LOG_LEVEL {level!r}: must be one of {', '.join(levels)}")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
