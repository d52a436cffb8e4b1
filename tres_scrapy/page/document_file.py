"""Reads documents as pages: JSON lines, HTML, text, PDF, folders of them and WARC files.

For a document that cannot be read, readers yield an Unreadable and continue.
"""

from __future__ import annotations

import json
import lzma
import os
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.language import UTF_8, declared_encoding, decoded, detect_language, is_utf_8
from tres_scrapy.page.pdf_page import PDF, PDFS, DocumentError, read_document
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import Page, read_page
from tres_scrapy.url.message import printable, reason
from tres_scrapy.url.whole_file import OPENERS, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# `html` or `text`; `place`: file and position; `title`, `url` and `host` if known
Record: TypeAlias = dict[str, Any]

JSON: Final = frozenset({".jsonl", ".json", ".ndjson", ".jl"})
HTML: Final = frozenset({".html", ".htm", ".xhtml"})
WARC_TYPES: Final = ("text/html", "application/xhtml+xml", PDF)
PEEK: Final = 1024
MAX_BYTES: Final = 8 * 1024 * 1024  # of a page, as in the crawl
MOST_WORDS: Final = 1_000_000  # of a kept page that are the same
NO_LINKS: Final = ReadingLimits(links=0)
# errors of truncated or damaged compressed files
BROKEN: Final = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that could not be read: its file and position, and the reason."""

    place: str
    reason: str

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.reason}")


def read_pages(source: Path | bytes) -> Iterator[Page | Unreadable]:
    """Yield the documents of a file, a folder or bytes as pages without links.

    A page without a URL has its file and position as URL.
    """
    if isinstance(source, bytes):
        records = _sniff(source, "standard input")
    else:
        records = read_records(source)
    for record in records:
        yield record if isinstance(record, Unreadable) else record_page(record)


def record_page(record: Record) -> Page:
    """Return the title and text of a record."""
    url, title = str(record.get("url") or ""), str(record.get("title") or "")
    place = url or record["place"]
    if isinstance(record.get("html"), str):
        page = read_page(record["html"], url, NO_LINKS)
        return replace(page, url=place, title=title or page.title)
    text = str(record.get("text") or "")
    return Page(place, title, text, (), detect_language(text))


def read_records(path: Path) -> Iterator[Record | Unreadable]:
    """Yield the records of a file or, in sorted order, of all HTML, text and PDF below a folder."""
    if path.is_dir():
        yield from _folder(path)
    elif path.name.removesuffix(".gz").endswith(".warc"):
        with path.open("rb") as stream:
            yield from _warc(stream, path.name)
    elif _is_page(path):
        yield _page(path, path.name)
    else:
        with open_bytes(path) as file:
            yield from (
                _json_lines(file, path.name) if _kind(path) in JSON else _sniffed(file, path.name)
            )


def _sniffed(file: IO[bytes], place: str) -> Iterator[Record | Unreadable]:
    try:
        start = file.read(PEEK)
        file.seek(0)
        if _starts_with(b"{", start):
            yield from _json_lines(file, place)
        else:
            yield from _sniff(file.read(MAX_BYTES), place)
    except BROKEN as error:
        yield Unreadable(place, reason(error))


def _sniff(data: bytes, place: str) -> Iterator[Record | Unreadable]:
    """Yield the records of bytes, whose content decides: JSON lines, HTML, PDF or plain text."""
    if is_pdf(data):
        yield read_pdf(data, place)
    elif b"\0" in data[:PEEK]:
        yield Unreadable(place, "is binary, must be text, HTML, PDF or JSON lines")
    elif _starts_with(b"{", data):
        yield from _json_lines(BytesIO(data), place)
    else:
        kind = "html" if _starts_with(b"<", data) else "text"
        yield {kind: _decode(data), "place": place}


def _starts_with(mark: bytes, data: bytes) -> bool:
    return data[:PEEK].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(mark)


def is_text(path: Path) -> bool:
    """Return whether a file name is that of plain text, perhaps ending in .gz or .xz."""
    return _kind(path) == ".txt"


def _kind(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in OPENERS else path).suffix.lower()


def _is_page(path: Path) -> bool:
    return is_text(path) or _kind(path) in {*HTML, ".pdf"}


def _page(path: Path, place: str) -> Record | Unreadable:
    try:
        with open_bytes(path) as file:
            data = file.read(MAX_BYTES)
    except BROKEN as error:
        return Unreadable(place, reason(error))
    if is_pdf(data):
        return read_pdf(data, place)
    if _kind(path) == ".pdf":
        return Unreadable(place, "is not a PDF")
    return {"text" if is_text(path) else "html": _decode(data), "place": place}


def _folder(path: Path) -> Iterator[Record | Unreadable]:
    """Yield the files of a folder; the top folder of a file is its host. Links are not followed."""
    for directory, folders, names in os.walk(path):
        folders.sort()
        for file in (Path(directory, name) for name in sorted(names)):
            if _is_page(file):
                parts = file.relative_to(path).parts
                record = _page(file, "/".join(parts))
                if isinstance(record, dict) and len(parts) > 1:
                    record["host"] = parts[0]
                yield record


def _json_lines(lines: Iterable[bytes], name: str) -> Iterator[Record | Unreadable]:
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _json_line(line, f"{name}, line {number}")
    except BROKEN as error:
        yield Unreadable(f"{name}, after line {number}", reason(error))


def _kept_page(row: list[Any]) -> Record | None:
    """Return a page that a topic from keywords keeps (see TopicFolder), None if it is not one.

    Only its words and their counts are kept: the text has them without their order.
    """
    match row:
        case [int(), str(), str(url), str(title), str(), dict(words), *_] if all(
            type(count) is int and count <= MOST_WORDS for count in words.values()
        ):
            own = {word: count for word, count in words.items() if ":" not in word}  # of its text
            rest = Counter(own) - Counter(tokenise(title))  # the counts include the title
            return {"url": url, "title": title, "text": " ".join(rest.elements())}
    return None


def _json_line(line: bytes, place: str) -> Record | Unreadable:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Unreadable(place, reason(error))
    if isinstance(record, list):
        record = _kept_page(record)
    if isinstance(record, dict) and isinstance(record.get("error"), str):
        return Unreadable(str(record.get("url", place)), record["error"])  # a fetch that failed
    if not isinstance(record, dict) or not any(
        isinstance(record.get(kind), str) for kind in ("html", "text")
    ):
        return Unreadable(place, "a record must have 'html' or 'text'")
    return record | {"place": place}


def read_pdf(data: bytes, place: str) -> Record | Unreadable:
    """Return title and text of a PDF."""
    try:
        page = read_document(PDFS(data), place)
    except DocumentError as error:
        return Unreadable(place, f"cannot be read as PDF: {error}")
    return {"title": page.title, "text": page.text, "place": place}


def _warc(stream: IO[bytes], name: str) -> Iterator[Record | Unreadable]:
    """Yield the HTML pages and PDFs among the responses of a WARC file, plain or .gz."""
    url = "start"
    try:
        for entry in ArchiveIterator(
            stream, record_types=WarcRecordType.response, parse_http=False
        ):
            url = (entry.headers.get("WARC-Target-URI") or "").strip("<>")  # wget adds < and >
            block = entry.reader.read()
            if len(block) < entry.content_length:
                yield Unreadable(f"{name}, {url}", "the file ends within the record")
            elif record := _response(block, url, f"{name}, {url}"):
                yield record
    except BROKEN as error:
        yield Unreadable(f"{name}, after {url}", reason(error))


def _response(block: bytes, url: str, place: str) -> Record | Unreadable | None:
    """Return the page of an HTTP response, or None if it is not a page."""
    # parsed here, because the iterator stops at the first body that it cannot decode
    response = WarcRecord()
    response.init_headers(WarcRecordType.response, content_length=len(block))
    response.set_bytes_content(block)
    response.is_http = True
    try:
        response.parse_http(auto_decode="all")
        if response.http_headers.status_code != 200 or response.http_content_type not in WARC_TYPES:
            return None
        data = response.reader.read(MAX_BYTES)
    except BROKEN as error:
        return Unreadable(place, reason(error))
    if is_pdf(data):
        found = read_pdf(data, place)
        return found | {"url": url} if isinstance(found, dict) else found
    if response.http_content_type == PDF:
        return None
    kind = response.http_headers.get("Content-Type")
    return {"html": _decode(data, kind), "url": url, "place": place}


def _decode(data: bytes, content_type: str | None = None) -> str:
    """Decode by byte order mark, HTTP header or meta element, else as UTF-8, else as cp1252."""
    encoding = declared_encoding(data, content_type)
    if encoding is None:
        encoding = UTF_8 if is_utf_8(data, is_cut=len(data) >= MAX_BYTES) else "cp1252"
    return decoded(data, encoding, len(data))
