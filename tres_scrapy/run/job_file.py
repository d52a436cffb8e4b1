"""The file of a run in JOBDIR, for one crawl at a time."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tres_scrapy.run.database import Access, Database, FileFault, SqliteFileError
from tres_scrapy.run.run_file import NAME, SCHEMA
from tres_scrapy.url.message import TresError, plainly, reason

logger = logging.getLogger(__name__)

OLDER = "tres.sqlite"  # the journal of a crawl that wrote two files
CLUSTER = "cluster.sqlite"  # in the folder of a crawl in shards, whose JOBDIRs lie below it
FOREIGN = "requests.queue"  # where Scrapy's own scheduler keeps its requests

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


def open_database(directory: Path) -> Database:
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
        if (directory / OLDER).exists():
            raise TresError(
                f"JOBDIR {str(directory)!r} holds a crawl of an older version of TRES ({OLDER}): "
                "resume it with that version, or give another directory"
            )
        file = directory / NAME
        if file.is_file() and not file.stat().st_size:
            logger.warning("JOBDIR: %s is empty: the crawl starts at its seeds", file)
        return SCHEMA.open(file, Access.EXCLUSIVE)
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
