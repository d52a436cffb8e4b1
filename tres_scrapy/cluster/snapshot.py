"""Snapshots of shards in a storage that all nodes reach: written and found.

A snapshot is a copy of a shard's file of a run, its output files, and their list, which is written
last. Its name begins with the epoch of the shard's owner: the latest snapshot is that of the
highest epoch. An owner first leaves its claim, then looks for the latest snapshot. It writes a
snapshot, then looks for claims: without a newer one, each newer owner will find this snapshot, so
that what it holds can be confirmed. The storage must list a new file at once, as object stores do.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

import fsspec

from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.report.record_path import PART
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError, first_line

BLOCK: Final = 2**20  # bytes that are sent at once
CRAWL: Final = "crawl.json"  # at the URL: the identity of the crawl and its last run
CLAIM, SNAPSHOT = ".claim", ".snapshot"  # ends of names
EPOCH: Final = 10  # digits of an epoch
EPOCHS: Final = "epochs"  # the file in the folder of a shard that names its owners
COST: Final = 4  # the next snapshot begins after this many times what the last one took
AGAIN: Final = 5.0  # seconds after which a snapshot that failed is tried again

logger = logging.getLogger(__name__)


class OvertakenError(TresError):
    """Raised when an owner, that of an `epoch`, has been followed by another process."""

    def __init__(self, url: str, epoch: int) -> None:
        super().__init__(f"{url} has another owner")
        self.epoch = epoch


class Snapshot(NamedTuple):
    """A snapshot: the bytes of its files by name, and the run of the crawl that it ended, or ""."""

    epoch: int
    name: str
    sizes: Mapping[str, int]
    run: str


def crawl_at(url: str) -> dict[str, Any]:
    """Return the identity and the last `run` of the crawl at a URL, empty without one."""
    files, path = fsspec.core.url_to_fs(f"{url}/{CRAWL}")
    files.invalidate_cache()
    data = files.cat_file(path) if files.exists(path) else b"{}"
    try:
        return dict(json.loads(data))
    except (ValueError, TypeError):
        raise TresError(f"--snapshots {url}: {CRAWL} is not a file of TRES") from None


def begin_run(url: str, identity: Mapping[str, str], run: str) -> None:
    """Note that a run of a crawl begins; raise TresError if that is not possible at the URL."""
    try:
        found = crawl_at(url)
        for name, value in identity.items() if found else ():
            if found.get(name) != value:
                raise TresError(
                    f"--snapshots {url} holds a crawl with {name} {found.get(name)!r}, not "
                    f"{value!r}: give another URL"
                )
        files, path = fsspec.core.url_to_fs(url)
        _make(files, path)
        files.pipe_file(f"{path}/{CRAWL}", json.dumps({**identity, "run": run}).encode())
    except TresError:
        raise
    except Exception as error:  # libraries raise many kinds
        text = first_line(error)
        raise TresError(f"--snapshots {url}: {text}") from error


class SnapshotFolder:
    """The snapshots of one shard, for one owner; any error of a library may be raised."""

    epoch = 0
    _claim = ""
    _number = 0  # of snapshots

    def __init__(self, url: str) -> None:
        self.url = url
        self._files, self._path = fsspec.core.url_to_fs(url)

    def epochs(self) -> set[int]:
        """Return the epochs of all owners that are known."""
        return {int(name[:EPOCH]) for name in self._names()}

    def claim(self, epoch: int) -> None:
        """Become the owner with an epoch; raise OvertakenError if a newer one is known."""
        self.epoch = epoch
        self._claim = f"{epoch:0{EPOCH}d}-{secrets.token_hex(8)}{CLAIM}"
        _make(self._files, self._path)
        self._files.pipe_file(f"{self._path}/{self._claim}", b"1")
        self._former()

    def latest(self) -> Snapshot | None:
        """Return the latest snapshot that is whole, None without any."""
        for name in sorted(self._names(), reverse=True):
            if name.endswith(SNAPSHOT):
                data = self._files.cat_file(f"{self._path}/{name}")
                with suppress(ValueError):  # it is torn
                    return Snapshot(int(name[:EPOCH]), name, *json.loads(data))
        return None

    def write(self, files: Mapping[str, tuple[Path, int]], run: str = "") -> None:
        """Write a snapshot of so many first bytes of files; then remove older ones.

        Raise OvertakenError if there is a newer owner: then the snapshot counts for nothing.
        """
        self._number += 1
        name = f"{self.epoch:0{EPOCH}d}-{self._number:0{EPOCH}d}{SNAPSHOT}"
        for each, (file, size) in files.items():
            self._send(file, size, f"{name}-{each}")
        listed = json.dumps([{each: files[each][1] for each in files}, run])
        self._files.pipe_file(f"{self._path}/{name}", listed.encode())
        if old := [each for each in self._former() if not each.startswith(name)]:
            self._files.rm([f"{self._path}/{each}" for each in old])

    def fetch(self, snapshot: Snapshot, folder: Path) -> None:
        """Write the files of a snapshot to a folder; raise TresError if it is damaged."""
        for name, size in snapshot.sizes.items():
            file = folder / Path(name).name
            self._files.get_file(f"{self._path}/{snapshot.name}-{name}", str(file))
            if file.stat().st_size != size:
                raise TresError(f"{self.url} is damaged: {snapshot.name}-{name}")

    def _send(self, file: Path, size: int, name: str) -> None:
        with file.open("rb") as source, self._files.open(f"{self._path}/{name}", "wb") as target:
            while data := source.read(min(size, BLOCK)):
                size -= target.write(data)
        if size:
            raise OSError(f"{file} is shorter than it was")

    def _former(self) -> set[str]:
        """Return the names until this epoch, without the claim; raise OvertakenError."""
        names = self._names() - {self._claim}
        if any(name.endswith(CLAIM) and int(name[:EPOCH]) >= self.epoch for name in names):
            raise OvertakenError(self.url, self.epoch)
        return {name for name in names if int(name[:EPOCH]) <= self.epoch}

    def _names(self) -> set[str]:
        """Return the names of all files that begin with an epoch."""
        self._files.invalidate_cache()
        try:
            found = self._files.ls(self._path, detail=False)
        except FileNotFoundError:
            return set()
        names = {str(path).rpartition("/")[2] for path in found}
        return {name for name in names if name[:EPOCH].isdigit()}


class ShardSnapshots:
    """Copies a shard to its snapshots every `period` seconds, or less often if that takes long.

    All but `finish`, which is called when the crawl is over, is called in the reactor.
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

    def holds(self, journal: ShardJournal) -> bool:
        """Return whether the last snapshot holds all that a journal does."""
        return self._held == journal.database.total_changes

    def is_due(self, journal: ShardJournal, *, at_once: bool = False) -> bool:
        """Return whether it is time, or, if `at_once`, whether the last is not of this state."""
        wanted = at_once and not self.error and not self.holds(journal)
        return not self._thread.is_alive() and (wanted or monotonic() >= self._due)

    def take(self, journal: ShardJournal, outputs: Iterable[Path]) -> None:
        """Begin a snapshot of this moment between two transactions, in another thread.

        All exports must be saved, for of the outputs it has what was written until now.
        """
        reader = sqlite3.connect(self._folder / NAME, isolation_level=None, check_same_thread=False)
        reader.execute("BEGIN")
        reader.execute("SELECT 1 FROM meta").fetchone()  # from now on it reads this moment
        sizes = {file: file.stat().st_size for file in outputs if file.exists()}
        given = reader, sizes, journal.database.total_changes, dict(journal.outbox.received)
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
        files = [file for file in self._folder.iterdir() if file.is_file()]
        outputs = [file for file in files if not file.name.startswith((NAME, EPOCHS))]
        with closing(sqlite3.connect(self._folder / NAME)) as reader:
            self._send(reader, {file: file.stat().st_size for file in outputs}, run)

    def _run(
        self,
        reader: sqlite3.Connection,
        sizes: Mapping[Path, int],
        changes: int,
        received: dict[int, int],
    ) -> None:
        begun = monotonic()
        try:
            with closing(reader):
                self._send(reader, sizes)
            self._held, self._durable, self.error = changes, received, ""
            self._taken = monotonic()
            self._due = max(begun + self._period, self._taken + COST * (self._taken - begun))
        except OvertakenError:
            self.is_overtaken = True
        except Exception as error:  # the disk, the storage
            self._due, self.error = monotonic() + AGAIN, str(error) or type(error).__name__
            logger.error("No snapshot, it is tried again in %.0f s: %s", AGAIN, error)

    def _send(self, reader: sqlite3.Connection, sizes: Mapping[Path, int], run: str = "") -> None:
        """Copy the file of the run, and write it with the other files."""
        part = self._folder / f"{NAME}{PART}"
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part, isolation_level=None)) as copy:
            copy.execute("PRAGMA journal_mode = OFF")  # a torn copy is never used
            copy.execute("PRAGMA synchronous = OFF")
            reader.backup(copy)
        files = {file.name: (file, size) for file, size in sizes.items()}
        self._snapshots.write({NAME: (part, part.stat().st_size), **files}, run)
        part.unlink()


def _make(files: Any, path: str) -> None:
    """Make a folder where there are any, but no bucket: its name may be a mistake."""
    with suppress(FileExistsError):
        files.mkdir(path, create_parents=False)
