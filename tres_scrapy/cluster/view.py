"""Shows a crawl in shards as one: its progress, record, live page, metrics and report."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import urlsplit

from tres_scrapy.cluster.coordinator import FAILED, Overview
from tres_scrapy.cluster.driver import Driver
from tres_scrapy.cluster.joining import Joining, join_shards
from tres_scrapy.cluster.message import SNAPSHOT_ERROR
from tres_scrapy.cluster.plan import Plan
from tres_scrapy.cluster.record_join import JoinedRecord
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import seeds
from tres_scrapy.export.metrics import Metric, MetricsExport
from tres_scrapy.extensions.terminal import TerminalLine
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.resource import LivePage, listening
from tres_scrapy.live.state import CrawlState, Monitor
from tres_scrapy.live.steering import (
    ENDING,
    PAUSED,
    RUNNING,
    ControlError,
    Steering,
    require_public,
)
from tres_scrapy.live.view import FAREWELL, TICK, PageState, View
from tres_scrapy.report.record_path import ENDS
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.url.message import plainly, plural


class ClusterPage:
    """The live page, with a reactor in a thread of its own."""

    def __init__(
        self,
        config: Config,
        monitor: Monitor,
        record: Path,
        control: ClusterControl,
        listener: socket,
    ) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        self._reactor: Any = reactor
        self._state = PageState(config, control, lambda: monitor)
        view = View(record, Answering.beside(record))
        self._page = LivePage(control, view, self._state, reactor)
        self._reactor.callWhenRunning(self._page.serve, listener)
        self._thread = Thread(target=self._run, name="live-page-server", daemon=True)
        self._thread.start()

    def close(self, reason: str, files: Sequence[Path]) -> None:
        """Tell an open page why the crawl has ended, and end."""
        self._state.end(ENDS.get(reason, reason), files)
        while not self._state.is_told:
            sleep(TICK)
        self._reactor.callFromThread(self._stop)
        self._thread.join(FAREWELL)
        self._page.close()

    def _run(self) -> None:
        self._reactor.run(installSignalHandlers=False)

    def _stop(self) -> None:
        self._page.stop()
        self._reactor.stop()


class ClusterControl(Steering):
    """Steers a crawl in shards; a shard that is away obeys when it is back.

    `ends` says whether the crawl ends.
    """

    def __init__(self, driver: Driver, ends: Callable[[], bool], config: Config) -> None:
        self._driver = driver
        self._ends = ends
        self._only_public = not config.download.private_addresses
        self._paused = self._stopped = False
        self._cap = config.max_per_domain

    @property
    def state(self) -> str:
        """RUNNING, PAUSED or ENDING."""
        if self._stopped or self._ends():
            return ENDING
        return PAUSED if self._paused else RUNNING

    @property
    def cap(self) -> Cap | None:
        """MAX, None without one."""
        return self._cap

    def _pause(self) -> None:
        self._paused = True
        self._driver.command("pause")

    def _resume(self) -> None:
        self._paused = False
        self._driver.command("resume")

    def _stop(self) -> None:
        self._stopped = True
        self._driver.stop()

    def _add_seeds(self, text: str) -> str:
        """Have the owner of each seed's domain fetch it next; it says in its log if it cannot."""
        try:
            urls = seeds(text)
        except ValueError as error:
            raise ControlError(f"A seed {error}") from None
        for host in {urlsplit(url).hostname or "" for url in urls} if self._only_public else ():
            require_public(host)
        self._driver.command("add_seed", ",".join(urls))
        return ", ".join(urls)

    def _change_cap(self, cap: Cap | None) -> str:
        """Set MAX in each shard: one number, or none."""
        if cap is not None and cap.first != cap.last:
            raise ControlError(f"MAX {cap}: a crawl in shards needs one number, or none")
        self._cap = cap
        self._driver.command("change_max", "none" if cap is None else str(cap))
        return ""

    def _distrust(self, site: str) -> str:
        raise ControlError(
            "No shard knows all links of a site: stop the crawl, and resume it with "
            f"denied_domains={site}"
        )


WATCHED: Final = 2.0  # seconds between two looks at the records of the shards for the live page,
UNWATCHED: Final = 10.0  # and without one
# With a label `shard`. The names are not those of the sums, so that sum() counts nothing twice.
SHARD_METRICS: Final = (
    Metric("tres_shard_pages_total", "pages", "Pages fetched and judged."),
    Metric("tres_shard_relevant_pages_total", "relevant_pages", "Relevant pages."),
    Metric("tres_shard_frontier_links", "frontier_size", "Links waiting in the frontier."),
    Metric("tres_shard_outbox_parcels", "outbox", "Batches of links not yet delivered."),
    Metric("tres_shard_sent_bytes_total", "bytes_sent", "Bytes sent to others."),
    Metric("tres_shard_last_q", "last_q", "Q of the last chosen link."),
    Metric("tres_shard_report_age_seconds", "report_age", "Time since its last report."),
    Metric("tres_shard_snapshot_age_seconds", "snapshot_age", "Time since its snapshot."),
)
START_UP: Final = 60.0  # seconds that a shard may take until its first report
EVERY: Final = 10.0  # seconds between two lines of the log

