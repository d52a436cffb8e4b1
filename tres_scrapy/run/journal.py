"""The one writer of the file of a run: in JOBDIR all is saved before the crawl acts on it."""

from __future__ import annotations

import json
import re
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from time import time
from typing import NamedTuple, Self

from tres_scrapy.agent.policy import Decision
from tres_scrapy.crawl.crawl import LEFT_OUT, LINKS_REFUSED, Booking, Crawl
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.run.database import Database
from tres_scrapy.run.job_file import open_database, reading
from tres_scrapy.run.page_row import guest_rows, page_row, remark_of, rivals_row
from tres_scrapy.run.run_file import mark_of, packed
from tres_scrapy.topic.pack import Judged
from tres_scrapy.url.message import TresError, below


class Written(NamedTuple):
    """What is saved of a crawl: the lengths of lists that only grow, and the other state."""

    samples: int
    urls: int
    hosts: int
    passed: int
    given_up: int
    revised: int
    rules: int
    names: int
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
# without the text if an earlier page has the same
_INSERT_TEXT = (
    "INSERT INTO text SELECT ?1, ?2, CASE WHEN NOT EXISTS "
    "(SELECT 1 FROM text WHERE mark = ?2 AND value NOTNULL) THEN ?3 END"
)


NOTHING = Written(0, 0, 0, 0, 0, 0, 0, 0, {})


