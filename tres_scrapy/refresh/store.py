"""The store of a collection: one SQLite file that survives a kill of the process.

A request is committed before it leaves, its result in one more transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from tres_scrapy.config.typed import typed
from tres_scrapy.refresh.main_text import Copy
from tres_scrapy.refresh.visit import VisitItem
from tres_scrapy.run.database import Access, Schema, SqliteFileError
from tres_scrapy.url.message import TresError

PAGE: Final = """\
id, url, weight, first_seen, last_seen, last_change, hash, sketch, loose, etag, modified, visits,
quiet, changes, quiet_time, changed_time, misses, errors, retry_at, gone"""


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

    @classmethod
    def read(cls, values: Sequence[Any]) -> Self:
        """Return the page of a row of the table."""
        *first, digest, sketch, loose = values[:9]
        copy = None if digest is None else Copy(digest, sketch, bool(loose))
        *rest, gone = values[9:]
        return cls(*[*first, copy, *rest, bool(gone)])

    def values(self) -> tuple[Any, ...]:
        """Return the columns in the order of PAGE."""
        values = [getattr(self, each.name) for each in fields(self)]
        copy = (None, None, False) if self.copy is None else astuple(self.copy)
        return (*values[:6], *copy, *values[7:])


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


SCHEMA = Schema(
    noun="store of a collection",
    application=int.from_bytes(b"TRsh", "big"),
    version=2,
    tables="""\
