"""Snapshots of a shard: taken while it crawls, in another thread, and brought to its next owner."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tres_scrapy.cluster.outbox import Outbox
from tres_scrapy.cluster.shard_journal import lengths_in
from tres_scrapy.cluster.snapshot_store import OvertakenError, SnapshotFolder
from tres_scrapy.report.record_path import PART
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

EPOCHS: Final = "epochs"  # the file in the folder of a shard that names its owners
COST: Final = 4  # the next snapshot begins after this many times what the last one took
AGAIN: Final = 5.0  # seconds after which a snapshot that failed is tried again
STEP: Final = 64  # pages of a database that are copied at once, in less than a millisecond
PAUSE: Final = 0.001  # seconds between two of these steps, in which the writer goes on

logger = logging.getLogger(__name__)


class ShardSnapshots:
    """Copies a shard to its snapshots every `period` seconds, or less often if that takes long.

    `take_if_due` and `wait` are called in the reactor, `finish` when the crawl is over.
    """

    def __init__(self, folder: Path, snapshots: SnapshotFolder, period: float) -> None:
        self.epoch = snapshots.epoch
        self.is_overtaken = False
        self.error = ""  # why the last snapshot failed
        self._folder = folder
        self._snapshots = snapshots
        self._period = period
        self._durable: dict[int, int] = {}  # by sender, the last batch that a snapshot holds
        self._held = -1  # changes of the journal that the last snapshot holds
        self._taken = monotonic()  # when the last snapshot was
        self._due = self._taken + period
        self._thread = threading.Thread()

    @property
    def age(self) -> float:
        """The seconds since the last snapshot, or since the start."""
        return monotonic() - self._taken

    def durable(self, sender: int) -> int:
        """Return the number of the last batch of a shard that a snapshot holds."""
        return self._durable.get(sender, 0)

    def holds(self, journal: sqlite3.Connection) -> bool:
        """Return whether the last snapshot holds all that a journal does."""
        return self._held == journal.total_changes

    def take_if_due(
        self, journal: sqlite3.Connection, outbox: Outbox, *, at_once: bool = False
    ) -> None:
        """Begin a snapshot if it is time, or `at_once` if the last one is not of this state."""
        wanted = at_once and not self.error and not self.holds(journal)
        if not self._thread.is_alive() and (wanted or monotonic() >= self._due):
            given = journal, journal.total_changes, dict(outbox.received)
            self._thread = threading.Thread(target=self._run, args=given, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for a snapshot that is being taken, before the journal is closed."""
        if self._thread.is_alive():
            self._thread.join()

    def finish(self, run: str) -> None:
        """Take the last snapshot of a crawl that is over, with all files; raise an error.

        `run` is noted in it, by which the driver knows that it has everything.
        """
        with closing(sqlite3.connect(self._folder / NAME)) as journal:
            self._take(journal, run)

    def _run(self, journal: sqlite3.Connection, changes: int, received: dict[int, int]) -> None:
        begun = monotonic()
        try:
            self._take(journal)
            self._held, self._durable, self.error = changes, received, ""
            self._taken = monotonic()
            self._due = max(begun + self._period, self._taken + COST * (self._taken - begun))
        except OvertakenError:
            self.is_overtaken = True
        except Exception as error:  # the disk, the storage
            self._due, self.error = monotonic() + AGAIN, str(error) or type(error).__name__
            logger.error("No snapshot, it is tried again in %.0f s: %s", AGAIN, error)

    def _take(self, journal: sqlite3.Connection, run: str = "") -> None:
        """Copy the file of the run and send it with what has grown."""
        part = self._folder / f"snapshot{PART}"
        part.mkdir(exist_ok=True)
        back_up(journal, part / NAME)
        files: dict[str, tuple[Path, int | None]] = {NAME: (part / NAME, None)}
        if run:
            rest = [file for file in self._folder.iterdir() if file.is_file()]
            others = NAME, EPOCHS
            files |= {file.name: (file, None) for file in rest if not file.name.startswith(others)}
        else:
            lengths = lengths_in(part / NAME)
            files |= {name: (self._folder / name, size) for name, size in lengths.items() if size}
        self._snapshots.write(files, run)
        shutil.rmtree(part)


def back_up(source: sqlite3.Connection, target: Path) -> None:
    """Copy a database to a new file, in small steps, while its connection goes on writing.

    The copy is of one moment between two transactions. The connection may write in another thread
    if it was opened for that.
    """
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")  # a torn copy is never used
        copy.execute("PRAGMA synchronous = OFF")
        source.backup(copy, pages=STEP, progress=lambda *_: sleep(PAUSE), sleep=PAUSE)


def epochs_of(folder: Path) -> set[int]:
    """Return which owners of a shard have begun with the journal in a folder, one after the other.

    That of a crawl which never had snapshots has an owner 0; without a journal there is none.
    """
    if not (folder / NAME).exists():
        return set()
    file = folder / EPOCHS
    return set(map(int, file.read_text().split())) if file.exists() else {0}


def take_over(folder: Path, snapshots: SnapshotFolder, begin: Callable[[int], int]) -> None:
    """Bring the folder of a shard to the last state that counts, for a new owner.

    `begin` returns the owner's epoch, above a number. The state that counts is that on this disk
    if no other owner has begun since it was brought here; else it is the last snapshot: the other
    may have sent links, under higher numbers than those that wait on this disk. Raise TresError if
    a journal is there that has nothing to do with the snapshots, OvertakenError with a newer owner.
    """
    own = epochs_of(folder)
    epoch = begin(max(own | snapshots.epochs(), default=0))
    if own:  # noted first: if the claim fails, this disk still holds the last state
        _note(folder, own | {epoch})
    snapshots.claim(epoch)
    others = snapshots.epochs() - own - {epoch}
    if own and max(others, default=-1) < min(own):
        _note(folder, {epoch})
        return
    if 0 in own:
        raise TresError(
            f"{folder} holds another crawl than the snapshots in {snapshots.url}: give another "
            "directory"
        )
    snapshot = snapshots.latest()
    with _replaced(folder) as part:
        if snapshot is not None:
            snapshots.fetch(snapshot, part)
        _note(part, {epoch})


def gather(folder: Path, snapshots: SnapshotFolder, run: str) -> bool:
    """Fetch what a shard has written until it ended, unless it is here.

    Return False if it has not taken its last snapshot in a run of the crawl.
    """
    snapshot = snapshots.latest()
    if snapshot is None or snapshot.run != run:
        return False
    if snapshot.epoch not in epochs_of(folder):
        with _replaced(folder) as part:
            snapshots.fetch(snapshot, part)
            _note(part, {snapshot.epoch})
    return True


def _note(folder: Path, epochs: set[int]) -> None:
    with whole_file(folder / EPOCHS) as file:
        file.write(" ".join(map(str, sorted(epochs))).encode())


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Replace a folder by a new one at once, when all is written to that."""
    part = folder.with_name(f"{folder.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    (folder / NAME).unlink(missing_ok=True)  # first: without its epochs it would be another crawl
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
