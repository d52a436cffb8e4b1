"""Writes what a crawl shows of itself into its file: its settings, curve, health and snapshots."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Self

import numpy as np

from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.crawl.share import Holder, Shares
from tres_scrapy.frontier.admission import OUT_OF_SCOPE
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.page_row import link_learner_of
from tres_scrapy.run.run_file import FINAL, OUT, HealthPoint, open_to_write
from tres_scrapy.run.snapshot import (
    DEPENDENCE,
    DOORS,
    HOLDER,
    LINKS,
    TREE,
    dependence,
    snapshot_of,
    strongest,
    tree_of,
)
from tres_scrapy.url.message import below

RIVALS_KEPT: Final = 10_000  # last pages whose rivals are kept
CURVE: Final = 200  # a new point of the curve after another 1/200 of the pages
PERIOD: Final = 10.0  # least seconds between two snapshots,
COST: Final = 200  # and least multiple of the time that the last snapshot took
DRAWN: Final = 128  # number of last samples used for the dependence of Q on a feature
_CURVE: Final = f"INSERT OR REPLACE INTO curve VALUES ({', '.join('?' * 9)})"  # noqa: S608


class Writer:
    """Writes one run of a crawl into its file; times are seconds since 1970."""

    def __init__(self, journal: Journal, crawl: Crawl, time: float) -> None:
        self.journal = journal
        self.holder: Holder | None = None  # at the last snapshot
        self._crawl = crawl
        self._written = 0  # steps at the last flush
        self._point = time, crawl.pages  # of the curve, the last one
        self._due = crawl.pages  # pages at the next point
        self._next_snapshot = time

    @classmethod
    def open(
        cls,
        path: Path,
        crawl: Crawl,
        meta: Mapping[str, str],
        settings: Mapping[str, str],
        time: float,
        *,
        keeps_texts: bool = True,
    ) -> Self:
        """Create the file of a crawl that is not resumed; raise RecordError if that fails."""
        journal = Journal(open_to_write(path), is_durable=False, keeps_texts=keeps_texts)
        writer = cls(journal, crawl, time)
        writer.begin(meta, settings, time)
        return writer

    def begin(self, meta: Mapping[str, str], settings: Mapping[str, str], time: float) -> None:
        """Note that the crawl starts, perhaps again."""
        with self.journal.transaction() as cursor:
            self._write_meta(cursor, **meta)
            cursor.execute(
                "INSERT INTO meta VALUES ('starts', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = value || ' ' || excluded.value",
                (f"{time:.3f}",),
            )
            cursor.execute(
                "INSERT OR REPLACE INTO meta SELECT ?, value FROM meta WHERE name = ?", (OUT, FINAL)
            )
            cursor.execute(
                "DELETE FROM meta "
                "WHERE name IN ('ended', 'reason', 'left', 'gone', 'reach', 'labels', 'final')"
            )
            cursor.execute("DELETE FROM setting")
            cursor.executemany("INSERT INTO setting VALUES (?, ?)", settings.items())
        self.journal.commit()

    def note(self, booking: Booking, now: float | None = None) -> None:
        """Add a booking of a crawl without JOBDIR; the next flush commits it."""
        self.journal.book(self._crawl, booking, now=now)

    def flush(self, time: float, *, last: bool = False) -> None:
        """Commit the bookings, with the curve and the snapshots if they are due."""
        steps = self.journal.steps
        if steps == self._written and not last:
            return
        with self.journal.transaction(self._crawl) as cursor:
            cursor.execute("DELETE FROM rivals WHERE step <= ?", (steps - RIVALS_KEPT,))
            if last or self._crawl.pages >= self._due:
                self._write_point(cursor, steps, time)
            if last or time >= self._next_snapshot:
                self._write_snapshots(cursor, steps, time)
            refused = json.dumps(below(self._crawl.counts, OUT_OF_SCOPE))
            self._write_meta(cursor, written=f"{time:.3f}", refused=refused)
        self.journal.commit()
        self._written = steps

    def note_health(self, health: HealthPoint) -> None:
        """Write memory and answers of this moment."""
        with self.journal.transaction() as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO health VALUES (?, ?, ?)",
                (health.time, health.memory, json.dumps(health.answers)),
            )

    def finish(self, time: float, reason: str, **facts: str) -> None:
        """Write the rest, why the crawl ended and facts of that."""
        with self.journal.transaction() as cursor:
            self._write_meta(cursor, ended=f"{time:.3f}", reason=reason, **facts)
        self.flush(time, last=True)

    def close(self, time: float, reason: str, **facts: str) -> None:
        """Write the rest and leave a single file."""
        try:
            self.finish(time, reason, **facts)
        finally:
            self.journal.close_alone()

    def _write_point(self, cursor: sqlite3.Cursor, steps: int, time: float) -> None:
        crawl, (before, pages) = self._crawl, self._point
        tree = tree_of(crawl.policy)
        rate = (crawl.pages - pages) / max(time - before, 1e-3)
        cursor.execute(
            _CURVE,
            (
                steps,
                time,
                crawl.pages,
                crawl.relevant,
                crawl.store.ledger.relevant_domains,
                crawl.store.pending,
                None if tree is None else len(tree),
                round(rate, 3),
                crawl.loss,
            ),
        )
        self._point = time, crawl.pages
        self._due = crawl.pages + max(1, crawl.pages // CURVE)

    def _write_snapshots(self, cursor: sqlite3.Cursor, steps: int, time: float) -> None:
        start, policy = perf_counter(), self._crawl.policy
        shares = Shares(self._crawl)
        self.holder = shares.holder
        found: dict[str, Any] = {DOORS: shares.doors(), HOLDER: self.holder}
        if (tree := tree_of(policy)) is not None:
            found[TREE] = snapshot_of(tree)
        if policy.learns_q and steps:
            last = cursor.execute("SELECT x FROM page ORDER BY step DESC LIMIT ?", (DRAWN,))
            x = np.frombuffer(b"".join(x for (x,) in last), "<f4")
            found[DEPENDENCE] = dependence(policy, x.reshape(-1, len(FEATURES)))
        if (learner := link_learner_of(policy)) is not None:
            found[LINKS] = strongest(learner, self._crawl.store.names)
        cursor.executemany(
            "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)",
            [(name, steps, json.dumps(value)) for name, value in found.items()],
        )
        self._next_snapshot = time + max(PERIOD, COST * (perf_counter() - start))

    def _write_meta(self, cursor: sqlite3.Cursor, **values: str) -> None:
        cursor.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def resident_memory() -> int | None:
    """Return the bytes that this process and its children hold, None where /proc is missing.

    Memory that processes share counts once for each.
    """
    waiting, found = [os.getpid()], 0
    while waiting:
        process = Path("/proc", str(waiting.pop()))
        try:
            found += int((process / "statm").read_text().split()[1])
            for file in (process / "task").glob("*/children"):
                waiting += map(int, file.read_text().split())
        except OSError:  # it has just ended
            continue
    return found * os.sysconf("SC_PAGE_SIZE") or None
