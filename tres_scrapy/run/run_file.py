"""The file of a run, one SQLite database that can be read while it is written, and its rows."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np

from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.tree import Rule, Split
from tres_scrapy.links.code import CODES, Name
from tres_scrapy.page.text import Page
from tres_scrapy.rights.signal import Signal
from tres_scrapy.run.database import Access, Database, Migration, Schema, SqliteFileError
from tres_scrapy.run.reason import LinkPart
from tres_scrapy.url.message import TresError, plainly
from tres_scrapy.url.whole_file import check_numbers

LEVEL: Final = 4  # 2.6 kB for a page of sites.warc.gz, in 0.09 ms; level 6 saves 1 % for 0.02 ms
LARGEST: Final = 50_000_000  # bytes of an unpacked text: no page that was read has more


class StoredText(NamedTuple):
    """Title and main text of a page, the texts of its links, mostly menus, and its rights."""

    title: str = ""
    text: str = ""
    links: tuple[str, ...] = ()
    rights: tuple[Signal, ...] = ()

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """Return a packed text; raise ValueError if it is damaged."""
        stream = zlib.decompressobj()
        try:
            title, text, links = json.loads(stream.decompress(data, LARGEST))
        except zlib.error as error:
            raise ValueError(str(error)) from None
        return cls(str(title), str(text), tuple(map(str, links)))


def packed(page: Page) -> bytes:
    """Return title, main text and link texts of a page as compressed JSON."""
    found = page.title, page.text, [link.anchor for link in page.links]
    return zlib.compress(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"), LEVEL)


def rights_in(rows: Iterable[tuple[str]]) -> tuple[Signal, ...]:
    """Return the signals in rows of the table `rights`."""
    return tuple(Signal(*map(str, each)) for (value,) in rows for each in json.loads(value))


def mark_of(data: bytes) -> int:
    """Return a hash of a packed text, as a 64-bit integer with a sign."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), signed=True)


def _store_texts_once(cursor: sqlite3.Cursor) -> None:
    """From 7 to 8: pages with the same text share it."""
    cursor.execute("ALTER TABLE text RENAME TO text_7")
    cursor.execute("CREATE TABLE text (row INTEGER PRIMARY KEY, mark INTEGER NOT NULL, value BLOB)")
    cursor.execute("CREATE INDEX text_by_mark ON text (mark) WHERE value NOTNULL")
    found = cursor.connection.execute("SELECT row, value FROM text_7 ORDER BY row")
    known: set[int] = set()
    for row, value in found:
        mark = mark_of(value)
        text = None if mark in known else value
        cursor.execute("INSERT INTO text VALUES (?, ?, ?)", (row, mark, text))
        known.add(mark)
    cursor.execute("DROP TABLE text_7")


def _add_rights(cursor: sqlite3.Cursor) -> None:
    """From 8 to 9: what was said about the use of a page."""
    cursor.execute("CREATE TABLE rights (row INTEGER PRIMARY KEY, value TEXT NOT NULL)")


def _drop_queries(cursor: sqlite3.Cursor) -> None:
    """From 9 to 10: no crawl sends queries to a search engine."""
    cursor.execute("ALTER TABLE lease RENAME TO lease_9")
    cursor.execute("CREATE TABLE lease (row INTEGER PRIMARY KEY, leaf INTEGER, q_value REAL)")
    cursor.execute("INSERT INTO lease SELECT row, leaf, q_value FROM lease_9")
    cursor.execute("DROP TABLE lease_9")


MIGRATIONS: Final[Mapping[int, Migration]] = {
    7: _store_texts_once,
    8: _add_rights,
    9: _drop_queries,
}


SUFFIX: Final = ".run"
NAME: Final = f"tres{SUFFIX}"  # the file's name in JOBDIR
FINAL: Final = "final"  # in `meta`: what the last model of a topic has made of the output
OUT: Final = "out"  # in `meta`: FINAL at the end before the last start
LATE_ITEMS: Final = "late items"  # in `meta`: rows of pages that became items after their fetch
LONGEST_URL: Final = 300  # characters kept of the URL of a rival

