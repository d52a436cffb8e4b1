"""What the coordinator must not forget: limits and epochs of all shards, and commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tres_scrapy.cluster.message import Command
from tres_scrapy.run.database import Access, Schema, SqliteFileError
from tres_scrapy.run.job_file import CLUSTER
from tres_scrapy.url.message import TresError, plainly

SNAPSHOTS: Final = "snapshots"  # in meta: their URL
SCHEMA: Final = Schema(
    noun="crawl on many machines",
    application=int.from_bytes(b"TRCL", "big"),
    version=2,
    tables="""\
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE shard (
    number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, most INTEGER NOT NULL
);
CREATE TABLE ending (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE command (
    number INTEGER PRIMARY KEY, run TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL
);
""",
)


class Register:
    """The file `cluster.sqlite` of a job, for one coordinator at a time.

    Commands, and the end, hold for one `run` of the crawl: if you pause it, stop it and start it
    again, it runs.
    """

    def __init__(
        self,
        directory: Path,
        shards: int,
        identity: Mapping[str, str],
        run: str = "",
        *,
        snapshots: str = "",
    ) -> None:
        """Open or create the file; raise TresError if it is of another crawl, or in use.

        A crawl with `snapshots` cannot go on without them: a shard may be on another node.
        """
        self._run = run
        self._snapshots = snapshots
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._database = SCHEMA.open(directory / CLUSTER, Access.EXCLUSIVE)
        except (OSError, SqliteFileError) as error:
            raise TresError(f"--job {str(directory)!r}: {plainly(error)}") from None
        self._database.execute("PRAGMA synchronous = FULL")  # a grant must survive a power cut
        wanted = {**identity, "shards": str(shards)}
        found = dict(self._database.execute("SELECT name, value FROM meta"))
        for name, value in wanted.items() if found else ():
            if found.get(name) != value:
                raise TresError(
                    f"--job {str(directory)!r} holds a crawl with {name} {found.get(name)!r}, not "
                    f"{value!r}: give another directory"
                )
        if (before := found.get(SNAPSHOTS, snapshots)) != snapshots:
            raise TresError(
                f"--job {str(directory)!r} holds a crawl with --snapshots {before}: give that again"
            )
        with self._database.transaction() as cursor:
            cursor.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", wanted.items())
            numbers = [(number,) for number in range(shards)]
            cursor.executemany("INSERT OR IGNORE INTO shard VALUES (?, 0, 0)", numbers)

    def limits(self) -> list[int]:
        """Return the limit of each shard."""
        return [n for (n,) in self._database.execute("SELECT most FROM shard ORDER BY number")]

    def epochs(self) -> list[int]:
        """Return the epoch of each shard: how often a process became its owner."""
        return [n for (n,) in self._database.execute("SELECT epoch FROM shard ORDER BY number")]

    def save_limits(self, limits: Sequence[int]) -> None:
        """Save the limits before a shard is told."""
        rows = [(limit, number) for number, limit in enumerate(limits)]
        with self._database.transaction() as cursor:
            cursor.executemany("UPDATE shard SET most = ? WHERE number = ?", rows)

    def begin(self, shard: int, least: int = 0) -> int:
        """Begin a new epoch of a shard, above `least`, and return it."""
        query = "UPDATE shard SET epoch = max(epoch, ?) + 1 WHERE number = ?"
        with self._database.transaction() as cursor:
            cursor.execute(query, (least, shard))
            if self._snapshots:  # now a shard has found them
                place = SNAPSHOTS, self._snapshots
                cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", place)
        return self.epochs()[shard]

    def commands(self) -> list[Command]:
        """Return the commands of this run, oldest first."""
        query = "SELECT number, name, value FROM command WHERE run = ? ORDER BY number"
        return [Command(*row) for row in self._database.execute(query, (self._run,))]

    def add_command(self, name: str, value: str) -> None:
        """Save a command of this run; its number is higher than all before."""
        with self._database.transaction() as cursor:
            row = self._run, name, value
            cursor.execute("INSERT INTO command (run, name, value) VALUES (?, ?, ?)", row)

    def end(self) -> tuple[str, str]:
        """Return why this run ends and an error, both "" while it goes on."""
        found = dict(self._database.execute("SELECT name, value FROM ending"))
        same = found.get("run") == self._run
        return (found["reason"], found["error"]) if same else ("", "")

    def save_end(self, reason: str, error: str) -> None:
        """Save why this run ends."""
        values = {"run": self._run, "reason": reason, "error": error}
        with self._database.transaction() as cursor:
            cursor.executemany("INSERT OR REPLACE INTO ending VALUES (?, ?)", values.items())

    def close(self) -> None:
        """Close the file."""
        self._database.close()
