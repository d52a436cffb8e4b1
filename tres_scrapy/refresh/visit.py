"""A visit of a page: the request, the answer to it, and the item that says what it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.pdf_page import DocumentError
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


@dataclass(slots=True)
class VisitItem:
    """What a visit found."""

    url: str
    change: str
    visit: int
    status: int | None = None
    final_url: str = ""
    title: str = ""
    text: str = ""
    fetched_at: str = ""  # ISO 8601
    age: float = 0.0  # seconds since the previous copy was made
    changed_at: str = ""  # time of the last change found, "" without a change
    old_hash: str = ""
    new_hash: str = ""
    distance: int | None = None  # lanes of 256 in which the texts differ
    visits: int = 0
    changes: int = 0
    error: str = ""
    found: list[str] = field(default_factory=list)


class SeenLinks:
    """Finds the links of a page that no page had before."""

    def __init__(self, hashes: set[int]) -> None:
        self._hashes = hashes

    def take(self, reading: Reading) -> dict[int, str]:
        """Return the new links of a page by hash; from now on they count as seen."""
        hashes = {_hash(url): url for url, _ in reading.links}
        new = {each: url for each, url in hashes.items() if each not in self._hashes}
        self._hashes |= new.keys()
        return new


def _hash(url: str) -> int:
    digest = blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
