"""The rows of a collection file: pages, hosts, runs and visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from tres_scrapy.refresh.main_text import Copy

PAGE: Final = """\
id, url, weight, first_seen, last_seen, last_change, hash, sketch, loose, etag, modified, visits,
quiet, changes, quiet_time, changed_time, misses, errors, retry_at, gone, interval"""


@dataclass(slots=True)
class PageRow:
    """A page; times in seconds since 1970, counts of visits."""

    id: int
    url: str
    weight: float
    first_seen: float
    last_seen: float  # the last successful visit
    last_change: float | None = None
    copy: Copy | None = None
    etag: str | None = None
    modified: str | None = None
    visits: int = 0
    quiet: int = 0
    changes: int = 0
    quiet_time: float = 0.0
    changed_time: float = 0.0
    misses: int = 0  # 404 and 410 answers in a row
    errors: int = 0  # failures in a row
    retry_at: float = 0.0
    gone: bool = False
    interval: float | None = None

    @classmethod
    def read(cls, values: Sequence[Any]) -> Self:
        """Return the page of a row of the table."""
        *first, digest, sketch, loose = values[:9]
        copy = None if digest is None else Copy(digest, sketch, bool(loose))
        *rest, gone, interval = values[9:]
        return cls(*[*first, copy, *rest, bool(gone), interval])

    def values(self) -> tuple[Any, ...]:
        """Return the columns in the order of PAGE."""
        copy = self.copy
        kept = (None, None, 0) if copy is None else (copy.hash, copy.sketch, int(copy.loose))
        return (
            self.id,
            self.url,
            self.weight,
            self.first_seen,
            self.last_seen,
            self.last_change,
            *kept,
            self.etag,
            self.modified,
            self.visits,
            self.quiet,
            self.changes,
            self.quiet_time,
            self.changed_time,
            self.misses,
            self.errors,
            self.retry_at,
            int(self.gone),
            self.interval,
        )


@dataclass(slots=True)
class Host:
    """How often the validators of a host reported a change, and how often they hid one."""

    honest: int = 0
    lies: int = 0


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run: its start, its budget of requests and its time in seconds (None: no time is set)."""

    id: int
    started: float
    budget: int
    horizon: float | None
    policy: str


@dataclass(frozen=True, slots=True)
class VisitRow:
    """The result of a visit, with its item as JSON and the hashes of its new links."""

    id: int
    answered: float
    gap: float | None
    change: str
    status: int | None
    item: str
    links: list[int] = field(default_factory=list)
