"""PDFs as documents: the same process reads them as in a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tres_scrapy.page.pdf_page import DocumentError, PdfReader, read_document
from tres_scrapy.training.source import Unreadable

if TYPE_CHECKING:
    from tres_scrapy.training.source import Record

_PDFS: Final = PdfReader()  # its process starts with the first PDF


def read_pdf(data: bytes, place: str) -> Record | Unreadable:
    """Return title and text of a PDF."""
    try:
        page = read_document(_PDFS(data), place)
    except DocumentError as error:
        return Unreadable(place, f"cannot be read as PDF: {error}")
    return {"title": page.title, "text": page.text, "place": place}
