"""The records of a WARC file, plain or gzipped, up to the first that is damaged.

Only the offset and the beginning of each record are kept in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastwarc.warc import ArchiveIterator

from tres_scrapy.url.message import reason

HEAD: Final = 64 * 1024  # bytes of a record that are examined: its own headers and the HTTP headers
PACKED: Final = b"\x1f\x8b\x08"  # begins a gzip member
TORN: Final = "the file ends within the record"
NOT_ALONE: Final = "several records share a gzip member: unpack the whole file"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record: its offset in the file, its headers by lower-case name, and its beginning."""

    offset: int
    fields: dict[str, str]
    start: bytes
    length: int  # bytes of the block


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a record, or the rest of the file, cannot be used."""

    reason: str


def scan(path: Path) -> Iterator[StoredRecord | Skip]:
    """Yield the records of a file in order; raise OSError if the file cannot be opened."""
    with path.open("rb") as file:
        is_packed = os.pread(file.fileno(), len(PACKED), 0) == PACKED
        try:
            for record in ArchiveIterator(file, parse_http=False, max_header_len=HEAD):
                offset, length = record.stream_pos, record.content_length
                fields = {name.lower(): value for name, value in record.headers.items()}
                start = record.reader.read(HEAD)
                if is_packed and os.pread(file.fileno(), len(PACKED), offset) != PACKED:
                    yield Skip(NOT_ALONE)
                    return
                if len(start) + record.reader.consume() < length:
                    yield Skip(TORN)
                    return
                yield StoredRecord(offset, fields, start, length)
        except (OSError, ValueError) as error:
            yield Skip(f"the rest of the file is damaged: {reason(error)}")


def read_block(path: Path, offset: int, limit: int) -> bytes:
    """Return the first `limit` bytes of a record's block; raise OSError if the record is gone."""
    with path.open("rb") as file:
        file.seek(offset)
        record = next(ArchiveIterator(file, parse_http=False), None)
        if record is None:
            raise OSError("the record is gone")
        return record.reader.read(limit)
