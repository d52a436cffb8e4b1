"""A request of a refresh run, the answer to it, and the item that tells what it has found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tres_scrapy.refresh.main_text import Copy, Reading


@dataclass(frozen=True, slots=True)
class Errand:
    """A request to be made: its visit, and the validators it carries."""

    visit: int
    place: int
    url: str
    etag: str | None = None
    modified: str | None = None

    @property
    def conditional(self) -> bool:
        """Whether the server may answer that nothing has changed."""
        return self.etag is not None or self.modified is not None


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What came of a request: a status or, without one, the name of what failed."""

    status: int | None
    error: str = ""
    url: str = ""
    reading: Reading | None = None
    copy: Copy | None = None
    etag: str | None = None
    modified: str | None = None


@dataclass(slots=True)
class VisitItem:
    """An item: what a visit has found."""

    url: str
    change: str
    visit: int
    status: int | None = None
    final_url: str = ""
    title: str = ""
    text: str = ""
    fetched_at: str = ""  # ISO 8601
    age: float = 0.0  # seconds since the copy before was made
    changed_at: str = ""  # when the last change was found, if any was
    old_hash: str = ""
    new_hash: str = ""
    distance: int | None = None  # lanes of 256 in which the texts differ
    visits: int = 0
    changes: int = 0
    error: str = ""
    found: list[str] = field(default_factory=list)


def item_of(text: str) -> VisitItem:
    """Return an item from the text that the store has kept of it."""
    values: dict[str, Any] = json.loads(text)
    return VisitItem(**values)
