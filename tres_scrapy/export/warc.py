"""Records of a WARC file, the thread that writes them, and the repair of the file's end.

All gzip members of a file have the same random number as their time stamp. So the beginning of a
record is recognised, even if a body contains bytes that look like one.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import re
import secrets
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import responses
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from fastwarc.warc import WarcRecord, WarcRecordType

from tres_scrapy.url.message import TresError

SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
# Bodies are archived unchunked; with this header a reader would expect chunks.
UNDONE: Final = "transfer-encoding"
KEPT_AS: Final = "X-Archive-Orig-"
BREAK: Final = re.compile(r"[\r\n\0]+")  # characters that would end a header

Headers = list[tuple[str, str]]

ROOM: Final = 32 * 1024 * 1024  # bytes of waiting bodies above which callers should wait
LEVEL: Final = 6  # of gzip: 9 takes twice the time to save 1 %
MAGIC: Final = b"\x1f\x8b\x08\x00"  # begins a gzip member
LENGTH: Final = 8  # bytes of MAGIC and the number
MARK: Final = b"WARC/"  # begins a record
PEEK: Final = 512  # bytes of a member that are decompressed to identify it
STEP: Final = 64 * 1024

logger = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Exchange:
    """A request of the crawl and its response, headers decoded as latin-1.

    `body` is still compressed; `ip` is the server's address, None if unknown; `truncated` is why
    the body is incomplete: "disconnect", "length", or "" if it is complete.
    """

    url: str
    method: str
    asked: Headers
    sent: bytes
    status: int
    headers: Headers
    body: bytes
    ip: str | None = None
    protocol: str = "HTTP/1.1"
    truncated: str = ""
    date: datetime = field(default_factory=_now)
    id: str = field(default_factory=lambda: f"<urn:uuid:{uuid4()}>")  # of the response record


def info_record(name: str, fields: dict[str, str]) -> list[bytes]:
    """Return the record that begins a file, with `fields` about the crawl."""
    head = {"WARC-Filename": name, "Content-Type": "application/warc-fields"}
    present = [(name, value) for name, value in fields.items() if value]
    return [_record(WarcRecordType.warcinfo, head, _lines(present))]


def exchange_records(exchange: Exchange) -> list[bytes]:
    """Return a response record and its request record."""
    head = {
        "WARC-Record-ID": exchange.id,
        "WARC-Date": _date(exchange.date),
        "WARC-Target-URI": exchange.url,
        "WARC-IP-Address": exchange.ip,
        "WARC-Truncated": exchange.truncated,
    }
    asked = {
        "WARC-Date": _date(exchange.date),
        "WARC-Target-URI": exchange.url,
        "WARC-Concurrent-To": exchange.id,
    }
    phrase = responses.get(exchange.status, "")  # Scrapy does not keep the one received
    status = f"{exchange.protocol} {exchange.status} {phrase}".rstrip()
    received, sent = _http(status, _undone(exchange.headers)), _http(*_request(exchange))
    return [
        _record(WarcRecordType.response, head, received, exchange.body),
        _record(WarcRecordType.request, asked, sent, exchange.sent),
    ]


def note_record(
    url: str, fields: dict[str, str], about: str | None = None, date: datetime | None = None
) -> list[bytes]:
    """Return a metadata record about a URL; `about` is the ID of its response record."""
    head = {
        "WARC-Date": _date(date or _now()),
        "WARC-Target-URI": url,
        "WARC-Concurrent-To": about,
        "WARC-Refers-To": about,
        "Content-Type": "application/warc-fields",
    }
    return [_record(WarcRecordType.metadata, head, _lines(fields.items()))]


def _record(
    kind: WarcRecordType,
    head: Mapping[str, str | None],
    block: bytes,
    payload: bytes | None = None,
) -> bytes:
    """Return a record; one with a payload is an HTTP message, which `block` begins."""
    record = WarcRecord()
    record.init_headers(record_type=kind)
    for name, value in head.items():
        if value:
            record.headers[name] = value
    record.set_bytes_content(block + (payload or b""))
    record.is_http = payload is not None
    digest = None if payload is None else hashlib.sha1(payload, usedforsecurity=False).digest()
    written = BytesIO()
    record.write(written, checksum_data=True, payload_digest=digest)
    return written.getvalue()


def _lines(fields: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{name}: {BREAK.sub(' ', value)}\r\n" for name, value in fields).encode()


def _http(first: str, headers: Headers) -> bytes:
    """Return the head of an HTTP message, its headers in their original bytes."""
    lines = (f"{name}: {BREAK.sub(' ', value)}" for name, value in headers)
    return "\r\n".join([first, *lines, "", ""]).encode("latin-1")


def _date(date: datetime) -> str:
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _undone(headers: Headers) -> Headers:
    return [(KEPT_AS + name if name.lower() == UNDONE else name, value) for name, value in headers]


def _request(exchange: Exchange) -> tuple[str, Headers]:
    """Return the request line and the headers sent, without credentials and cookies."""
    parts = urlsplit(exchange.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    shown = [(name, value) for name, value in exchange.asked if name.lower() not in SECRET]
    if not any(name.lower() == "host" for name, _ in shown):
        shown.insert(0, ("Host", parts.netloc))
    return f"{exchange.method} {target} HTTP/1.1", shown


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
        self._mark = _mark_of(path) if self.size else secrets.randbits(32)
        self._waiting = 0
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "tres-archive")

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
        self._pool.submit(self._write, make, size)

    def close(self) -> None:
        """Write what waits and close the file."""
        self._pool.shutdown()
        self._file.close()

    def _write(self, make: Callable[[], list[bytes]], size: int) -> None:
        if self.error is None:
            self._append_made(make)
        with self._lock:
            self._waiting -= size

    def _append_made(self, make: Callable[[], list[bytes]]) -> None:
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


def _mark_of(path: Path) -> int:
    """Return the number in the gzip members of a file that `repair` accepted."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(LENGTH)[len(MAGIC) :], "little")


def repair(path: Path) -> int:
    """Cut an incomplete record off the end of a WARC file with one gzip member per record.

    Return the number of bytes cut. Raise TresError, and change nothing, if it is another file.
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
        first = content[:PEEK]
        if MAGIC.startswith(first[: len(MAGIC)]) and MARK.startswith(_first_bytes(first)):
            return 0  # cut within the first bytes of the file
        raise TresError("it is not a WARC file with one gzip member per record: give another name")
    end = _end(content, start)
    return start if end is None else end


def _begins_record(content: mmap, start: int) -> bool:
    return _first_bytes(content[start : start + PEEK]).startswith(MARK)


def _first_bytes(member: bytes) -> bytes:
    """Return the first bytes of a gzip member, a zero byte if it is damaged or empty."""
    unpacker = zlib.decompressobj(31)
    try:
        return unpacker.decompress(member) or b"\0" * unpacker.eof
    except zlib.error:
        return b"\0"


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
