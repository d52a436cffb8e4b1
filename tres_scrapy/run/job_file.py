"""The file of a job: one SQLite database in JOBDIR, for one crawl at a time."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tres_scrapy.run.database import Access, Database, FileFault, Schema, SqliteFileError
from tres_scrapy.url.message import TresError, plainly, reason

logger = logging.getLogger(__name__)

NAME = "tres.sqlite"
CLUSTER = "cluster.sqlite"  # in the folder of a crawl in shards, whose JOBDIRs lie below it
FOREIGN = "requests.queue"  # where Scrapy's own scheduler keeps its requests

# A batch holds the samples, URLs and hosts that were new when it was written. A step is an
# experience. Both tables only grow, so saving a step costs only as much as its page.
SCHEMA = Schema(
    noun="job",
    application=int.from_bytes(b"TRES", "big"),
    version=6,
    tables="""\
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, samples BLOB NOT NULL, anchors TEXT NOT NULL,
    urls TEXT NOT NULL, hosts TEXT NOT NULL, cues BLOB NOT NULL, counts BLOB NOT NULL
);
CREATE TABLE lease (
    row INTEGER PRIMARY KEY, leaf INTEGER, q_value REAL, is_query INTEGER NOT NULL
);
CREATE TABLE redirect (number INTEGER PRIMARY KEY, row INTEGER NOT NULL, url INTEGER NOT NULL);
CREATE TABLE step (
    number INTEGER PRIMARY KEY, row INTEGER NOT NULL, url INTEGER NOT NULL, host INTEGER NOT NULL,
    kind TEXT NOT NULL, reward REAL NOT NULL, relevant INTEGER NOT NULL, x BLOB NOT NULL,
    first INTEGER NOT NULL, outlinks INTEGER NOT NULL, sampled INTEGER, mark BLOB,
    grade REAL NOT NULL
);
CREATE INDEX step_incomplete ON step (number) WHERE sampled IS NULL;
CREATE TABLE rule (
    number INTEGER PRIMARY KEY, leaf INTEGER NOT NULL, feature INTEGER NOT NULL,
    threshold REAL NOT NULL, reduction REAL NOT NULL
);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE item (
    row INTEGER NOT NULL, place INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (row, place)
);
CREATE TABLE request (row INTEGER PRIMARY KEY, value TEXT NOT NULL);
""",
)

_DAMAGED = "the crawl in JOBDIR is damaged"
_ADVICE = "restore a copy of it, or give another directory; the pages in the output file are whole"


@contextmanager
def reading() -> Iterator[None]:
    """Raise TresError for any error that reading a damaged job can cause."""
    try:
        yield
    except TresError:
        raise
    except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError) as error:
        raise TresError(f"{_DAMAGED} ({reason(error)}): {_ADVICE}") from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise TresError(f"{_DAMAGED} ({type(error).__name__}): {_ADVICE}") from None


def open_database(directory: Path, schema: Schema = SCHEMA) -> Database:
    """Open the job's file for this process alone; create it if missing.

    Raise TresError if it cannot be written, is in use, or is not a file of TRES.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / FOREIGN).exists() and not (directory / NAME).exists():
            raise TresError(
                f"JOBDIR {str(directory)!r} holds a crawl of Scrapy's own scheduler: "
                "give another directory"
            )
        if (directory / CLUSTER).exists():
            raise TresError(
                f"JOBDIR {str(directory)!r} holds a crawl in shards: tres cluster crawl resumes it"
            )
        file = directory / NAME
        if file.is_file() and not file.stat().st_size:
            logger.warning("JOBDIR: %s is empty: the crawl starts at its seeds", file)
        return schema.open(file, Access.EXCLUSIVE)
    except FileExistsError:
        raise TresError(f"JOBDIR {str(directory)!r} is a file: give a directory") from None
    except OSError as error:
        raise TresError(f"JOBDIR cannot be used: {plainly(error)}") from None
    except SqliteFileError as error:
        raise TresError(f"JOBDIR: {error}{_HINTS.get(error.fault, '')}") from None


_HINTS = {
    FileFault.DAMAGED: f": {_ADVICE}",
    FileFault.FOREIGN: ": give another directory",
    FileFault.OLDER: ": give another directory, or resume it with that version",
    FileFault.TABLES: ": give another directory",
}