CREATE TABLE page (
    id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, weight REAL NOT NULL,
    first_seen REAL NOT NULL, last_seen REAL NOT NULL, last_change REAL,
    hash BLOB, sketch BLOB, loose INTEGER NOT NULL, etag TEXT, modified TEXT,
    visits INTEGER NOT NULL DEFAULT 0, quiet INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0, quiet_time REAL NOT NULL DEFAULT 0,
    changed_time REAL NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0, retry_at REAL NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE host (
    name TEXT PRIMARY KEY, honest INTEGER NOT NULL DEFAULT 0, lies INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, budget INTEGER NOT NULL, horizon REAL,
    ended REAL
);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL, page INTEGER NOT NULL,
    sent REAL NOT NULL, answered REAL, change TEXT, status INTEGER,
    conditional INTEGER NOT NULL
);
CREATE INDEX visit_of_run ON visit (run);
CREATE TABLE outbox (visit INTEGER PRIMARY KEY, item TEXT NOT NULL);
CREATE TABLE link (hash INTEGER PRIMARY KEY);
""",
)
LOST = "lost"  # the change of a request whose answer was lost in a kill


class Store:
    """Reads and writes the file; no other process can open it meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = SCHEMA.open(path, Access.EXCLUSIVE)
        except SqliteFileError as error:
            raise TresError(f"{error}; {typed('store')} names another") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add_pages(self, pages: Iterable[PageRow]) -> int:
        """Add the pages whose URLs are new, under new ids; return how many were added."""
        marks = ", ".join("?" * 20)
        before = self._one("SELECT count(*) FROM page")
        with self._connection.transaction():
            rows = ((None, *page.values()[1:]) for page in pages)
            self._connection.executemany(
                f"INSERT OR IGNORE INTO page ({PAGE}) VALUES ({marks})",  # noqa: S608 - our own names
                rows,
            )
        return int(self._one("SELECT count(*) FROM page") - before)

    def pages(self) -> list[PageRow]:
        """Return all pages in the order of their ids."""
        query = f"SELECT {PAGE} FROM page ORDER BY id"  # noqa: S608 - our own names
        return [PageRow.read(values) for values in self._connection.execute(query)]

    def hosts(self) -> dict[str, Host]:
        """Return the known hosts by name."""
        query = "SELECT name, honest, lies FROM host"
        return {name: Host(*rest) for name, *rest in self._connection.execute(query)}

    def open_run(self) -> RunRow | None:
        """Return the last run if it has not ended."""
        query = "SELECT id, started, budget, horizon, ended FROM run ORDER BY id DESC LIMIT 1"
        row = self._connection.execute(query).fetchone()
        return RunRow(*row[:4]) if row is not None and row[4] is None else None

    def last_started(self) -> float | None:
        """Return the start of the last run that has ended."""
        query = "SELECT max(started) FROM run WHERE ended IS NOT NULL"
        started: float | None = self._one(query)
        return started

    def begin_run(self, started: float, budget: int, horizon: float | None) -> RunRow:
        """Begin a run; end one that is still open."""
        with self._connection.transaction() as connection:
            connection.execute("UPDATE run SET ended = ? WHERE ended IS NULL", (started,))
            cursor = connection.execute(
                "INSERT INTO run (started, budget, horizon) VALUES (?, ?, ?)",
                (started, budget, horizon),
            )
        return RunRow(int(cursor.lastrowid or 0), started, budget, horizon)

    def start_run(self, run: int, started: float) -> None:
        """Set the start of a run."""
        self._connection.execute("UPDATE run SET started = ? WHERE id = ?", (started, run))

    def end_run(self, run: int, ended: float) -> None:
        """Set the end of a run."""
        self._connection.execute("UPDATE run SET ended = ? WHERE id = ?", (ended, run))

    def lose_visits(self) -> int:
        """Mark visits without an answer as lost; return how many there are."""
        cursor = self._connection.execute(
            "UPDATE visit SET change = ? WHERE change IS NULL", (LOST,)
        )
        return cursor.rowcount

    def visits_of(self, run: int) -> int:
        """Return how many requests a run has sent."""
        return int(self._one("SELECT count(*) FROM visit WHERE run = ?", run))

    def pages_of(self, run: int) -> set[int]:
        """Return the pages that a run has requested, except those whose answer was lost."""
        query = "SELECT DISTINCT page FROM visit WHERE run = ? AND change IS NOT ?"
        return {page for (page,) in self._connection.execute(query, (run, LOST))}

    def send(self, run: int, page: int, sent: float, *, conditional: bool) -> int:
        """Add the visit of a request that leaves; return its number."""
        cursor = self._connection.execute(
            "INSERT INTO visit (run, page, sent, conditional) VALUES (?, ?, ?, ?)",
            (run, page, sent, int(conditional)),
        )
        return int(cursor.lastrowid or 0)

    def take_back(self, visit: int) -> None:
        """Delete a visit whose request did not leave."""
        self._connection.execute("DELETE FROM visit WHERE id = ?", (visit,))

    def book(
        self,
        item: VisitItem,
        answered: float,
        links: Iterable[int],
        page: PageRow,
        hosts: dict[str, Host],
    ) -> None:
        """Write a visit's result, item and new links, its page and host in one transaction."""
        columns = ", ".join(f"{name.strip()} = ?" for name in PAGE.split(",")[2:])
        with self._connection.transaction() as connection:
            connection.execute(
                "UPDATE visit SET answered = ?, change = ?, status = ? WHERE id = ?",
                (answered, item.change, item.status, item.visit),
            )
            connection.execute(
                f"UPDATE page SET {columns} WHERE id = ?",  # noqa: S608 - our own names
                (*page.values()[2:], page.id),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO host VALUES (?, ?, ?)",
                [(name, host.honest, host.lies) for name, host in hosts.items()],
            )
            connection.execute(
                "INSERT INTO outbox VALUES (?, ?)", (item.visit, json.dumps(asdict(item)))
            )
            connection.executemany(
                "INSERT OR IGNORE INTO link VALUES (?)", [(link,) for link in links]
            )

    def outbox(self) -> list[VisitItem]:
        """Return the items that the pipelines may not have received, by visit."""
        rows = self._connection.execute("SELECT item FROM outbox ORDER BY visit")
        return [VisitItem(**json.loads(text)) for (text,) in rows]

    def delivered(self, visit: int) -> None:
        """Delete the item of a visit: the pipelines have processed it."""
        self._connection.execute("DELETE FROM outbox WHERE visit = ?", (visit,))

    def links(self) -> set[int]:
        """Return the hashes of the links seen so far."""
        return {link for (link,) in self._connection.execute("SELECT hash FROM link")}

    def history(self) -> list[tuple[Any, ...]]:
        """Return page, time, change and conditional of every answered visit."""
        return list(
            self._connection.execute(
                "SELECT page, answered, change, conditional FROM visit "
                "WHERE answered IS NOT NULL ORDER BY answered"
            )
        )

    def _one(self, query: str, *values: Any) -> Any:
        row = self._connection.execute(query, values).fetchone()
        return None if row is None else row[0]
