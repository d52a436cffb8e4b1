"""The records of a WARC file, plain or gzipped, even if parts of the file are damaged.

FastWARC reads the records. This module finds where each record is, because FastWARC stops at the
first damage, does not notice a truncated gzip member, and does not limit its decompressed size.
Only the offset and the beginning of each record are kept in memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from fastwarc.warc import ArchiveIterator

from tres_scrapy.url.message import TresError

HEAD: Final = 64 * 1024  # bytes of a record that are examined: its own headers and the HTTP headers
STEP: Final = 256 * 1024  # bytes read and decompressed at a time
LARGEST: Final = 256 * 1024 * 1024  # bytes of a decompressed record; a larger record is skipped
MOST_FAULTS: Final = 100  # in a file; the rest of it is not read
PACKED: Final = b"\x1f\x8b\x08"  # begins a gzip member
MARK: Final = b"WARC/"  # begins a record
PEEK: Final = 512
END: Final = b"\r\n\r\n"  # of a header, and of a record

TORN: Final = "the file ends within the record"
WRONG_LENGTH: Final = "its Content-Length is not that of the record"
NOT_ALONE: Final = "its gzip member is longer than its Content-Length: unpack the whole file"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record: its offset in the file, its headers by lower-case name, and its beginning."""

    offset: int
    fields: dict[str, str]
    start: bytes
    block: int  # offset of the block in a plain file
    length: int  # bytes of the block


@dataclass(frozen=True, slots=True)
class Skip:
    """A part of the file that cannot be used as a record: its offset and the reason."""

    offset: int
    reason: str


def scan(path: Path) -> Iterator[StoredRecord | Skip]:
    """Yield the records of a file in order; raise OSError if the file cannot be read."""
    with path.open("rb") as file:
        packed = file.read(len(PACKED)) == PACKED
        file.seek(0)
        skips = 0
        for found in _packed(file) if packed else _plain(file):
            yield found
            skips += isinstance(found, Skip)
            if skips == MOST_FAULTS:
                yield Skip(file.tell(), f"{MOST_FAULTS} faults: the rest of the file is not read")
                return


def read_block(path: Path, offset: int, limit: int) -> bytes:
    """Return the first `limit` bytes of a record's block; raise OSError if the record is gone."""
    with path.open("rb") as file:
        file.seek(offset)
        record = next(ArchiveIterator(file, parse_http=False), None)
        if record is None:
            raise OSError("the record is gone")
        return record.reader.read(limit)


def _packed(file: IO[bytes]) -> Iterator[StoredRecord | Skip]:
    """Read a file of gzip members; skip damaged members."""
    offset: int | None = 0
    while offset is not None:
        file.seek(offset)
        try:
            head, size, end = _member(file)
        except (zlib.error, EOFError, ValueError) as error:
            yield Skip(offset, str(error))
            offset = _search(file, offset + 1, PACKED)
            continue
        if not size:
            return
        yield _entry(offset, head, size)
        offset = end


def _member(file: IO[bytes]) -> tuple[bytes, int, int]:
    """Return a member's beginning, decompressed length (0 at the end of the file) and end."""
    unpacker, head, size, data = zlib.decompressobj(31), b"", 0, file.read(STEP)
    if not data:
        return b"", 0, 0
    while not unpacker.eof:
        if not data and not (data := file.read(STEP)):
            raise EOFError(TORN)
        part = unpacker.decompress(data, STEP)
        data = unpacker.unconsumed_tail
        head += part[: HEAD - len(head)]
        size += len(part)
        if size > LARGEST:
            raise TresError(f"over {LARGEST} bytes")
    return head, size, file.tell() - len(unpacker.unused_data)


def _plain(file: IO[bytes]) -> Iterator[StoredRecord | Skip]:
    """Read a file of uncompressed records, each as long as its Content-Length."""
    whole = file.seek(0, 2)
    offset: int | None = 0
    while offset is not None and offset < whole:
        file.seek(offset)
        found = _entry(offset, file.read(HEAD), None)
        end = _end(file, found, whole) if isinstance(found, StoredRecord) else found
        yield end if isinstance(end, Skip) else found
        offset = _search(file, offset + 1, END + MARK) if isinstance(end, Skip) else end


def _end(file: IO[bytes], entry: StoredRecord, whole: int) -> int | Skip:
    """Return the offset of the next record, or a Skip if this record's length is wrong."""
    place = entry.block + entry.length
    if place > whole:
        return Skip(entry.offset, TORN)
    file.seek(place)
    following = file.read(len(END) + len(MARK))
    blank = len(following) - len(following.lstrip(b"\r\n"))
    if following[blank:] not in {b"", MARK[: len(following) - blank]}:
        return Skip(entry.offset, WRONG_LENGTH)
    return place + blank


def _entry(offset: int, data: bytes, size: int | None) -> StoredRecord | Skip:
    """Return the record that begins with `data`; `size` is its total bytes, if known."""
    if not data.startswith(MARK):
        return Skip(offset, "it does not begin like a WARC record")
    start = data.find(END) + len(END)
    try:
        record = next(ArchiveIterator(BytesIO(data[:start]), parse_http=False))
        fields = {name.lower(): value for name, value in record.headers.items()}
        length = int(fields["content-length"])
    except (KeyError, OSError, StopIteration, ValueError):
        return Skip(offset, "its header cannot be read")
    if length < 0 or (size is not None and start + length > size):
        return Skip(offset, WRONG_LENGTH)
    if size is not None and start + length + len(END) < size:
        return Skip(offset, NOT_ALONE)
    return StoredRecord(offset, fields, data[start : start + length], offset + start, length)


def _search(file: IO[bytes], offset: int, wanted: bytes) -> int | None:
    """Return the offset of the next record from `offset` on, None at the end."""
    file.seek(offset)
    before = b""
    while data := file.read(STEP):
        window = before + data
        base = file.tell() - len(window)
        place = window.find(wanted)
        while place >= 0:
            begin = base + place + wanted.find(MARK) if MARK in wanted else base + place
            if wanted != PACKED or _begins_record(file, begin):
                return begin
            place = window.find(wanted, place + 1)
        before = window[-len(wanted) + 1 :]
        file.seek(base + len(window))
    return None


def _begins_record(file: IO[bytes], offset: int) -> bool:
    file.seek(offset)
    try:
        return zlib.decompressobj(31).decompress(file.read(PEEK)).startswith(MARK)
    except zlib.error:
        return False
