"""The thread that packs records and appends them to a file."""

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

ROOM: Final = 32 * 1024 * 1024  # bytes of bodies that may wait until callers are asked to wait
LEVEL: Final = 6  # of gzip: 9 takes twice the time for one part in a hundred

logger = logging.getLogger(__name__)


class ArchiveWriter:
    """Appends records to a WARC file, away from the caller's thread and in the caller's order.

    Each is handed to the operating system at once and in one piece: a process that is killed
    leaves a file that can be read, but for a record that is torn, which the next writer of the
    file takes off. When the file cannot be written, `error` says why and nothing more is.
    OSError or ValueError: it cannot even be opened, or is another program's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: OSError | None = None
        self.left_out = 0  # tasks of which no record could be made
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
        """The bytes of bodies that wait to be written."""
        return self._waiting

    @property
    def full(self) -> bool:
        """Whether the caller should wait before it puts more."""
        return self._waiting > ROOM

    def put(self, make: Callable[[], list[bytes]], size: int = 0) -> None:
        """Append the records that `make` returns, in the thread; it holds `size` bytes."""
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
        except Exception as error:  # what a server sent must not end the archive
            self.left_out += 1
            logger.error("No record can be made: %s: %s", type(error).__name__, error)
            return
        try:
            self._append(data)
        except OSError as error:
            self.error = error

    def _append(self, data: bytes) -> None:
        """Append all of the data or, with an OSError, nothing."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            os.ftruncate(self._file.fileno(), self.size)
            raise
        self.size += len(data)
