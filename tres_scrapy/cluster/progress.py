"""The progress of a crawl on many machines, in the log or in one line of the terminal."""

from __future__ import annotations

import logging
import sys
from time import monotonic
from typing import Final

from tqdm import tqdm

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import SNAPSHOT_ERROR
from tres_scrapy.crawl.pace import Pace
from tres_scrapy.extensions.terminal import TerminalLine
from tres_scrapy.url.message import plural

logger = logging.getLogger(__name__)

START_UP: Final = 60.0  # seconds that a shard may take until its first report
EVERY: Final = 10.0  # seconds between two lines of the log


class ClusterProgress:
    """Shows the state of a crawl: a live line in a terminal, else a line of the log at times."""

    def __init__(self, interval: float = EVERY) -> None:
        self._interval = interval
        self._line = TerminalLine(sys.stderr) if sys.stderr.isatty() else None
        self._pace: Pace | None = None
        self._begun = self._logged = monotonic()
        self._gone: set[int] = set()
        self._failing: dict[int, str] = {}  # why shards have no new snapshot

    def show(self, overview: Overview) -> None:
        """Show the state of the crawl."""
        now = monotonic()
        if overview.is_complete:
            self._pace = self._pace or Pace(overview.pages, now)
            self._pace.note(overview.pages, now)
        self._note_gone(self._away(overview, now))
        self._note_failing(overview)
        parts = described(overview, self._pace)
        if self._line is not None:
            self._line.show(*parts)
        elif now - self._logged >= self._interval:
            self._logged = now
            logger.info(", ".join(parts))

    def close(self, overview: Overview) -> None:
        """Remove the live line and log the last state."""
        if self._line is not None:
            self._line.close()
        if overview.statuses:
            logger.info(", ".join(described(overview, self._pace, closing=True)))

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


def described(overview: Overview, pace: Pace | None, *, closing: bool = False) -> list[str]:
    """Return the progress as short texts, the most important first.

    `pace` is None until every shard has reported, for only then the pages of now are known.
    """
    if not (overview.is_complete or closing):
        return [f"starting: {len(overview.statuses)} of {overview.shards} shards report"]
    pages, relevant = overview.pages, overview.sum("relevant_pages")
    left = None if closing or pace is None else pace.left(overview.total)
    rate = 0.0 if pace is None else pace.overall if closing else pace.recent
    since = " since this start" if closing and pace is not None and pace.is_resumed else ""
    domains = overview.sum("relevant_domains")
    of_total = "" if overview.total is None else f"/{overview.total:,}"
    running = len(overview.statuses) - len(overview.gone())
    of_all = "" if running == overview.shards else f" of {overview.shards}"
    parts = [
        f"{pages:,}{of_total} pages",
        "" if left is None else f"{tqdm.format_interval(left)} left",
        f"harvest rate {100 * relevant / max(1, pages):.1f} %",
        f"{domains:,.0f} {plural(domains, 'relevant domain')}",
        f"{rate:.1f} pages/s{since}" if pace is not None else "",
        f"frontier {overview.sum('frontier_size'):,.0f}",
        f"{running}{of_all} {plural(overview.shards, 'shard')}",
    ]
    return [part for part in parts if part]