logger = logging.getLogger(__name__)


class ClusterView:
    """What a person or a program can see of a crawl, from its start to its end.

    Raise ConfigError if a port is taken.
    """

    def __init__(self, config: Config, plan: Plan, output: Path) -> None:
        self.progress = ClusterProgress(config.pages, plan.shards)
        self.is_whole = False  # whether the last snapshots of all shards were fetched
        self._config = config
        self._plan = plan
        self._output = output
        self._page: ClusterPage | None = None
        self._joining: Joining | None = None
        self._finish = ""  # why the crawl ends
        self._socket = None if config.watch.dashboard is None else listening(config.watch)
        self._metrics = MetricsExport(config, shard_metrics=SHARD_METRICS)

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
        self._finish = overview.finish
        self.progress.show(overview)
        self._metrics.show(self.progress.monitor.state)
        if self._joining is not None and overview.statuses:
            self._joining.look()

    def _begin(self, driver: Driver) -> None:
        period = UNWATCHED if self._socket is None else WATCHED
        plan = self._plan
        self._joining = Joining(plan.job, plan.shards, self._output, driver.parts, period)
        if self._socket is not None:
            record = self._joining.path
            control = ClusterControl(driver, lambda: bool(self._finish), self._config)
            monitor = self.progress.monitor
            self._page = ClusterPage(self._config, monitor, record, control, self._socket)

    def _end(self, files: Sequence[Path]) -> None:
        if self._joining is not None:
            self._joining.close()
        self._metrics.close()
        if self._page is not None:
            self._page.close(self._finish or FAILED, files)

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


class ClusterProgress:
    """Shows the state of a crawl: a live line in a terminal, else a line of the log at times.

    `limit` is the number of pages wanted, of all `shards`. The `monitor` has the state shown.
    """

    def __init__(
        self,
        limit: int | None,
        shards: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.monitor = Monitor(CrawlState({}, limit, shards), clock)
        self._clock = clock
        self._line = TerminalLine(sys.stderr) if sys.stderr.isatty() else None
        self._begun = self._logged = clock()
        self._gone: set[int] = set()
        self._failing: dict[int, str] = {}  # why shards have no new snapshot

    def show(self, overview: Overview) -> None:
        """Show the state of the crawl."""
        self.monitor.take(overview.state)
        now = self._clock()
        self._note_gone(self._away(overview, now))
        self._note_failing(overview)
        if self._line is not None:
            self._line.show(*self._described(overview, short=True))
        elif now - self._logged >= EVERY:
            self._logged = now
            logger.info(", ".join(self._described(overview)))

    def close(self, overview: Overview) -> None:
        """Remove the live line and log the last state."""
        self.monitor.take(overview.state)
        if self._line is not None:
            self._line.close()
        if overview.statuses:
            logger.info(", ".join(self._described(overview, closing=True)))

    def _described(
        self, overview: Overview, *, closing: bool = False, short: bool = False
    ) -> list[str]:
        if not (self.monitor.state.is_complete or closing):
            return [f"starting: {len(overview.statuses)} of {overview.shards} shards report"]
        running = len(overview.statuses) - len(overview.gone())
        of_all = "" if running == overview.shards else f" of {overview.shards}"
        parts = self.monitor.described(closing=closing, short=short)
        return [
            *filter(None, parts),
            f"{running}{of_all} {plural(overview.shards, 'shard')}",
        ]

    def _away(self, overview: Overview, now: float) -> set[int]:
        """Return the shards that do not report, but should."""
        if overview.finish:
            return set()
        late = bool(overview.statuses) and now - self._begun > START_UP
        silent = set(range(overview.shards)) - overview.statuses.keys() if late else set()
        return silent.union(overview.gone())

    def _note_gone(self, gone: set[int]) -> None:
        for shard in sorted(gone - self._gone):
            logger.warning("Shard %d does not report; the others go on", shard)
        for shard in sorted(self._gone - gone):
            logger.info("Shard %d reports again", shard)
        self._gone = gone

    def _note_failing(self, overview: Overview) -> None:
        for shard, status in overview.statuses.items():
            before = self._failing.get(shard, "")
            error = self._failing[shard] = str(status.figures.get(SNAPSHOT_ERROR, ""))
            if error and not before:
                logger.warning("Shard %d has no new snapshot, and tries again: %s", shard, error)
            elif before and not error:
                logger.info("Shard %d has a new snapshot", shard)


def _report(record: Path) -> Path:
    """Write the report beside a record; return its path."""
    # imported here because the templates are slow to import
    from tres_scrapy.report.crawl_report import report_beside  # noqa: PLC0415

    page = report_beside(record)
    here = Path.cwd()
    shown = page.relative_to(here) if page.is_relative_to(here) else page
    logger.info("The report of the crawl is %s", shown)
    return page
