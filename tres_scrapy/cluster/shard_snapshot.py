"""Takes snapshots of a shard while it crawls, in another thread."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tres_scrapy.cluster.line import FILE, LINE, RUN, STEPS, Line
from tres_scrapy.cluster.plan import OUTPUT
from tres_scrapy.cluster.shard_journal import Held, ShardJournal, back_up, held_in
from tres_scrapy.cluster.snapshot_store import OvertakenError, SnapshotError, SnapshotFolder
from tres_scrapy.export.archive import ENDING
from tres_scrapy.export.csv_table import PAGES
from tres_scrapy.export.output_file import beside
from tres_scrapy.report.record_path import PART
from tres_scrapy.run.run_file import NAME

COST: Final = 4  # the next snapshot begins after this many times what the last one took
AGAIN: Final = 5.0  # seconds after which a snapshot that failed is tried again
LAST: Final = 300.0  # seconds in which the last one must succeed
NOTHING: Final = Held(-1, {}, -1, {})

logger = logging.getLogger(__name__)


class ShardSnapshots:
    """Copies a shard to its snapshots every `period` seconds, or less often if that takes long.

    `take_if_due` and `stop` are called in the reactor, `finish` when the crawl is over.
    """

    def __init__(
        self, folder: Path, snapshots: SnapshotFolder, line: Line, epoch: int, period: float
    ) -> None:
        self.epoch = epoch
        self.forks = line.forks
        self.is_overtaken = False
        self.error = ""  # why the last snapshot failed
        self._folder = folder
        self._part = folder / f"snapshot{PART}"
        self._snapshots = snapshots
        self._line = line
        self._period = period
        self._durable = NOTHING  # what the last snapshot holds
        self._due = monotonic() + period
        self._taken = monotonic()  # when the last snapshot was
        self._thread: threading.Thread | None = None
        self._copied = threading.Event()  # whether the journal is not being copied
        self._stopping = False

    @property
    def is_restored(self) -> bool:
        """Whether this owner began with a snapshot."""
        return bool(self.forks) and self.forks[-1][0] == self.epoch and bool(self.forks[-1][1])

    @property
    def outputs(self) -> list[Path]:
        """The files of a shard that only grow, some of which may not exist."""
        output = self._folder / OUTPUT
        return [output, beside(output, PAGES), beside(output, ENDING)]

    @property
    def age(self) -> float:
        """The seconds since the last snapshot, or since the start."""
        return monotonic() - self._taken

    def durable(self, sender: int) -> int:
        """Return the number of the last batch of a shard that a snapshot holds."""
        return self._durable.received.get(sender, 0)

    def holds(self, changes: int) -> bool:
        """Return whether the last snapshot holds the journal after so many changes."""
        return self._durable.changes == changes

    def take_if_due(self, journal: ShardJournal, *, at_once: bool = False) -> None:
        """Begin a snapshot if it is time, or `at_once` if the last one is not of this state."""
        if self._stopping or (self._thread is not None and self._thread.is_alive()):
            return
        wanted = at_once and not self.error and not self.holds(journal.changes)
        if wanted or monotonic() >= self._due:
            self._due = monotonic() + AGAIN  # unless it succeeds
            self._copied.clear()
            self._thread = threading.Thread(
                target=self._run, args=(journal.database,), name="tres-snapshot", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End a snapshot that is being taken, before the journal is closed."""
        self._stopping = True
        if self._thread is not None:
            self._copied.wait()

    def finish(self, run: str) -> None:
        """Take the last snapshot of a crawl that is over; raise SnapshotError.

        `run` is noted in it, by which the driver knows that it has everything.
        """
        if self._thread is not None:
            self._thread.join()
        until, self._stopping = monotonic() + LAST, False
        while not self.is_overtaken:
            try:
                with closing(sqlite3.connect(self._folder / NAME)) as journal:
                    self._take(journal, run)
                shutil.rmtree(self._part, ignore_errors=True)
                return
            except OvertakenError:
                self.is_overtaken = True
            except SnapshotError as error:
                if monotonic() > until:
                    raise
                logger.error("The last snapshot failed and is tried again: %s", error)
                sleep(AGAIN)

    def _run(self, journal: sqlite3.Connection) -> None:
        begun = monotonic()
        try:
            self._take(journal)
            shutil.rmtree(self._part, ignore_errors=True)
            end, self.error = monotonic(), ""
            self._taken = end
            self._due = max(begun + self._period, end + COST * (end - begun))
        except OvertakenError:
            self.is_overtaken = True
        except Exception as error:  # the disk, the storage
            if not self._stopping:
                self.error = str(error) or type(error).__name__
                logger.error("No snapshot, it is tried again in %.0f s: %s", AGAIN, error)
        finally:
            self._copied.set()

    def _take(self, journal: sqlite3.Connection, run: str = "") -> None:
        """Copy the file of the run and send it with what has grown."""
        part = self._part
        part.mkdir(exist_ok=True)
        back_up(journal, part / NAME, self._check)
        self._copied.set()
        held = held_in(part / NAME)
        files: dict[str, tuple[Path, int | None]] = {NAME: (part / NAME, None)}
        files |= self._rest() if run else self._grown(held.lengths)
        facts = {LINE: self._line.facts, STEPS: held.steps, RUN: run}
        self._snapshots.write(files, facts, self._check)
        self._durable = held

    def _grown(self, lengths: Mapping[str, int]) -> dict[str, tuple[Path, int | None]]:
        return {
            file.name: (file, lengths[file.name]) for file in self.outputs if lengths.get(file.name)
        }

    def _rest(self) -> dict[str, tuple[Path, int | None]]:
        """Return the files of a shard that has ended, beside that of its run."""
        others = (NAME, FILE)
        found = [file for file in self._folder.iterdir() if file.is_file()]
        return {file.name: (file, None) for file in found if not file.name.startswith(others)}

    def _check(self) -> None:
        if self._stopping:
            raise InterruptedError("the crawl ends")
