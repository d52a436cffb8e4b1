"""The file of a record: one SQLite database, written by the crawl and read by anyone beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tres_scrapy.job.sqlite import Fault, Schema, is_empty, version_of

SUFFIX: Final = ".run"
IN_JOB: Final = f"tres{SUFFIX}"  # the record's name in JOBDIR

# docs/report.md says what each column means.
SCHEMA: Final = Schema(
    application=int.from_bytes(b"TRUN", "big"),
    version=1,
    tables="""\
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE page (
    step INTEGER PRIMARY KEY, row INTEGER NOT NULL UNIQUE, parent INTEGER, time REAL NOT NULL,
    url TEXT NOT NULL, final_url TEXT, domain TEXT NOT NULL, title TEXT NOT NULL,
    anchor TEXT NOT NULL, kind TEXT NOT NULL, relevant INTEGER NOT NULL, copy INTEGER NOT NULL,
    reward REAL NOT NULL, probability REAL, x BLOB NOT NULL, chosen TEXT NOT NULL, leaf INTEGER,
    splits INTEGER, q_value REAL, samples INTEGER, leaves INTEGER
);
CREATE TABLE rivals (step INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE curve (
    step INTEGER PRIMARY KEY, time REAL NOT NULL, pages INTEGER NOT NULL,
    relevant INTEGER NOT NULL, domains INTEGER NOT NULL, frontier INTEGER NOT NULL,
    leaves INTEGER, rate REAL NOT NULL, loss REAL
);
CREATE TABLE split (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, leaf INTEGER NOT NULL,
    feature INTEGER NOT NULL, threshold REAL NOT NULL, reduction REAL NOT NULL
);
CREATE TABLE snapshot (name TEXT PRIMARY KEY, step INTEGER NOT NULL, value TEXT NOT NULL);
""",
)


class RecordError(RuntimeError):
    """Says in one line why a file is no record that can be used."""


_FAULTS = (
    OSError,
    sqlite3.Error,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise RecordError for whatever can go wrong when a damaged record is read."""
    try:
        yield
    except _FAULTS as error:
        raise RecordError(f"the record {path} cannot be read: {error}") from None


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open a record, a new one if there is none; RecordError: it cannot be written."""
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_symlink() or not file.is_file():
            raise RecordError(f"the record cannot be written: {file} is not a plain file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=1, isolation_level=None)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise RecordError(f"the record {path} cannot be written: {error}") from None
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a record, perhaps one that is being written; RecordError: it is none."""
    if not path.is_file():
        raise RecordError(f"there is no record {path}")
    with reading(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5, isolation_level=None
        )
    try:
        with reading(path):
            connection.execute("PRAGMA trusted_schema = OFF")
            _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    is_new = is_empty(connection)
    if not is_new:
        _check(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if is_new:
        connection.execute("BEGIN")
        SCHEMA.create(connection)
        connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RecordError unless the file is one that this program has made."""
    if is_empty(connection):
        raise RecordError(f"{path} holds no record yet")
    match SCHEMA.fault(connection):
        case Fault.FOREIGN:
            raise RecordError(f"{path} is not the record of a crawl")
        case Fault.NEWER:
            raise RecordError(
                f"{path} was written by a newer version of TRES (format {version_of(connection)}, "
                f"this one reads {SCHEMA.version}): update TRES"
            )
        case Fault.TABLES:
            raise RecordError(f"{path} has tables that are not those of a record")
