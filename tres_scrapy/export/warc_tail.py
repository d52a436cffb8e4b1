"""The end of a WARC file, which a crash may have torn.

Every gzip member of a file has the same random number in place of a time. It tells the beginnings
of records from what a server sent that looks like one.
"""

from __future__ import annotations

import zlib
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

MAGIC: Final = b"\x1f\x8b\x08\x00"  # begins a gzip member
LENGTH: Final = 8  # bytes, of that and the number
MARK: Final = b"WARC/"  # begins a record
PEEK: Final = 512  # bytes of a member that are unpacked to see what it is
STEP: Final = 64 * 1024


def mark_of(path: Path) -> int:
    """Return the number in the members of a file that `repair` has accepted."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(LENGTH)[len(MAGIC) :], "little")


def repair(path: Path) -> int:
    """Take a torn record off the end of a WARC file of one gzip member a record.

    Return how many bytes that were. ValueError: the file is something else, and is left alone.
    """
    size = path.stat().st_size
    if size == 0:
        return 0
    with path.open("r+b") as file:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            end = _whole(content)
        if end < size:
            file.truncate(end)
    return size - end


def _whole(content: mmap) -> int:
    """Return how many bytes from the start are whole records."""
    beginning = content[:LENGTH]
    start = content.rfind(beginning)
    while start > 0 and not _begins_record(content, start):  # so short that nothing is seen yet
        start = content.rfind(beginning, 0, start + LENGTH - 1)
    if not _begins_record(content, start):
        if _may_begin_record(content[:PEEK]):
            return 0  # torn within the first bytes that were ever written
        raise ValueError("it is no WARC file of one gzip member a record: give another name")
    end = _end(content, start)
    return start if end is None else end


def _begins_record(content: mmap, start: int) -> bool:
    try:
        return zlib.decompressobj(31).decompress(content[start : start + PEEK]).startswith(MARK)
    except zlib.error:
        return False


def _may_begin_record(start: bytes) -> bool:
    if not MAGIC.startswith(start[: len(MAGIC)]):
        return False
    unpacker = zlib.decompressobj(31)
    try:
        unpacked = unpacker.decompress(start)
    except zlib.error:
        return False
    return not unpacker.eof and MARK.startswith(unpacked)


def _end(content: mmap, start: int) -> int | None:
    """Return where the member ends that begins at `start`, None if it is cut off."""
    unpacker = zlib.decompressobj(31)
    try:
        for place in range(start, len(content), STEP):
            unpacker.decompress(content[place : place + STEP])
            if unpacker.eof:
                return min(place + STEP, len(content)) - len(unpacker.unused_data)
    except zlib.error:
        return None
    return None
