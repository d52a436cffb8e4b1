"""Reader of the HTML pages and PDFs in WARC files, as archives and crawlers write them (P 3.1)."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from tres_scrapy.page.pdf_page import PDF, is_pdf
from tres_scrapy.training.pdf_text import read_pdf
from tres_scrapy.training.source import BROKEN, MAX_BYTES, Record, Unreadable, decode
from tres_scrapy.url.message import reason

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES: Final = ("text/html", "application/xhtml+xml", PDF)


def read_warc(stream: IO[bytes], name: str) -> Iterator[Record | Unreadable]:
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
        if response.http_headers.status_code != 200 or response.http_content_type not in TYPES:
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
    return {"html": decode(data, kind), "url": url, "place": place}
