"""Readers of documents in JSON lines, HTML, text, PDF, folders and WARC files (P 3.1).

For a document that cannot be read, readers yield an Unreadable and continue.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from tres_scrapy.page.pdf_page import is_pdf
from tres_scrapy.page.text import tokenise
from tres_scrapy.training.pdf_text import read_pdf
from tres_scrapy.training.source import BROKEN, MAX_BYTES, Record, Unreadable, decode
from tres_scrapy.training.warc_reader import read_warc
from tres_scrapy.url.message import reason
from tres_scrapy.url.whole_file import OPENERS, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

JSON: Final = frozenset({".jsonl", ".json", ".ndjson", ".jl"})
PEEK: Final = 1024
MOST_WORDS: Final = 1_000_000  # of a kept page that are the same
HTML: Final = frozenset({".html", ".htm", ".xhtml"})
PDF: Final = ".pdf"


def read_records(path: Path) -> Iterator[Record | Unreadable]:
    """Yield the records of a file or, in sorted order, of all HTML, text and PDF below a folder."""
    if path.is_dir():
        yield from _folder(path)
    elif path.name.removesuffix(".gz").endswith(".warc"):
        with path.open("rb") as stream:
            yield from read_warc(stream, path.name)
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
            yield from sniff_records(file.read(MAX_BYTES), place)
    except BROKEN as error:
        yield Unreadable(place, reason(error))


def sniff_records(data: bytes, place: str) -> Iterator[Record | Unreadable]:
    """Yield the records of bytes, whose content decides: JSON lines, HTML, PDF or plain text."""
    if is_pdf(data):
        yield read_pdf(data, place)
    elif b"\0" in data[:PEEK]:
        yield Unreadable(place, "is binary, must be text, HTML, PDF or JSON lines")
    elif _starts_with(b"{", data):
        yield from _json_lines(BytesIO(data), place)
    else:
        kind = "html" if _starts_with(b"<", data) else "text"
        yield {kind: decode(data), "place": place}


def _starts_with(mark: bytes, data: bytes) -> bool:
    return data[:PEEK].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(mark)


def is_text(path: Path) -> bool:
    """Return whether a file name is that of plain text, perhaps ending in .gz or .xz."""
    return _kind(path) == ".txt"


def _kind(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in OPENERS else path).suffix.lower()


def _is_page(path: Path) -> bool:
    return is_text(path) or _kind(path) in {*HTML, PDF}


def _page(path: Path, place: str) -> Record | Unreadable:
    try:
        with open_bytes(path) as file:
            data = file.read(MAX_BYTES)
    except BROKEN as error:
        return Unreadable(place, reason(error))
    if is_pdf(data):
        return read_pdf(data, place)
    if _kind(path) == PDF:
        return Unreadable(place, "is not a PDF")
    return {"text" if is_text(path) else "html": decode(data), "place": place}


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
    """Return a page that a topic from keywords keeps (see WordFolder), None if it is none.

    Only its words and their counts are kept: the text has them without their order.
    """
    match row:
        case [int(), str(), str(url), str(title), str(), dict(words), *_] if all(
            type(count) is int and count <= MOST_WORDS for count in words.values()
        ):
            rest = Counter(words) - Counter(tokenise(title))  # the counts include the title
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