class Journal:
    """Writes the file of a running crawl, with the text of each page if it `keeps_texts`.

    With `is_durable`, as in JOBDIR, each lease, redirect and booking is a transaction. Leases and
    redirects are saved before their requests are sent: after a kill the same URL is fetched again,
    and no domain exceeds MAX pages. A booking is saved together with its items, which are deleted
    when they are exported. Without `is_durable` all waits for `commit`, and what only a resumed
    crawl needs is left out: links, networks, names. A subclass writes more in `_write_more`.
    """

    def __init__(
        self, database: Database, *, is_durable: bool = True, keeps_texts: bool = True
    ) -> None:
        self.database = database  # for reading
        self._is_durable = is_durable
        self._keeps_texts = keeps_texts
        self._crawl: Crawl | None = None  # whose news the next commit writes
        self._written = NOTHING
        self._exported: list[tuple[int, int]] = []
        self._kept: dict[int, str] = {}
        self._forgotten: list[int] = []

    @classmethod
    def open(
        cls,
        directory: Path,
        identity: Mapping[str, str],
        now: str = "",
        *,
        keeps_texts: bool = True,
    ) -> Self:
        """Open the journal of the crawl `identity`; raise TresError if it cannot be resumed.

        A new journal gets `now` as its `started`.
        """
        database = open_database(directory)
        try:
            with reading():
                (state,) = database.execute("PRAGMA integrity_check(1)").fetchone()
                if state != "ok":
                    raise ValueError(str(state))
                _check(database, directory, identity)
                journal = cls(database, keeps_texts=keeps_texts)
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
            with reading(), closing(open_database(directory)) as database:
                _check(database, directory, identity)

    @property
    def started(self) -> str:
        """The time of the first `open`."""
        return str(self.noted(_STARTED))

    @property
    def steps(self) -> int:
        """The number of bookings."""
        return int(self.database.execute("SELECT ifnull(max(step), 0) FROM page").fetchone()[0])

    def lease(self, crawl: Crawl, decision: Decision) -> None:
        """Save that a sample is going to be fetched."""
        with self.transaction(crawl) as cursor:
            values = (decision.row, decision.leaf, decision.q_value)
            cursor.execute("INSERT OR IGNORE INTO lease VALUES (?, ?, ?)", values)
            if cursor.rowcount and not crawl.store.is_seed(decision.row):
                # It completes the candidates of the experiences that came before.
                cursor.execute("UPDATE page SET sampled = ? WHERE sampled IS NULL", values[:1])

    def redirect(self, crawl: Crawl, row: int) -> None:
        """Save that a leased sample is redirected, and is going to be fetched from its new URL."""
        with self.transaction(crawl) as cursor:
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
        *,
        now: float | None = None,
    ) -> None:
        """Save the booking of a leased sample and what the crawl learned from it.

        `items` are its page's items, kept until they are exported; None leaves one out. `now` is
        the time in seconds since 1970, if it is not that of the clock.
        """
        row, judged = booking.experience.row, booking.judged
        with self.transaction(crawl) as cursor:
            values = page_row(crawl, booking, time() if now is None else now)
            columns, named = ", ".join(values), ", ".join(f":{name}" for name in values)
            insert = f"INSERT INTO page ({columns}) VALUES ({named})"  # noqa: S608 - our own names
            step = cursor.execute(insert, values).lastrowid
            if rivals := rivals_row(crawl, booking.decision):
                cursor.execute("INSERT INTO rivals VALUES (?, ?)", (step, rivals))
            if judged is not None:
                self._write_judged(cursor, row, judged)
            guests = guest_rows(crawl, row)
            cursor.executemany("INSERT OR IGNORE INTO guest VALUES (?, ?)", guests)
            for table in ("lease", "redirect", "request"):
                cursor.execute(f"DELETE FROM {table} WHERE row = ?", (row,))  # noqa: S608
            kept = [(row, place, text) for place, text in enumerate(items) if text is not None]
            cursor.executemany("INSERT INTO item VALUES (?, ?, ?)", kept)

    def save(self, crawl: Crawl) -> None:
        """Save what changed apart from leases and bookings: new seeds, hosts that are given up."""
        with self.transaction(crawl):
            pass

    def note(self, name: str, value: str) -> None:
        """Save a value under a name."""
        with self.transaction() as cursor:
            cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def hand_over(self, items: Sequence[tuple[int, int, str]], name: str, value: str) -> None:
        """Save more items, by row and place, until they are exported, and a value under a name."""
        with self.transaction() as cursor:
            cursor.executemany("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", items)
            cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str | None:
        """Return the value saved under a name, or None."""
        found = self.database.execute("SELECT value FROM meta WHERE name = ?", (name,))
        return next((str(value) for (value,) in found), None)

    def noted_after(self, start: str) -> dict[str, str]:
        """Return the saved values whose names begin with `start`, by the rest of their names."""
        found = self.database.execute("SELECT name, value FROM meta ORDER BY name")
        return below(dict(found), start)

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
                self.commit()
        finally:
            self.database.close()

    def close_alone(self) -> None:
        """Close a file that can be moved then, unless another process reads it."""
        try:
            self.database.execute("PRAGMA journal_mode = DELETE")  # without its log
        except sqlite3.OperationalError:
            pass
        finally:
            self.database.close()

    @contextmanager
    def transaction(self, crawl: Crawl | None = None) -> Iterator[sqlite3.Cursor]:
        """Save what is written inside and is new in `crawl`, at once if the journal is durable.

        If that fails, all is undone since the last commit.
        """
        try:
            if not self.database.in_transaction:
                self.database.execute("BEGIN IMMEDIATE")
            self._crawl = crawl or self._crawl
            yield self.database.cursor()
        except BaseException:
            self._undo()
            raise
        if self._is_durable:
            self.commit()

    def commit(self) -> None:
        """Save what was written, what is new in its crawl, and the requests and exports kept."""
        try:
            if not self.database.in_transaction:
                self.database.execute("BEGIN IMMEDIATE")
            cursor = self.database.cursor()
            cursor.executemany("INSERT OR REPLACE INTO request VALUES (?, ?)", self._kept.items())
            cursor.executemany("DELETE FROM item WHERE row = ? AND place = ?", self._exported)
            forgotten = [(row,) for row in self._forgotten]
            cursor.executemany("DELETE FROM request WHERE row = ?", forgotten)
            written = self._written
            if self._crawl is not None:
                written = self._write_new(cursor, self._crawl)
            self._write_more(cursor, self._crawl)
            cursor.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        self._written, self._crawl = written, None
        self._exported.clear()
        self._kept.clear()
        self._forgotten.clear()

    def _undo(self) -> None:
        """Forget what was written since the last commit."""
        self._crawl = None
        if self.database.in_transaction:
            self.database.execute("ROLLBACK")

    def _write_more(self, cursor: sqlite3.Cursor, crawl: Crawl | None) -> None:
        """Save what only a subclass saves, of a crawl if there is news of it."""

    def restore_more(self, crawl: Crawl) -> None:
        """Restore what only a subclass saves, once the samples of the crawl are restored."""

    def _write_judged(self, cursor: sqlite3.Cursor, row: int, judged: Judged) -> None:
        if self._keeps_texts:
            text = packed(judged.page)
            cursor.execute(_INSERT_TEXT, (row, mark_of(text), text))
        if rights := judged.page.rights:
            cursor.execute("INSERT INTO rights VALUES (?, ?)", (row, json.dumps(rights)))
        if remark := remark_of(judged):
            cursor.execute("INSERT INTO remark VALUES (?, ?)", (row, remark))
        scores = [(row, topic, value) for topic, value in judged.scores.items()]
        cursor.executemany("INSERT INTO score VALUES (?, ?, ?)", scores)

    def _write_new(self, cursor: sqlite3.Cursor, crawl: Crawl) -> Written:
        """Save what is new or has changed; return what is saved then."""
        old, new, store = self._written, _written(crawl), crawl.store
        rules = enumerate(crawl.policy.rules[old.rules :], old.rules)
        cursor.executemany(
            "INSERT INTO split VALUES (?, ?, ?, ?, ?, ?)",
            [(number, self.steps, leaf, *split) for number, (leaf, split) in rules],
        )
        if not self._is_durable:
            return new
        if (old.samples, old.urls, old.hosts) != (new.samples, new.urls, new.hosts):
            self._write_links(cursor, store)
        names = store.names.since(old.names)
        cursor.executemany("INSERT OR IGNORE INTO name VALUES (?, ?)", names)
        changed = [
            (name, value) for name, value in new.state.items() if value != old.state.get(name)
        ]
        if new.passed > old.passed:
            passed = store.closure.passed[old.passed :].tobytes()
            changed.append((f"{PASSED} {old.passed}", passed))
        if new.given_up > old.given_up:
            given_up = array("q", islice(store.hosts.ever_given_up, old.given_up, None))
            changed.append((f"{GIVEN_UP} {old.given_up}", given_up.tobytes()))
        if new.revised > old.revised:
            changed.append((f"{DESCRIBED} {old.revised}", bytes(store.revised[old.revised :])))
        cursor.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", changed)
        return new

    def _write_links(self, cursor: sqlite3.Cursor, store: SampleStore) -> None:
        old = self._written
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
        len(store.names),
        state=state,
    )
