"""The thread that compresses records and appends them to a file."""

from __future__ import annotations

import gzip
import logging
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tres_scrapy.export.warc_tail import mark_of, repair

ROOM: Final = 32 * 1024 * 1024  # bytes of waiting bodies above which callers should wait
LEVEL: Final = 6  # of gzip: 9 takes twice the time to save 1 %

logger = logging.getLogger(__name__)


class ArchiveWriter:
    """Appends records to a WARC file, in another thread and in the caller's order.

    Each record is written at once and in one piece. So a killed process leaves a readable file
    with one incomplete record at most, which the next writer cuts off. If writing fails, `error`
    holds the reason and writing stops. Raise OSError if the file cannot be opened, ValueError if
    another program wrote it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: OSError | None = None
        self.left_out = 0  # tasks whose records could not be made
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            repair(path)
        self._file = path.open("ab", buffering=0)
        self.size = self._file.tell()  # bytes
        self._mark = mark_of(path) if self.size else secrets.randbits(32)
        self._waiting = 0
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[tuple[Callable[[], list[bytes]], int] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tres-archive", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The bytes of bodies waiting to be written."""
        return self._waiting

    @property
    def full(self) -> bool:
        """Whether the caller should wait before it puts more."""
        return self._waiting > ROOM

    def put(self, make: Callable[[], list[bytes]], size: int = 0) -> None:
        """Queue `make`, whose records the thread appends; they hold `size` bytes of body."""
        with self._lock:
            self._waiting += size
        self._tasks.put((make, size))

    def close(self) -> None:
        """Write what waits and close the file."""
        self._tasks.put(None)
        self._thread.join()
        self._file.close()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            make, size = task
            if self.error is None:
                self._write(make)
            with self._lock:
                self._waiting -= size

    def _write(self, make: Callable[[], list[bytes]]) -> None:
        try:
            data = b"".join(gzip.compress(each, LEVEL, mtime=self._mark) for each in make())
        except Exception as error:  # a bad response must not end the archive
            self.left_out += 1
            logger.error("Could not archive a response: %s: %s", type(error).__name__, error)
            return
        try:
            self._append(data)
        except OSError as error:
            self.error = error

    def _append(self, data: bytes) -> None:
        """Append all of the data; on OSError, append nothing and raise."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            os.ftruncate(self._file.fileno(), self.size)
            raise
        self.size += len(data)
