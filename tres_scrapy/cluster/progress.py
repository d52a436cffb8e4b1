"""The progress of a crawl on many machines, in the log or in one line of the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from time import monotonic
from typing import Final

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import SNAPSHOT_ERROR
from tres_scrapy.extensions.terminal import TerminalLine
from tres_scrapy.live.state import CrawlState, Monitor
from tres_scrapy.url.message import plural

logger = logging.getLogger(__name__)

START_UP: Final = 60.0  # seconds that a shard may take until its first report
EVERY: Final = 10.0  # seconds between two lines of the log


class ClusterProgress:
    """Shows the state of a crawl: a live line in a terminal, else a line of the log at times.

    `limit` is the number of pages wanted, of all `shards`. The `monitor` has the state shown.
    """

    def __init__(
        self,
        limit: int | None,
        shards: int,
        interval: float = EVERY,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.monitor = Monitor(CrawlState({}, limit, shards), clock)
        self._interval = interval
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
        elif now - self._logged >= self._interval:
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
