"""Repair the end of a WARC file after a crash.

All gzip members of a file have the same random number as their time stamp. So the beginning of a
record is recognised, even if a body contains bytes that look like one.
"""

from __future__ import annotations

import zlib
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

MAGIC: Final = b"\x1f\x8b\x08\x00"  # begins a gzip member
LENGTH: Final = 8  # bytes of MAGIC and the number
MARK: Final = b"WARC/"  # begins a record
PEEK: Final = 512  # bytes of a member that are decompressed to identify it
STEP: Final = 64 * 1024


def mark_of(path: Path) -> int:
    """Return the number in the gzip members of a file that `repair` accepted."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(LENGTH)[len(MAGIC) :], "little")


def repair(path: Path) -> int:
    """Cut an incomplete record off the end of a WARC file with one gzip member per record.

    Return the number of bytes cut. Raise ValueError, and change nothing, if it is another file.
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
    """Return the length in bytes of the complete records."""
    beginning = content[:LENGTH]
    start = content.rfind(beginning)
    while start > 0 and not _begins_record(content, start):  # too short to identify
        start = content.rfind(beginning, 0, start + LENGTH - 1)
    if not _begins_record(content, start):
        if _may_begin_record(content[:PEEK]):
            return 0  # cut within the first bytes of the file
        raise ValueError("it is not a WARC file with one gzip member per record: give another name")
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
    """Return the end of the member that begins at `start`, None if it is incomplete."""
    unpacker = zlib.decompressobj(31)
    try:
        for place in range(start, len(content), STEP):
            unpacker.decompress(content[place : place + STEP])
            if unpacker.eof:
                return min(place + STEP, len(content)) - len(unpacker.unused_data)
    except zlib.error:
        return None
    return None
