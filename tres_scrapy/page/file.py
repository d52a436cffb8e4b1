"""Files: there whole or not at all, known by their hash, and mistrusted when others wrote them."""

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
LARGEST: Final = 1e6  # of the numbers of a model: no sum of their products overflows
LONGEST_REASON: Final = 200


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it replaces the old one when all is written, else nothing does."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)  # a link that lies there would lead the writing elsewhere
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked when its name ends in .gz or .xz."""
    opener: Any = OPENERS.get(path.suffix, open)
    file: IO[bytes] = opener(path, "rb")
    return file


def drop_torn_line(path: Path) -> None:
    """Cut the torn last line that a killed process left off a JSON lines file of ours."""
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
    """Raise ValueError when one of the values is no number, or greater in size than `largest`."""
    each = np.atleast_1d(values)
    fits = np.abs(each) <= largest if each.dtype.kind in "iufO" else np.zeros(each.shape, bool)
    if not fits.all():
        wrong = each[~fits].tolist()[0]
        msg = f"{name} {wrong!r} must be a finite number, {largest:,.0f} or less in size"
        raise ValueError(msg)


def reason(error: Exception) -> str:
    """Return what an error says of a file in one short line; the file may have chosen its words."""
    said = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    line = " ".join((said or type(error).__name__).split())
    return printable(line)[:LONGEST_REASON]


def printable(text: str) -> str:
    """Return a text without what a terminal would obey: escapes, turns of direction."""
    return "".join(filter(str.isprintable, text))
