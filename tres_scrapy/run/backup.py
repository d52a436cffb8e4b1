"""Copies of a database that is being written, each of one moment between two transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Final, NamedTuple

from tres_scrapy.run.journal import LENGTH

PAGES: Final = 64  # of the database that are copied at once, in less than a millisecond
REST: Final = 0.001  # seconds between two of these steps, in which the writer goes on


class Held(NamedTuple):
    """What a journal holds: bookings, parcels by their sender, and a fingerprint of all rows.

    `lengths` are the bytes of the output files that belong to it, by their names.
    """

    steps: int
    received: Mapping[int, int]
    fingerprint: int
    lengths: Mapping[str, int]


def back_up(
    source: sqlite3.Connection, target: Path, check: Callable[[], None] = lambda: None
) -> None:
    """Copy a database to a new file, in small steps, while its connection goes on writing.

    The connection may write in another thread if it was opened for that: SQLite adds to the copy
    what is written meanwhile, and ends between two transactions. `check` is called after each step
    and may raise.
    """

    def rest(*progress: int) -> None:
        check()
        sleep(REST)

    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")  # a torn copy is never used
        copy.execute("PRAGMA synchronous = OFF")
        source.backup(copy, pages=PAGES, progress=rest, sleep=REST)


def held_in(journal: Path) -> Held:
    """Return what the file of a journal holds that no process is writing."""
    with closing(sqlite3.connect(journal)) as connection:
        ((steps,),) = connection.execute("SELECT count(*) FROM step")
        received = dict(connection.execute("SELECT shard, received FROM peer"))
        found = connection.execute("SELECT value FROM checksum").fetchone()
        lengths = {
            name.removeprefix(LENGTH): int(value)
            for name, value in connection.execute("SELECT name, value FROM meta")
            if name.startswith(LENGTH)
        }
    return Held(int(steps), received, found[0] if found else 0, lengths)
