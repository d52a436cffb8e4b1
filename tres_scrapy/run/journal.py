"""The journal of a job: leases, redirects and bookings are saved before the crawl acts on them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from math import isinf
from pathlib import Path
from typing import NamedTuple, Self

from tres_scrapy.agent.policy import Decision, Resumable
from tres_scrapy.cluster.outbox import Outbox
from tres_scrapy.crawl.crawl import LEFT_OUT, REFUSED, Booking, Crawl
from tres_scrapy.frontier.recovery import saved
from tres_scrapy.run.checksum import RowChecksum
from tres_scrapy.run.job_file import JobError, open_database, reading


class Written(NamedTuple):
    """What is saved of a crawl: the lengths of lists that only grow, and the other state."""

    samples: int
    urls: int
    hosts: int
    passed: int
    given_up: int
    guests: int
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
LENGTH = "length of "  # before the name of an output file
_STARTED = "started"
_TIME = re.compile(r"(\d{8}T\d{6}\.\d{6})?", re.ASCII)
_LONGEST = 100  # characters quoted of a value from a file


NOTHING = Written(0, 0, 0, 0, 0, 0, 0, 0, {})
_INSERT_STEP = (
    "INSERT INTO step "
    "(row, url, host, kind, reward, relevant, x, first, outlinks, mark, sampled) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Journal:
    """Saves a running crawl, with one transaction for each lease, each redirect and each booking.

    Leases and redirects are saved before their requests are sent: after a kill the same URL is
    fetched again, and no domain exceeds MAX pages. A booking is saved together with its items,
    which are deleted from the journal when they are exported.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._checksum = RowChecksum(connection)
        self._written = NOTHING
        self._exported: list[tuple[int, int]] = []
        self._kept: dict[int, str] = {}
        self._forgotten: list[int] = []
        self._lengths: dict[Path, int] = {}  # bytes of output files that are noted
        self.mail = Outbox(connection)

    @classmethod
    def open(cls, directory: Path, identity: Mapping[str, str], now: str = "") -> Self:
        """Open the journal of the crawl `identity`; raise JobError if it cannot be resumed.

        A new journal gets `now` as its `started`.
        """
        connection = open_database(directory)
        try:
            with reading():
                journal = cls(connection)
                journal._checksum.check()
                _check(connection, directory, identity)
                with journal._transaction() as cursor:
                    values = {**identity, _STARTED: now}
                    cursor.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", values.items())
        except JobError:
            connection.close()
            raise
        return journal

    @property
    def connection(self) -> sqlite3.Connection:
        """The database, for reading."""
        return self._connection

    @property
    def started(self) -> str:
        """The time of the first `open`."""
        return str(self.noted(_STARTED))

    @property
    def steps(self) -> int:
        """The number of saved bookings."""
        return int(self._connection.execute("SELECT count(*) FROM step").fetchone()[0])

    def lease(self, crawl: Crawl, decision: Decision) -> None:
        """Save that a sample is going to be fetched."""
        with self._transaction() as cursor:
            written = self._write_new(cursor, crawl)
            values = (decision.row, decision.leaf, decision.q_value, decision.is_query)
            cursor.execute("INSERT OR IGNORE INTO lease VALUES (?, ?, ?, ?)", values)
            if cursor.rowcount and not crawl.store.is_seed(decision.row):
                # It completes the candidates of the experiences that came before.
                cursor.execute("UPDATE step SET sampled = ? WHERE sampled IS NULL", values[:1])
        self._written = written

    def redirect(self, crawl: Crawl, row: int) -> None:
        """Save that a leased sample is redirected, and is going to be fetched from its new URL."""
        with self._transaction() as cursor:
            written = self._write_new(cursor, crawl)
            values = (row, int(crawl.store["url"][row]))
            cursor.execute("INSERT INTO redirect (row, url) VALUES (?, ?)", values)
        self._written = written

    def set_back(self, row: int) -> None:
        """Save that a leased sample waits again, and need not come first in a resumed crawl."""
        with self._transaction() as cursor:
            cursor.execute("DELETE FROM lease WHERE row = ?", (row,))

    def book(
        self,
        crawl: Crawl,
        booking: Booking,
        mark: bytes | None = None,
        items: Sequence[str | None] = (),
    ) -> None:
        """Save the booking of a leased sample and what the crawl learned from it.

        `mark` is the fingerprint of its page, `items` the page's items, kept until they are
        exported; None leaves one out.
        """
        row = booking.experience.row
        with self._transaction() as cursor:
            written = self._write_new(cursor, crawl)
            cursor.execute(_INSERT_STEP, (*_step(crawl, booking, mark), None))
            for table in ("lease", "redirect", "request"):
                cursor.execute(f"DELETE FROM {table} WHERE row = ?", (row,))  # noqa: S608
            kept = [(row, place, text) for place, text in enumerate(items) if text is not None]
            cursor.executemany("INSERT INTO item VALUES (?, ?, ?)", kept)
        self._written = written

    def save(self, crawl: Crawl) -> None:
        """Save what changed apart from leases and bookings: new seeds, hosts that are given up."""
        with self._transaction() as cursor:
            written = self._write_new(cursor, crawl)
        self._written = written

    def receive(self, crawl: Crawl, sender: int, number: int) -> None:
        """Save the links that a crawl received from another shard, up to a parcel's number."""
        with self._transaction() as cursor:
            written = self._write_new(cursor, crawl)
            self.mail.receive(cursor, sender, number)
        self._written = written

    @property
    def fingerprint(self) -> int:
        """A number that another state of the journal does not have, or once in 4 billion."""
        return self._checksum.saved

    def note_lengths(self, files: Iterable[Path]) -> None:
        """Note from now on in each transaction how long these files are.

        They only grow. So a copy of the journal says which part of them belongs to it: a restored
        output has the items of each page that the copy knows, once.
        """
        self._lengths = dict.fromkeys(files, -1)

    def note(self, name: str, value: str) -> None:
        """Save a value under a name."""
        with self._transaction() as cursor:
            cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str | None:
        """Return the value saved under a name, or None."""
        found = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,))
        return next((str(value) for (value,) in found), None)

    def noted_after(self, start: str) -> list[str]:
        """Return the rest of each name of a saved value that begins with `start`."""
        names = self._connection.execute("SELECT name FROM meta ORDER BY name")
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
                with self._transaction():
                    pass
        finally:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        cursor = self._connection.cursor()
        cursor.execute("BEGIN")
        try:
            yield cursor
            cursor.executemany("INSERT OR REPLACE INTO request VALUES (?, ?)", self._kept.items())
            cursor.executemany("DELETE FROM item WHERE row = ? AND place = ?", self._exported)
            forgotten = [(row,) for row in self._forgotten]
            cursor.executemany("DELETE FROM request WHERE row = ?", forgotten)
            self.mail.remove_arrived(cursor)
            lengths = self._note_lengths(cursor)
            self._checksum.save()
            cursor.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                cursor.execute("ROLLBACK")
            self._checksum.undo()
            self.mail.undo()
            raise
        self._checksum.keep()
        self.mail.keep()
        self._lengths = lengths
        self._exported.clear()
        self._kept.clear()
        self._forgotten.clear()

    def _note_lengths(self, cursor: sqlite3.Cursor) -> dict[Path, int]:
        lengths = {file: file.stat().st_size if file.exists() else 0 for file in self._lengths}
        changed = [
            (f"{LENGTH}{file.name}", str(size))
            for file, size in lengths.items()
            if size != self._lengths[file]
        ]
        cursor.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", changed)
        return lengths

    def _write_new(self, cursor: sqlite3.Cursor, crawl: Crawl) -> Written:
        """Save what is new or has changed; return what is saved then."""
        old, new, store = self._written, _written(crawl), crawl.store
        if (old.samples, old.urls, old.hosts) != (new.samples, new.urls, new.hosts):
            texts = (
                store.anchors[old.samples :],
                store.closure.urls[old.urls :],
                store.hosts.names[old.hosts :],
            )
            cues = store.cues.since(old.samples)
            packed = cues.codes.astype("<u4").tobytes(), cues.counts.astype("<u2").tobytes()
            cursor.execute(
                "INSERT INTO batch (samples, anchors, urls, hosts, cues, counts) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (saved(store, old.samples).tobytes(), *map(json.dumps, texts), *packed),
            )
        for leaf, split in _resumable(crawl).rules[old.rules :]:
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
        guests = islice(store.guests.items(), old.guests, None)
        cursor.executemany(
            "INSERT INTO guest VALUES (?, ?, ?, ?, ?)",
            (
                (row, *path[:3], None if isinf(path.distance) else path.distance)
                for row, path in guests
            ),
        )
        if crawl.router is not None:
            self.mail.send(cursor, crawl.router.take())
        return new


