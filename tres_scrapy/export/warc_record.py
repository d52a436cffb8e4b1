"""Records of a WARC file as bytes, before compression."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from fastwarc.warc import WarcRecord, WarcRecordType

SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
# Bodies are archived unchunked; with this header a reader would expect chunks.
UNDONE: Final = "transfer-encoding"
KEPT_AS: Final = "X-Archive-Orig-"
BREAK: Final = re.compile(r"[\r\n\0]+")  # characters that would end a header

Headers = list[tuple[str, str]]


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return f"<urn:uuid:{uuid4()}>"


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
    id: str = field(default_factory=_new_id)  # of the response record


@dataclass(frozen=True, slots=True)
class Note:
    """What the crawl found out about a URL; `about` is the ID of its response record."""

    url: str
    fields: dict[str, str]
    about: str | None = None
    date: datetime = field(default_factory=_now)


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
    status = f"{exchange.protocol} {exchange.status} {_phrase(exchange.status)}".rstrip()
    received, sent = _http(status, _undone(exchange.headers)), _http(*_request(exchange))
    return [
        _record(WarcRecordType.response, head, received, exchange.body),
        _record(WarcRecordType.request, asked, sent, exchange.sent),
    ]


def note_record(note: Note) -> list[bytes]:
    """Return a metadata record."""
    head = {
        "WARC-Date": _date(note.date),
        "WARC-Target-URI": note.url,
        "WARC-Concurrent-To": note.about,
        "WARC-Refers-To": note.about,
        "Content-Type": "application/warc-fields",
    }
    return [_record(WarcRecordType.metadata, head, _lines(note.fields.items()))]


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


def _phrase(status: int) -> str:
    """Return the standard reason phrase: Scrapy does not keep the one received."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


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
