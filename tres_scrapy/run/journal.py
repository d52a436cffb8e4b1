"""The journal of a job: leases, redirects and bookings are saved before the crawl acts on them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from tres_scrapy.agent.policy import Decision
from tres_scrapy.crawl.crawl import LEFT_OUT, LINKS_REFUSED, Booking, Crawl
from tres_scrapy.run.database import Database, Schema
from tres_scrapy.run.job_file import SCHEMA, open_database, reading
from tres_scrapy.url.message import TresError


class Written(NamedTuple):
    """What is saved of a crawl: the lengths of lists that only grow, and the other state."""

    samples: int
    urls: int
    hosts: int
    passed: int
    given_up: int
    revised: int
    rules: int
    state: Mapping[str, bytes]


COUNTS = "counts of the crawl"  # saved beside the state of the policy
# URL numbers, eight bytes each; each part is named by how many came before it.
PASSED = "URLs that redirects went through"
GIVEN_UP = "hosts given up"  # their numbers, in the same way
DESCRIBED = "links described again"  # records, in the same way
MODELS = "models of the topic"  # that described links again, and that judged the last page
SCOUTED = "scouted"  # pages when the last random link of a seed was taken
_STARTED = "started"
_TIME = re.compile(r"(\d{8}T\d{6}\.\d{6})?", re.ASCII)
_LONGEST = 100  # characters quoted of a value from a file


NOTHING = Written(0, 0, 0, 0, 0, 0, 0, {})
_INSERT_STEP = (
    "INSERT INTO step "
    "(row, url, host, kind, reward, grade, relevant, x, first, outlinks, mark, sampled) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Journal:
    """Saves a running crawl, with one transaction for each lease, each redirect and each booking.

    Leases and redirects are saved before their requests are sent: after a kill the same URL is
    fetched again, and no domain exceeds MAX pages. A booking is saved together with its items,
    which are deleted from the journal when they are exported. A subclass may have more tables in
    `schema`, and write them in `transaction` and `writing`.
    """

    schema: ClassVar[Schema] = SCHEMA

    def __init__(self, database: Database) -> None:
        self.database = database  # for reading
        self._written = NOTHING
        self._exported: list[tuple[int, int]] = []
        self._kept: dict[int, str] = {}
        self._forgotten: list[int] = []

    @classmethod
    def open(cls, directory: Path, identity: Mapping[str, str], now: str = "") -> Self:
        """Open the journal of the crawl `identity`; raise TresError if it cannot be resumed.

        A new journal gets `now` as its `started`.
        """
        database = open_database(directory, cls.schema)
        try:
            with reading():
                (state,) = database.execute("PRAGMA integrity_check(1)").fetchone()
                if state != "ok":
                    raise ValueError(str(state))
                _check(database, directory, identity)
                journal = cls(database)
                with journal.transaction() as cursor:
                    values = {**identity, _STARTED: now}
                    cursor.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", values.items())
        except TresError:
            database.close()
            raise
        return journal

    @classmethod
    def check(cls, directory: Path, identity: Mapping[str, str]) -> None:
        """Raise TresError if a directory holds another crawl than `identity`, or one that runs."""
        if directory.exists():
            with reading(), closing(open_database(directory, cls.schema)) as database:
                _check(database, directory, identity)

    @property
    def started(self) -> str:
        """The time of the first `open`."""
        return str(self.noted(_STARTED))

    @property
    def steps(self) -> int:
        """The number of saved bookings."""
        return int(self.database.execute("SELECT count(*) FROM step").fetchone()[0])

    def lease(self, crawl: Crawl, decision: Decision) -> None:
        """Save that a sample is going to be fetched."""
        with self.writing(crawl) as cursor:
            values = (decision.row, decision.leaf, decision.q_value, decision.is_query)
            cursor.execute("INSERT OR IGNORE INTO lease VALUES (?, ?, ?, ?)", values)
            if cursor.rowcount and not crawl.store.is_seed(decision.row):
                # It completes the candidates of the experiences that came before.
                cursor.execute("UPDATE step SET sampled = ? WHERE sampled IS NULL", values[:1])

    def redirect(self, crawl: Crawl, row: int) -> None:
        """Save that a leased sample is redirected, and is going to be fetched from its new URL."""
        with self.writing(crawl) as cursor:
            values = (row, int(crawl.store["url"][row]))
            cursor.execute("INSERT INTO redirect (row, url) VALUES (?, ?)", values)

    def set_back(self, row: int) -> None:
        """Save that a leased sample waits again, and need not come first in a resumed crawl."""
        with self.transaction() as cursor:
            cursor.execute("DELETE FROM lease WHERE row = ?", (row,))

    def book(
        self,
        crawl: Crawl,
        booking: Booking,
        items: Sequence[str | None] = (),
    ) -> None:
        """Save the booking of a leased sample and what the crawl learned from it.

        `items` are the page's items, kept until they are exported; None leaves one out.
        """
        row = booking.experience.row
        with self.writing(crawl) as cursor:
            cursor.execute(_INSERT_STEP, (*_step(crawl, booking), None))
            for table in ("lease", "redirect", "request"):
                cursor.execute(f"DELETE FROM {table} WHERE row = ?", (row,))  # noqa: S608
            kept = [(row, place, text) for place, text in enumerate(items) if text is not None]
            cursor.executemany("INSERT INTO item VALUES (?, ?, ?)", kept)

    def save(self, crawl: Crawl) -> None:
        """Save what changed apart from leases and bookings: new seeds, hosts that are given up."""
        with self.writing(crawl):
            pass

    def note(self, name: str, value: str) -> None:
        """Save a value under a name."""
        with self.transaction() as cursor:
            cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str | None:
        """Return the value saved under a name, or None."""
        found = self.database.execute("SELECT value FROM meta WHERE name = ?", (name,))
        return next((str(value) for (value,) in found), None)

    def noted_after(self, start: str) -> list[str]:
        """Return the rest of each name of a saved value that begins with `start`."""
        names = self.database.execute("SELECT name FROM meta ORDER BY name")
        return [name.removeprefix(start) for (name,) in names if name.startswith(start)]

    def keep(self, row: int, request: str) -> None:
        """Keep the spider's own request of a row, to save it in the next transaction."""
        self._kept[row] = request

    def forget(self, rows: Iterable[int]) -> None:
        """Remove the spider's own requests of rows with the next transaction."""
        self._forgotten += rows

    def export(self, row: int, place: int) -> None:
        """Keep that an item of a row is exported, to save it in the next transaction."""
        self._exported.append((row, place))

    def skip(self, crawl: Crawl) -> None:
        """Treat the present lists of a crawl as saved.

        The state is saved with the next booking: that of a new crawl never was.
        """
        self._written = _written(crawl)._replace(state={})

    def close(self, *, write: bool = True) -> None:
        """Save the last exports and close the file."""
        try:
            if write:
                with self.transaction():
                    pass
        finally:
            self.database.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Save what is written inside, with the requests and exports that were kept for it."""
        with self.database.transaction() as cursor:
            cursor.executemany("INSERT OR REPLACE INTO request VALUES (?, ?)", self._kept.items())
            cursor.executemany("DELETE FROM item WHERE row = ? AND place = ?", self._exported)
            forgotten = [(row,) for row in self._forgotten]
            cursor.executemany("DELETE FROM request WHERE row = ?", forgotten)
            yield cursor
        self._exported.clear()
        self._kept.clear()
        self._forgotten.clear()

    @contextmanager
    def writing(self, crawl: Crawl) -> Iterator[sqlite3.Cursor]:
        """Save what is new in a crawl together with what is written inside."""
        with self.transaction() as cursor:
            written = self._write_new(cursor, crawl)
            yield cursor
        self._written = written

    def restore_more(self, crawl: Crawl) -> None:
        """Restore what only a subclass saves, once the samples of the crawl are restored."""

    def _write_new(self, cursor: sqlite3.Cursor, crawl: Crawl) -> Written:
        """Save what is new or has changed; return what is saved then."""
        old, new, store = self._written, _written(crawl), crawl.store
        if (old.samples, old.urls, old.hosts) != (new.samples, new.urls, new.hosts):
            texts = (
                store.anchors.since(old.samples),
                store.closure.urls[old.urls :],
                store.hosts.names[old.hosts :],
            )
            cues = store.cues.since(old.samples)
            packed = cues.codes.astype("<u4").tobytes(), cues.counts.astype("<u2").tobytes()
            cursor.execute(
                "INSERT INTO batch (samples, anchors, urls, hosts, cues, counts) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (store.saved(old.samples).tobytes(), *map(json.dumps, texts), *packed),
            )
        for leaf, split in crawl.policy.rules[old.rules :]:
            cursor.execute(
                "INSERT INTO rule (leaf, feature, threshold, reduction) VALUES (?, ?, ?, ?)",
                (leaf, *split),
            )
        changed = [
            (name, value) for name, value in new.state.items() if value != old.state.get(name)
        ]
        if new.passed > old.passed:
            passed = store.closure.passed[old.passed :].tobytes()
            changed.append((f"{PASSED} {old.passed}", passed))
        if new.given_up > old.given_up:
            given_up = store.hosts.ever_given_up[old.given_up :].tobytes()
            changed.append((f"{GIVEN_UP} {old.given_up}", given_up))
        if new.revised > old.revised:
            changed.append((f"{DESCRIBED} {old.revised}", bytes(store.revised[old.revised :])))
        cursor.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", changed)
        return new


def _step(crawl: Crawl, booking: Booking) -> tuple[object, ...]:
    (row, x, reward, grade), outlinks = booking.experience, booking.outlinks
    return (
        row,
        int(crawl.store["url"][row]),
        int(crawl.store["host"][row]),
        booking.kind,
        reward,
        grade,
        booking.relevant,
        x.astype("<f4").tobytes(),
        int(outlinks[0]) if len(outlinks) else 0,
        len(outlinks),
        None if booking.judged is None else booking.judged.mark,
    )


def _check(database: Database, directory: Path, identity: Mapping[str, str]) -> None:
    """Raise TresError if a job belongs to another crawl, ValueError if it is damaged."""
    written = dict(database.execute("SELECT name, value FROM meta"))
    for name, value in identity.items() if written else ():
        found = str(written.get(name, ""))
        if found != value:
            raise TresError(
                f"JOBDIR {str(directory)!r} holds a crawl with {name} {_shown(found)}, "
                f"not {_shown(value)}: give another directory"
            )
    if _TIME.fullmatch(str(written.get(_STARTED, ""))) is None:  # it is used in file names
        raise ValueError("its start is not a time")


def _shown(value: str) -> str:
    return repr(value[:_LONGEST]) if value else "none"


def _written(crawl: Crawl) -> Written:
    store, policy, passed = crawl.store, crawl.policy, crawl.store.closure.passed
    refused = {LINKS_REFUSED + rule: count for rule, count in store.admission.refused.items()}
    counts = {**crawl.counts, **refused, LEFT_OUT: store.admission.left_out}
    state = {**policy.state(), COUNTS: json.dumps(counts).encode()}
    if crawl.scout is not None:
        state[SCOUTED] = str(crawl.scout.taken).encode()
    if crawl.revision.model:
        state[MODELS] = f"{crawl.revision.described} {crawl.revision.model}".encode()
    return Written(
        len(store),
        len(store.closure.urls),
        len(store.hosts.names),
        len(passed),
        len(store.hosts.ever_given_up),
        len(store.revised),
        len(policy.rules),
        state=state,
    )