# docs/report.md says what a reader finds in `page`. A batch holds the samples, URLs and hosts that
# were new when it was written. Both tables only grow, so saving a page costs what the page holds.
SCHEMA: Final = Schema(
    noun="record of a crawl",
    application=int.from_bytes(b"TRUN", "big"),
    version=10,
    migrations=MIGRATIONS,
    tables="""\
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE page (
    step INTEGER PRIMARY KEY, row INTEGER NOT NULL UNIQUE, parent INTEGER, time REAL NOT NULL,
    url TEXT NOT NULL, final_url TEXT, domain TEXT NOT NULL, title TEXT NOT NULL,
    anchor TEXT NOT NULL, kind TEXT NOT NULL, relevant INTEGER NOT NULL, copy INTEGER NOT NULL,
    reward REAL NOT NULL, probability REAL, grade REAL, x BLOB NOT NULL, chosen TEXT NOT NULL,
    leaf INTEGER, splits INTEGER, q_value REAL, samples INTEGER, leaves INTEGER, link TEXT,
    text TEXT NOT NULL, url_number INTEGER NOT NULL, host INTEGER NOT NULL,
    first INTEGER NOT NULL, outlinks INTEGER NOT NULL, sampled INTEGER, mark BLOB
);
CREATE TABLE text (row INTEGER PRIMARY KEY, mark INTEGER NOT NULL, value BLOB);
CREATE INDEX text_by_mark ON text (mark) WHERE value NOTNULL;
CREATE INDEX page_incomplete ON page (step) WHERE sampled IS NULL;
CREATE TABLE guest (row INTEGER PRIMARY KEY, url TEXT NOT NULL);
CREATE TABLE name (code INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE rivals (step INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE curve (
    step INTEGER PRIMARY KEY, time REAL NOT NULL, pages INTEGER NOT NULL,
    relevant INTEGER NOT NULL, domains INTEGER NOT NULL, frontier INTEGER NOT NULL,
    leaves INTEGER, rate REAL NOT NULL, loss REAL
);
CREATE TABLE health (time REAL PRIMARY KEY, memory INTEGER, answers TEXT NOT NULL);
CREATE TABLE split (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, leaf INTEGER NOT NULL,
    feature INTEGER NOT NULL, threshold REAL NOT NULL, reduction REAL NOT NULL
);
CREATE TABLE snapshot (name TEXT PRIMARY KEY, step INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE score (
    row INTEGER NOT NULL, topic TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (row, topic)
) WITHOUT ROWID;
CREATE TABLE rights (row INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE remark (row INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, samples BLOB NOT NULL, anchors TEXT NOT NULL,
    urls TEXT NOT NULL, hosts TEXT NOT NULL, cues BLOB NOT NULL, counts BLOB NOT NULL
);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE lease (row INTEGER PRIMARY KEY, leaf INTEGER, q_value REAL);
CREATE TABLE redirect (number INTEGER PRIMARY KEY, row INTEGER NOT NULL, url INTEGER NOT NULL);
CREATE TABLE item (
    row INTEGER NOT NULL, place INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (row, place)
);
CREATE TABLE request (row INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE guest_path (
    row INTEGER PRIMARY KEY, reward REAL NOT NULL, length INTEGER NOT NULL,
    relevant INTEGER NOT NULL, distance REAL
);
CREATE TABLE outbox (
    shard INTEGER NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (shard, number)
);
CREATE TABLE peer (
    shard INTEGER PRIMARY KEY, sent INTEGER NOT NULL, received INTEGER NOT NULL
);
""",
)


class RecordError(TresError):
    """Says in one line why a record cannot be used."""


