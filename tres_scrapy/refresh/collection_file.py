"""The store of a collection: one SQLite file that survives a kill of the process.

A request is committed before it leaves, its result in one more transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tres_scrapy.refresh.collection_row import PAGE, Host, PageRow, RunRow, VisitRow
from tres_scrapy.run.database import Access, Schema, SqliteFileError

SCHEMA = Schema(
    noun="store of a collection",
    application=int.from_bytes(b"TRsh", "big"),
    version=1,
    tables="""\
CREATE TABLE page (
    id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, weight REAL NOT NULL,
    first_seen REAL NOT NULL, last_seen REAL NOT NULL, last_change REAL,
    hash BLOB, sketch BLOB, loose INTEGER NOT NULL, etag TEXT, modified TEXT,
    visits INTEGER NOT NULL DEFAULT 0, quiet INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0, quiet_time REAL NOT NULL DEFAULT 0,
    changed_time REAL NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0, retry_at REAL NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0, interval REAL
);
CREATE TABLE host (
    name TEXT PRIMARY KEY, honest INTEGER NOT NULL DEFAULT 0, lies INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, budget INTEGER NOT NULL, horizon REAL,
    policy TEXT NOT NULL, ended REAL
);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL, page INTEGER NOT NULL, arm INTEGER NOT NULL,
    sent REAL NOT NULL, answered REAL, gap REAL, change TEXT, status INTEGER,
    conditional INTEGER NOT NULL
);
CREATE INDEX visit_of_run ON visit (run);
CREATE TABLE outbox (visit INTEGER PRIMARY KEY, item TEXT NOT NULL);
CREATE TABLE link (hash INTEGER PRIMARY KEY);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL);
""",
)
LOST = "lost"  # the change of a request whose answer was lost in a kill


class StoreError(RuntimeError):
    """Raised when the file cannot be used; the message is one line."""


class Store:
    """Reads and writes the file; no other process can open it meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = SCHEMA.open(path, Access.EXCLUSIVE)
        except SqliteFileError as error:
            raise StoreError(f"{error}; -a store= names another") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add_pages(self, pages: Iterable[PageRow]) -> int:
        """Add the pages whose URLs are new, under new ids; return how many were added."""
        marks = ", ".join("?" * 21)
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
        query = (
            "SELECT id, started, budget, horizon, policy, ended FROM run ORDER BY id DESC LIMIT 1"
        )
        row = self._connection.execute(query).fetchone()
        return RunRow(*row[:5]) if row is not None and row[5] is None else None

    def last_started(self) -> float | None:
        """Return the start of the last run that has ended."""
        query = "SELECT max(started) FROM run WHERE ended IS NOT NULL"
        started: float | None = self._one(query)
        return started

    def begin_run(self, started: float, budget: int, horizon: float | None, policy: str) -> RunRow:
        """Begin a run; end one that is still open."""
        with self._connection.transaction() as connection:
            connection.execute("UPDATE run SET ended = ? WHERE ended IS NULL", (started,))
            cursor = connection.execute(
                "INSERT INTO run (started, budget, horizon, policy) VALUES (?, ?, ?, ?)",
                (started, budget, horizon, policy),
            )
        return RunRow(int(cursor.lastrowid or 0), started, budget, horizon, policy)

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

    def send(self, run: int, page: int, arm: int, sent: float, *, conditional: bool) -> int:
        """Add the visit of a request that leaves; return its number."""
        cursor = self._connection.execute(
            "INSERT INTO visit (run, page, arm, sent, conditional) VALUES (?, ?, ?, ?, ?)",
            (run, page, arm, sent, int(conditional)),
        )
        return int(cursor.lastrowid or 0)

    def take_back(self, visit: int) -> None:
        """Delete a visit whose request did not leave."""
        self._connection.execute("DELETE FROM visit WHERE id = ?", (visit,))

    def book(self, visit: VisitRow, page: PageRow, hosts: dict[str, Host]) -> None:
        """Write the result of a visit with its page, host, item and links in one transaction."""
        columns = ", ".join(f"{name.strip()} = ?" for name in PAGE.split(",")[2:])
        with self._connection.transaction() as connection:
            connection.execute(
                "UPDATE visit SET answered = ?, gap = ?, change = ?, status = ? WHERE id = ?",
                (visit.answered, visit.gap, visit.change, visit.status, visit.id),
            )
            connection.execute(
                f"UPDATE page SET {columns} WHERE id = ?",  # noqa: S608 - our own names
                (*page.values()[2:], page.id),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO host VALUES (?, ?, ?)",
                [(name, host.honest, host.lies) for name, host in hosts.items()],
            )
            connection.execute("INSERT INTO outbox VALUES (?, ?)", (visit.id, visit.item))
            connection.executemany(
                "INSERT OR IGNORE INTO link VALUES (?)", [(link,) for link in visit.links]
            )

    def outbox(self) -> list[tuple[int, str]]:
        """Return the items that the pipelines may not have received, by visit."""
        return list(self._connection.execute("SELECT visit, item FROM outbox ORDER BY visit"))

    def delivered(self, visit: int) -> None:
        """Delete the item of a visit: the pipelines have processed it."""
        self._connection.execute("DELETE FROM outbox WHERE visit = ?", (visit,))

    def links(self) -> set[int]:
        """Return the hashes of the links seen so far."""
        return {link for (link,) in self._connection.execute("SELECT hash FROM link")}

    def history(self) -> list[tuple[Any, ...]]:
        """Return page, arm, answered, gap, change and conditional of every answered visit."""
        return list(
            self._connection.execute(
                "SELECT page, arm, answered, gap, change, conditional FROM visit "
                "WHERE answered IS NOT NULL ORDER BY answered"
            )
        )

    def load(self, name: str) -> bytes | None:
        """Return the value kept under a name."""
        value: bytes | None = self._one("SELECT value FROM state WHERE name = ?", name)
        return value

    def keep(self, name: str, value: bytes) -> None:
        """Keep a value under a name."""
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def _one(self, query: str, *values: Any) -> Any:
        row = self._connection.execute(query, values).fetchone()
        return None if row is None else row[0]