def check_job(directory: Path, identity: Mapping[str, str]) -> None:
    """Raise JobError if a directory holds another crawl than `identity`, or one that runs."""
    if directory.exists():
        with reading(), closing(open_database(directory)) as connection:
            _check(connection, directory, identity)


def _step(crawl: Crawl, booking: Booking, mark: bytes | None = None) -> tuple[object, ...]:
    (row, x, reward), outlinks = booking.experience, booking.outlinks
    return (
        row,
        int(crawl.store["url"][row]),
        int(crawl.store["host"][row]),
        booking.kind,
        reward,
        booking.relevant,
        x.astype("<f4").tobytes(),
        int(outlinks[0]) if len(outlinks) else 0,
        len(outlinks),
        mark,
    )


def _check(connection: sqlite3.Connection, directory: Path, identity: Mapping[str, str]) -> None:
    """Raise JobError if a job belongs to another crawl, ValueError if it is damaged."""
    written = dict(connection.execute("SELECT name, value FROM meta"))
    for name, value in identity.items() if written else ():
        found = str(written.get(name, ""))  # older jobs have keywords or a pack only
        if found != value:
            raise JobError(
                f"JOBDIR {str(directory)!r} holds a crawl with {name} {_shown(found)}, "
                f"not {_shown(value)}: give another directory"
            )
    if _TIME.fullmatch(str(written.get(_STARTED, ""))) is None:  # it is used in file names
        raise ValueError("its start is not a time")


def _shown(value: str) -> str:
    return repr(value[:_LONGEST]) if value else "none"


def _written(crawl: Crawl) -> Written:
    store, policy, passed = crawl.store, _resumable(crawl), crawl.store.closure.passed
    refused = {REFUSED + rule: count for rule, count in store.admission.refused.items()}
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
        len(store.guests),
        len(store.revised),
        len(policy.rules),
        state=state,
    )


def _resumable(crawl: Crawl) -> Resumable:
    assert isinstance(crawl.policy, Resumable)  # no journal is opened for other policies
    return crawl.policy
