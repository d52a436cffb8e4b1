"""The records of a WARC file, plain or packed, though parts of it may be damaged.

FastWARC reads the records. Where each one lies is found here, because FastWARC stops at the first
damage, does not notice that a gzip member is cut, and has no limit for what a member unpacks to.
Only the place and the beginning of each record are kept in memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from fastwarc.warc import ArchiveIterator

HEAD: Final = 64 * 1024  # bytes of a record that are looked at: its headers and those of HTTP
STEP: Final = 256 * 1024  # bytes read, and unpacked, at a time
LARGEST: Final = 256 * 1024 * 1024  # bytes of a record, unpacked; one that is larger is not read
MOST_FAULTS: Final = 100  # in a file, after which the rest of it is left
PACKED: Final = b"\x1f\x8b\x08"  # begins a gzip member
MARK: Final = b"WARC/"  # begins a record
PEEK: Final = 512
END: Final = b"\r\n\r\n"  # of a header, and of a record

TORN: Final = "the file ends within the record"
WRONG_LENGTH: Final = "its Content-Length is not that of the record"
NOT_ALONE: Final = "more is packed with it than its Content-Length says: unpack the whole file"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record: where it lies in its file, its headers by lower-case name, and how it begins."""

    offset: int
    fields: dict[str, str]
    start: bytes
    block: int  # where the block begins in a plain file
    length: int  # bytes of the block


@dataclass(frozen=True, slots=True)
class Skip:
    """A part of the file that cannot be used as a record: where it begins, and why."""

    offset: int
    reason: str


def scan(path: Path) -> Iterator[StoredRecord | Skip]:
    """Yield the records of a file in their order; OSError if it cannot be read."""
    with path.open("rb") as file:
        packed = file.read(len(PACKED)) == PACKED
        file.seek(0)
        skips = 0
        for found in _packed(file) if packed else _plain(file):
            yield found
            skips += isinstance(found, Skip)
            if skips == MOST_FAULTS:
                yield Skip(file.tell(), "after so many faults the rest of the file is not read")
                return


def read_block(path: Path, offset: int, limit: int) -> bytes:
    """Return the block of a record, up to a limit of bytes; OSError if it is gone."""
    with path.open("rb") as file:
        file.seek(offset)
        record = next(ArchiveIterator(file, parse_http=False), None)
        if record is None:
            raise OSError("the record is gone")
        return record.reader.read(limit)


def _packed(file: IO[bytes]) -> Iterator[StoredRecord | Skip]:
    """Read a file of gzip members: a damaged member does not hide the next."""
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
    """Return how a member begins, its length unpacked (0 at the end of the file), and its end."""
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
            raise ValueError(f"over {LARGEST} bytes")
    return head, size, file.tell() - len(unpacker.unused_data)


def _plain(file: IO[bytes]) -> Iterator[StoredRecord | Skip]:
    """Read a file of records that lie one behind another, each as long as it says."""
    whole = file.seek(0, 2)
    offset: int | None = 0
    while offset is not None and offset < whole:
        file.seek(offset)
        found = _entry(offset, file.read(HEAD), None)
        end = _end(file, found, whole) if isinstance(found, StoredRecord) else found
        yield end if isinstance(end, Skip) else found
        offset = _search(file, offset + 1, END + MARK) if isinstance(end, Skip) else end


def _end(file: IO[bytes], entry: StoredRecord, whole: int) -> int | Skip:
    """Return where the next record begins, a Skip if it does not where this one says."""
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
    """Return the record that begins with `data`; `size` are its bytes altogether, if known."""
    if not data.startswith(MARK):
        return Skip(offset, "it does not begin like a record")
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
    """Return where the next record begins from `offset` on, None if none does."""
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
