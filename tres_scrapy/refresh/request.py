"""A request of a refresh run and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.pdf_page import DocumentError, is_pdf
from tres_scrapy.refresh.main_text import Copy, Reading, copy_of_bytes, read, read_pdf

OK, NOT_MODIFIED = 200, 304


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """A request to make: its visit, its page and the validators that it carries."""

    visit: int
    place: int
    url: str
    etag: str | None = None
    modified: str | None = None

    @property
    def conditional(self) -> bool:
        """Whether the server may answer 304 Not Modified."""
        return self.etag is not None or self.modified is not None


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The answer to a request: a status, or without one the name of the error."""

    status: int | None
    error: str = ""
    url: str = ""
    reading: Reading | None = None
    copy: Copy | None = None
    etag: str | None = None
    modified: str | None = None


def answer_of(
    status: int,
    url: str,
    content: str | bytes,
    validators: tuple[str | None, str | None],
    limits: ReadingLimits,
) -> PageAnswer:
    """Return the answer of a server; `content` is text if it is HTML, else bytes."""
    if status != OK:
        error = "" if status == NOT_MODIFIED else f"HTTP {status}"
        return PageAnswer(status, error, url, None, None, *validators)
    reading = _read(content, url, limits)
    if reading is None:
        assert isinstance(content, bytes)
        return PageAnswer(status, "", url, None, copy_of_bytes(content), *validators)
    return PageAnswer(status, "", url, reading, reading.copy, *validators)


def _read(content: str | bytes, url: str, limits: ReadingLimits) -> Reading | None:
    """Read HTML or a PDF; return None for anything else and for a broken PDF."""
    if isinstance(content, str):
        return read(content, url, limits)
    try:
        return read_pdf(content, url, limits) if limits.documents and is_pdf(content) else None
    except DocumentError:
        return None
