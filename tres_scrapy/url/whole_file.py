"""Files: written whole or not at all, identified by hash, and checked when read."""

from __future__ import annotations

import gzip
import hashlib
import lzma
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import ArrayLike

OPENERS: Final = {".xz": lzma.open, ".gz": gzip.open}
LINE_START: Final = b'{"url": '  # of the JSON lines that a crawl writes
LARGEST: Final = 1e6  # largest number in a model: no sum of products overflows


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it replaces the old file only when it is complete."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)  # a symbolic link there would redirect the writing
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def append(path: Path, data: bytes) -> None:
    """Append to a file; raise OSError, with nothing appended, if the disk does not take it all."""
    with path.open("ab", buffering=0) as file:
        size, left = file.tell(), memoryview(data)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:
            file.truncate(size)
            raise


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading; decompress it if its name ends in .gz or .xz."""
    opener: Any = OPENERS.get(path.suffix, open)
    file: IO[bytes] = opener(path, "rb")
    return file


def drop_torn_line(path: Path) -> None:
    """Remove the incomplete last line that a killed process left in a crawl's JSON lines."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
            torn = content[end : end + len(LINE_START)]
        if torn and LINE_START.startswith(torn):
            file.truncate(end)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_numbers(name: str, values: ArrayLike, largest: float = LARGEST) -> None:
    """Raise ValueError if a value is not a number or its absolute value exceeds `largest`."""
    each = np.atleast_1d(values)
    fits = np.abs(each) <= largest if each.dtype.kind in "iufO" else np.zeros(each.shape, bool)
    if not fits.all():
        wrong = each[~fits].tolist()[0]
        msg = f"{name} {wrong!r} must be a finite number, {largest:,.0f} or less in size"
        raise ValueError(msg)
