"""Records of a WARC file as bytes, before compression."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlsplit

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tres_scrapy.export.exchange import Exchange, Headers, Note

SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
# Bodies are archived unchunked; with this header a reader would expect chunks.
UNDONE: Final = "transfer-encoding"
KEPT_AS: Final = "X-Archive-Orig-"
BREAK: Final = re.compile(r"[\r\n\0]+")  # characters that would end a header


class _Head(StatusAndHeaders):  # type: ignore[misc]
    """Headers in their original bytes: warcio would escape those beyond ASCII."""

    def compute_headers_buffer(self, header_filter: object = None) -> None:
        self.headers_buff = self.to_bytes(encoding="latin-1")


def info_record(name: str, fields: dict[str, str]) -> list[bytes]:
    """Return the record that begins a file, with `fields` about the crawl."""
    writer = _writer()
    return [_bytes(writer, writer.create_warcinfo_record(name, fields))]


def exchange_records(exchange: Exchange) -> list[bytes]:
    """Return a response record and its request record."""
    writer = _writer()
    about = {"WARC-Date": _date(exchange.date)}
    status = f"{exchange.status} {_phrase(exchange.status)}".rstrip()
    response = writer.create_warc_record(
        exchange.url,
        "response",
        payload=BytesIO(exchange.body),
        length=len(exchange.body),
        warc_headers_dict={"WARC-Record-ID": exchange.id, **about, **_circumstances(exchange)},
        http_headers=_Head(status, _undone(exchange.headers), exchange.protocol),
    )
    request = writer.create_warc_record(
        exchange.url,
        "request",
        payload=BytesIO(exchange.sent),
        length=len(exchange.sent),
        warc_headers_dict={**about, "WARC-Concurrent-To": exchange.id},
        http_headers=_Head(_request_line(exchange), _asked(exchange), is_http_request=True),
    )
    return [_bytes(writer, response), _bytes(writer, request)]


def note_record(note: Note) -> list[bytes]:
    """Return a metadata record."""
    writer = _writer()
    own = {"WARC-Date": _date(note.date)}
    if note.about is not None:
        own |= {"WARC-Concurrent-To": note.about, "WARC-Refers-To": note.about}
    lines = "".join(f"{name}: {_line(value)}\r\n" for name, value in note.fields.items())
    block = lines.encode()
    record = writer.create_warc_record(
        note.url, "metadata", payload=BytesIO(block), length=len(block), warc_headers_dict=own
    )
    return [_bytes(writer, record)]


def _writer() -> Any:
    return WARCWriter(BytesIO(), gzip=False, warc_version="1.1")


def _bytes(writer: Any, record: Any) -> bytes:
    writer.out = BytesIO()
    writer.write_record(record)
    data: bytes = writer.out.getvalue()
    return data


def _date(date: datetime) -> str:
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _phrase(status: int) -> str:
    """Return the standard reason phrase: Scrapy does not keep the one received."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _circumstances(exchange: Exchange) -> dict[str, str]:
    fields = {"WARC-IP-Address": exchange.ip, "WARC-Truncated": exchange.truncated}
    return {name: value for name, value in fields.items() if value}


def _line(text: str) -> str:
    return BREAK.sub(" ", text)


def _undone(headers: Headers) -> Headers:
    return [
        (KEPT_AS + name if name.lower() == UNDONE else name, _line(value))
        for name, value in headers
    ]


def _request_line(exchange: Exchange) -> str:
    parts = urlsplit(exchange.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return f"{exchange.method} {target} HTTP/1.1"


def _asked(exchange: Exchange) -> Headers:
    """Return the headers that were sent, without credentials and cookies."""
    host = ("Host", urlsplit(exchange.url).netloc)
    others = [(name, _line(value)) for name, value in exchange.asked]
    shown = [(name, value) for name, value in others if name.lower() not in SECRET]
    return shown if any(name.lower() == "host" for name, _ in shown) else [host, *shown]