_FAULTS = (
    OSError,
    sqlite3.Error,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise RecordError for any error that reading a damaged record can cause."""
    try:
        yield
    except RecordError:
        raise
    except _FAULTS as error:
        raise RecordError(f"the record {path} cannot be read: {error}") from None


def open_to_write(path: Path) -> Database:
    """Open or create a record; raise RecordError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return SCHEMA.open(path, Access.SHARED)
    except (OSError, SqliteFileError) as error:
        raise RecordError(f"the record cannot be written: {plainly(error)}") from None


def names_in(database: Database) -> list[Name]:
    """Return the names of codes; raise ValueError if they are damaged."""
    names = database.execute("SELECT code, text FROM name").fetchall()
    if not all(isinstance(text, str) and 0 <= code < CODES for code, text in names):
        raise ValueError("a name is not the text of a code")
    return names


def rules_in(database: Database, first: int = 0) -> list[Rule]:
    """Return the splits of the tree from a number on; raise a fault of `reading` if damaged."""
    query = "SELECT leaf, feature, threshold, reduction FROM split WHERE number >= ? "
    return [
        Rule(int(leaf), Split(range(len(FEATURES))[feature], float(cut), float(reduction)))
        for leaf, feature, cut, reduction in database.execute(f"{query} ORDER BY number", (first,))
    ]


def open_to_read(path: Path) -> Database:
    """Open a record, even while a crawl writes it; raise RecordError if it cannot be read.

    Of a file of an older version, a migrated copy is opened.
    """
    try:
        return SCHEMA.open(path, Access.READ)
    except SqliteFileError as error:
        raise RecordError(str(error)) from None


def time_of(seconds: float) -> float:
    """Return `seconds`; raise ValueError, OverflowError or OSError if they are not a valid date."""
    datetime.fromtimestamp(seconds, UTC)
    return seconds


class Rival(NamedTuple):
    """The best link of a leaf that was not chosen."""

    leaf: int
    q_value: float
    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """A completed fetch, successful or not: columns of the table `page`."""

    step: int
    row: int
    parent: int | None
    time: float
    url: str
    final_url: str | None
    domain: str
    title: str
    anchor: str
    kind: str
    relevant: bool
    copy: bool
    reward: float
    probability: float | None
    x: dict[str, float]
    chosen: str
    leaf: int | None
    splits: int | None
    q_value: float | None
    samples: int | None
    leaves: int | None
    link: list[LinkPart]  # empty without a link model, too
    text: str  # the first characters

    @classmethod
    def read(cls, columns: Sequence[Any]) -> Self:
        """Return a row of FETCHES; raise one of the faults of `reading` if it is damaged."""
        values = dict(zip(cls.__slots__, columns, strict=True))
        x = np.frombuffer(values["x"], "<f4").tolist()
        values["x"] = dict(zip(FEATURES, x, strict=True))
        values |= {name: bool(values[name]) for name in ("relevant", "copy")}
        values["time"] = time_of(values["time"])
        parts = json.loads(values["link"] or "[]")
        values["link"] = [LinkPart(str(kind), str(text), float(adds)) for kind, text, adds in parts]
        check_numbers("a part of a link", [part.adds for part in values["link"]])
        return cls(**values)

    @property
    def outcome(self) -> str:
        """The result: relevant, irrelevant, copy, or the kind of the failure."""
        if self.kind != PAGE:
            return self.kind
        return "relevant" if self.relevant else "copy" if self.copy else "irrelevant"


FETCHES: Final = f"SELECT {', '.join(f'page.{name}' for name in Fetch.__slots__)} FROM"
# P(relevant) of a page as the last model says, else as when it was fetched.
NOW: Final = "ifnull(judged.now, page.probability)"
FETCHES_NOW: Final = FETCHES.replace("page.probability", NOW)
PAGES_NOW: Final = (
    "page LEFT JOIN (SELECT CAST(each.key AS INTEGER) AS at, each.value AS now "  # noqa: S608
    "FROM meta, json_each(meta.value, '$.probabilities') AS each "
    f"WHERE name = '{FINAL}') AS judged ON judged.at = page.row"
)
# Whether a page is in the output: as the last model wrote it, else relevant when it was fetched.
# What is forgotten or distrusted has another kind.
IN_OUTPUT: Final = (
    f"CASE WHEN EXISTS (SELECT 1 FROM meta WHERE name = '{FINAL}' "  # noqa: S608 - constants
    f"AND json_type(value, '$.rows') NOTNULL) THEN kind = '{PAGE}' AND row IN (SELECT each.value "
    f"FROM meta, json_each(meta.value, '$.rows') AS each WHERE name = '{FINAL}') "
    "ELSE relevant END"
)


class Point(NamedTuple):
    """A point of the curve; `rate` is pages per second since the previous point."""

    step: int
    time: float
    pages: int
    relevant: int
    domains: int
    frontier: int
    leaves: int | None
    rate: float
    loss: float | None


class HealthPoint(NamedTuple):
    """The memory of a crawl in bytes, and its answers since its start by status or error."""

    time: float
    memory: int | None
    answers: dict[str, int]
