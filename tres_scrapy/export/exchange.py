"""One request of the crawl and its response, as sent over the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

Headers = list[tuple[str, str]]


def new_id() -> str:
    """Return a new identifier of a record."""
    return f"<urn:uuid:{uuid4()}>"


@dataclass(slots=True)
class Exchange:
    """A request and its response, headers decoded as latin-1.

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
    date: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Note:
    """What the crawl found out about a URL; `about` is the ID of its response record."""

    url: str
    fields: dict[str, str]
    about: str | None = None
    date: datetime = field(default_factory=lambda: datetime.now(UTC))
