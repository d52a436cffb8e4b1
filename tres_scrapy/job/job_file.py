"""The file of a job: one SQLite database in JOBDIR, opened so that nobody else's is harmed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tres_scrapy.job.sqlite import Fault, Schema, is_empty, version_of
from tres_scrapy.page.file import reason

NAME = "tres.sqlite"
FOREIGN = "requests.queue"  # where Scrapy's own scheduler keeps its requests

# A batch is what was new when it was written: samples, the URLs and hosts that they brought. A
# step is an experience. Both are only ever appended to, so that a step costs as much as its page.
SCHEMA = Schema(
    application=int.from_bytes(b"TRES", "big"),
    version=1,
    tables="""\
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, samples BLOB NOT NULL, anchors TEXT NOT NULL,
    urls TEXT NOT NULL, hosts TEXT NOT NULL
);
CREATE TABLE lease (
    row INTEGER PRIMARY KEY, leaf INTEGER, q_value REAL, is_query INTEGER NOT NULL
);
CREATE TABLE step (
    number INTEGER PRIMARY KEY, row INTEGER NOT NULL, url INTEGER NOT NULL, host INTEGER NOT NULL,
    kind TEXT NOT NULL, reward REAL NOT NULL, relevant INTEGER NOT NULL, x BLOB NOT NULL,
    first INTEGER NOT NULL, outlinks INTEGER NOT NULL, sampled INTEGER, mark BLOB
);
CREATE INDEX step_incomplete ON step (number) WHERE sampled IS NULL;
CREATE TABLE rule (
    number INTEGER PRIMARY KEY, leaf INTEGER NOT NULL, feature INTEGER NOT NULL,
    threshold REAL NOT NULL, reduction REAL NOT NULL
);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE item (row INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE request (row INTEGER PRIMARY KEY, value TEXT NOT NULL);
""",
)


class JobError(RuntimeError):
    """Says in one line why the crawl in a JOBDIR cannot be gone on with."""


@contextmanager
def reading() -> Iterator[None]:
    """Raise JobError for whatever can go wrong when a damaged job is read."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError) as error:
        raise JobError(f"the crawl in JOBDIR is damaged: {reason(error)}") from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise JobError(f"the crawl in JOBDIR is damaged: {type(error).__name__}") from None


def open_database(directory: Path) -> sqlite3.Connection:
    """Open the job's file, a new one if there is none, for this process alone.

    JobError: it cannot be written, is in use, or is none of this program's.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(directory)
        connection = sqlite3.connect(directory / NAME, timeout=0, isolation_level=None)
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
    except FileExistsError:
        raise JobError(f"JOBDIR {str(directory)!r} is a file: give a directory") from None
    except OSError as error:
        raise JobError(f"JOBDIR cannot be used: {error}") from None
    except sqlite3.Error as error:
        raise JobError(f"JOBDIR {str(directory)!r}: {_said(error)}") from None
    return connection


def _refuse_foreign(directory: Path) -> None:
    """Leave alone what another scheduler keeps there, and links that lead out of the directory."""
    if (directory / FOREIGN).exists():
        raise JobError(
            f"JOBDIR {str(directory)!r} holds a crawl of Scrapy's own scheduler: give another"
        )
    for file in directory.glob(f"{NAME}*"):
        if file.is_symlink() or not file.is_file():
            raise JobError(f"JOBDIR {str(directory)!r}: {file.name} is not a plain file")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    if not is_empty(connection):
        _check(connection)
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit outlives the process at once, and a power cut once the next checkpoint is written.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    if is_empty(connection):
        SCHEMA.create(connection)
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection) -> None:
    """Raise JobError unless the file is one that this program has made."""
    match SCHEMA.fault(connection):
        case Fault.FOREIGN:
            raise JobError(f"{NAME} in JOBDIR is another program's file: give another directory")
        case Fault.NEWER:
            raise JobError(
                "the crawl in JOBDIR was written by a newer version of TRES (format "
                f"{version_of(connection)}, this one reads {SCHEMA.version}): update TRES"
            )
        case Fault.TABLES:
            raise JobError(
                f"{NAME} in JOBDIR has tables that TRES has not made: give another directory"
            )


def _said(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name in {"SQLITE_BUSY", "SQLITE_LOCKED"}:
        return "another crawl is using it"
    hint = ": may you write there?" if name == "SQLITE_CANTOPEN" else ""
    return reason(error) + hint
