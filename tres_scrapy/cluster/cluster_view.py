"""Shows a crawl in shards as one: its record, its live page, its metrics and its report."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Final

from tres_scrapy.cluster.cluster_metric import ClusterCollector
from tres_scrapy.cluster.cluster_page import ClusterPage
from tres_scrapy.cluster.coordinator import FAILED, Overview
from tres_scrapy.cluster.driver import Driver
from tres_scrapy.cluster.joining import Joining, join_shards
from tres_scrapy.cluster.plan import Plan
from tres_scrapy.cluster.progress_line import ClusterProgress
from tres_scrapy.cluster.record_join import JoinedRecord
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export.metrics import registry_of, serve, write_metrics
from tres_scrapy.extensions.dashboard import listening
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import RecordError
from tres_scrapy.url.message import plainly

WATCHED: Final = 2.0  # seconds between two looks at the records of the shards for the live page,
UNWATCHED: Final = 10.0  # and without one
BETWEEN_FILES: Final = 15  # states between two writes of the file of metrics

logger = logging.getLogger(__name__)


class ClusterView:
    """What a person or a program can see of a crawl, from its start to its end.

    Raise ConfigError if a port is taken.
    """

    def __init__(self, config: Config, plan: Plan, output: Path) -> None:
        self.progress = ClusterProgress(config.watch.progress_interval)
        self.is_whole = False  # whether the last snapshots of all shards were fetched
        self._config = config
        self._plan = plan
        self._output = output
        self._page: ClusterPage | None = None
        self._joining: Joining | None = None
        self._states = 0
        self._socket: socket | None = None
        self._last: Overview | None = None
        if config.watch.dashboard is not None:
            if not config.watch.record:
                raise ConfigError("TRES_DASHBOARD shows the record of the crawl: it needs record=1")
            self._socket = listening(config.watch.dashboard)
        labels = {"topic": str(config.topic), "policy": config.policy}
        self._collector = ClusterCollector(labels)
        self._registry = registry_of(self._collector)
        _, self._stop_metrics = serve(config.output, self._registry)
        self._write_metrics(must=True)

    @contextmanager
    def of(self, driver: Driver, facts: Mapping[str, str]) -> Iterator[None]:
        """Keep a record while a driver crawls, and serve the live page if it is asked for.

        At the end `facts` of the whole crawl enter the record, and the report is written.
        """
        if self._config.watch.record:
            self._begin(driver)
        try:
            yield
        except BaseException:
            self._end([])
            raise
        self._end([self._output, *self._close_record(facts)])

    def show(self, overview: Overview) -> None:
        """Take the state of the crawl."""
        self.progress.show(overview)
        self._collector.overview = self._last = overview
        if self._page is not None:
            self._page.state.show(overview)
        if self._joining is not None and overview.statuses:
            self._joining.look()
        self._states += 1
        if not self._states % BETWEEN_FILES:
            self._write_metrics()

    def _begin(self, driver: Driver) -> None:
        period = UNWATCHED if self._socket is None else WATCHED
        plan = self._plan
        self._joining = Joining(plan.job, plan.shards, self._output, driver.parts, period)
        if self._socket is not None:
            record = self._joining.path
            self._page = ClusterPage(self._config, plan.shards, record, driver, self._socket)

    def _end(self, files: Sequence[Path]) -> None:
        if self._joining is not None:
            self._joining.close()
        self._write_metrics()
        self._stop_metrics()
        if self._page is not None:
            reason = self._last.finish if self._last is not None and self._last.finish else FAILED
            self._page.close(reason, [str(path) for path in files])

    def _close_record(self, facts: Mapping[str, str]) -> list[Path]:
        """Join the records of the shards once more; return the files written."""
        if self._joining is None:
            return []
        self._joining.close()
        if self.is_whole:  # the record may have pages that a restored shard has forgotten
            self._joining.path.unlink(missing_ok=True)
        try:
            path = join_shards(self._plan.job, self._output, at_once=True)
            if path is None:
                self._joining.path.unlink(missing_ok=True)  # no shard has fetched a page
                return []
            with JoinedRecord(path, self._plan.shards, self._output) as joined:
                joined.note(**facts)
            page = _report(path) if self._config.watch.report else None
        except (OSError, RecordError) as error:
            logger.error("The record of all shards cannot be written: %s", plainly(error))
            return []
        return [path] if page is None else [page, path]

    def _write_metrics(self, *, must: bool = False) -> None:
        if self._config.output.metrics_file is not None:
            write_metrics(self._config.output.metrics_file, self._registry, must=must)


def _report(record: Path) -> Path:
    """Write the report beside a record; return its path."""
    # imported here because the templates are slow to import
    from tres_scrapy.report.crawl_report import SUFFIX, write_report  # noqa: PLC0415

    page = record.with_suffix(SUFFIX)
    with Record(record) as read:
        write_report(read, page)
    here = Path.cwd()
    shown = page.relative_to(here) if page.is_relative_to(here) else page
    logger.info("The report of the crawl is %s", shown)
    return page
