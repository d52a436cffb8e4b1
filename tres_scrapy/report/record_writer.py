"""Writes the record of a crawl; new fetches wait in memory until the next transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Choice
from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.frontier.admission import refused_links
from tres_scrapy.links.code import url_texts
from tres_scrapy.report.reason import LOST, kind_of, parts_of, rivals_of, size_of
from tres_scrapy.report.record_file import LONGEST_URL, HealthPoint, names_in, open_to_write
from tres_scrapy.report.snapshot import (
    DEPENDENCE,
    FETCHED,
    LINKS,
    TREE,
    dependence,
    link_learner_of,
    snapshot_of,
    strongest,
    tree_of,
)
from tres_scrapy.run.database import Database

LONGEST: Final = 300  # characters kept of a title, a text and an anchor
RIVALS_KEPT: Final = 10_000  # last pages whose rivals are kept
CURVE: Final = 200  # a new point of the curve after another 1/200 of the pages
PERIOD: Final = 10.0  # least seconds between two snapshots,
COST: Final = 200  # and least multiple of the time that the last snapshot took
DRAWN: Final = 128  # number of last samples used for the dependence of Q on a feature
_PAGE: Final = f"INSERT OR REPLACE INTO page VALUES ({', '.join('?' * 23)})"  # noqa: S608
_CURVE: Final = f"INSERT OR REPLACE INTO curve VALUES ({', '.join('?' * 9)})"  # noqa: S608


class RecordEntry(NamedTuple):
    """A booking to write, with its time and its page.

    `scores` are P(relevant) by topic, `remark` what else there is to say about the page. `is_lost`
    marks a booking without the reason for its choice.
    """

    booking: Booking
    time: float
    title: str = ""
    text: str = ""
    probability: float | None = None
    is_copy: bool = False
    is_lost: bool = False
    remark: str = ""
    scores: Mapping[str, float] = MappingProxyType({})


class Writer:
    """Writes the record of one crawl, one transaction per `flush`.

    `note` only appends to a list; `flush` does the costly work for all pages at once. Times are
    seconds since 1970.
    """

    def __init__(self, connection: Database, crawl: Crawl, time: float) -> None:
        self._connection = connection
        self._crawl = crawl
        self._waiting: list[RecordEntry] = []
        self._recent: deque[NDArray[np.float32]] = deque(maxlen=DRAWN)
        (last,) = connection.execute("SELECT max(step) FROM page").fetchone()
        self.steps = int(last or 0)  # bookings that are written
        self._splits = self._forget_splits()
        self._names = len(crawl.store.names)  # that are written
        self._point = time, crawl.pages  # of the curve, the last one
        self._due = crawl.pages  # pages at the next point
        self._next_snapshot = time

    @classmethod
    def open(
        cls,
        path: Path,
        crawl: Crawl,
        meta: Mapping[str, str],
        settings: Mapping[str, str],
        time: float,
    ) -> Self:
        """Create or reopen a record; raise RecordError if it cannot be written."""
        connection = open_to_write(path)
        crawl.store.names.learn(names_in(connection, path))
        connection.execute("BEGIN")
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())
        connection.execute(
            "INSERT INTO meta VALUES ('starts', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = value || ' ' || excluded.value",
            (f"{time:.3f}",),
        )
        connection.execute(
            "DELETE FROM meta WHERE name IN ('ended', 'reason', 'left', 'gone', 'web')"
        )
        connection.execute("DELETE FROM setting")
        connection.executemany("INSERT INTO setting VALUES (?, ?)", settings.items())
        connection.execute("COMMIT")
        return cls(connection, crawl, time)

    def note(self, entry: RecordEntry) -> None:
        """Add a booking; the next flush writes it."""
        self._waiting.append(entry._replace(text=entry.text[:LONGEST]))

    def fill(self, bookings: Iterable[Booking], time: float) -> None:
        """Add bookings that are missing from the record because the crawl was killed."""
        known = {row for (row,) in self._connection.execute("SELECT row FROM page")}
        latest = self._connection.execute("SELECT max(time) FROM page").fetchone()[0] or time
        self._waiting += [
            RecordEntry(booking, latest, is_lost=True)
            for booking in bookings
            if booking.experience.row not in known
        ]

    def flush(self, time: float, *, last: bool = False) -> None:
        """Write the waiting bookings, and the curve and the snapshots if they are due."""
        if not self._waiting and not last:
            return
        with self._connection.transaction() as cursor:
            self._write_pages(cursor)
            self._write_splits(cursor)
            if last or self._crawl.pages >= self._due:
                self._write_point(cursor, time)
            if last or time >= self._next_snapshot:
                self._write_snapshots(cursor, time)
            refused = json.dumps(refused_links(self._crawl.counts))
            self._write_meta(cursor, written=f"{time:.3f}", refused=refused)
        self._waiting.clear()

    def note_health(self, health: HealthPoint) -> None:
        """Write memory and answers of this moment."""
        self._connection.execute(
            "INSERT OR REPLACE INTO health VALUES (?, ?, ?)",
            (health.time, health.memory, json.dumps(health.answers)),
        )

    def close(self, time: float, reason: str, **facts: str) -> None:
        """Write the rest, why the crawl ended and facts of that, and leave a single file."""
        try:
            self.flush(time, last=True)
            self._write_meta(self._connection.cursor(), ended=f"{time:.3f}", reason=reason, **facts)
        finally:
            try:
                # Without its log the file can be moved. This fails while another process reads it.
                self._connection.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.OperationalError:
                pass
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Close the file without writing."""
        self._connection.close()

    def _forget_splits(self) -> int:
        """Delete splits that a resumed crawl does not have; return how many remain."""
        tree = tree_of(self._crawl.policy)
        kept = tree.splits if tree is not None else 0
        self._connection.execute("DELETE FROM split WHERE number >= ?", (kept,))
        return int(self._connection.execute("SELECT count(*) FROM split").fetchone()[0])

    def _write_pages(self, cursor: sqlite3.Cursor) -> None:
        pages, rivals, remarks, scores = [], [], [], []
        for step, entry in enumerate(self._waiting, self.steps + 1):
            self._learn_names(entry)
            pages.append(self._page(step, entry))
            if found := self._rivals(entry):
                rivals.append((step, json.dumps(found, ensure_ascii=False)))
            row, x, *_ = entry.booking.experience
            if entry.remark:
                remarks.append((row, entry.remark))
            scores += [(row, topic, value) for topic, value in entry.scores.items()]
            self._recent.append(x)
        cursor.executemany(_PAGE, pages)
        cursor.executemany("INSERT OR REPLACE INTO rivals VALUES (?, ?)", rivals)
        cursor.executemany("INSERT OR REPLACE INTO remark VALUES (?, ?)", remarks)
        cursor.executemany("INSERT OR REPLACE INTO score VALUES (?, ?, ?)", scores)
        cursor.executemany("INSERT OR IGNORE INTO guest VALUES (?, ?)", self._guests())
        self._write_names(cursor)
        self.steps += len(pages)
        cursor.execute("DELETE FROM rivals WHERE step <= ?", (self.steps - RIVALS_KEPT,))

    def _page(self, step: int, entry: RecordEntry) -> tuple[Any, ...]:
        (row, x, reward, _), relevant, kind, _, decision, _ = entry.booking
        store, choice = self._crawl.store, decision.choice
        final, is_seed = store.url(row), store.is_seed(row)
        return (
            step,
            row,
            None if is_seed else int(store["parent"][row]),
            entry.time,
            decision.url,
            None if final == decision.url else final,
            store.ledger.names[store["domain"][row]],
            entry.title[:LONGEST],
            store.anchors[row][:LONGEST],
            kind,
            relevant,
            entry.is_copy,
            reward,
            entry.probability,
            x.astype("<f4").tobytes(),
            LOST if entry.is_lost and not is_seed else kind_of(decision, is_seed=is_seed),
            None if choice is None else decision.leaf,
            None if choice is None else choice.splits,
            decision.q_value,
            *((None, None) if choice is None else size_of(choice)),
            self._link(choice),
            entry.text,
        )

    def _guests(self) -> list[tuple[int, str]]:
        """Return row and URL of the pages of other shards on which the links were found."""
        store = self._crawl.store
        parents = {int(store["parent"][entry.booking.experience.row]) for entry in self._waiting}
        return [(row, store.url(row)) for row in parents & store.guests.keys()]

    def _link(self, choice: Choice | None) -> str | None:
        if choice is None or choice.said is None:
            return None
        return json.dumps(parts_of(choice.said, self._crawl.store.names), ensure_ascii=False)

    def _learn_names(self, entry: RecordEntry) -> None:
        """Name the codes of a URL that several fetched links have; the judge names all words."""
        choice, learner = entry.booking.decision.choice, link_learner_of(self._crawl.policy)
        if learner is not None and choice is not None and choice.said is not None:
            texts = url_texts(choice.said.url)
            codes = choice.said.where[: len(texts)]
            often = np.flatnonzero(learner.fetched[codes] >= FETCHED).tolist()
            self._crawl.store.names.learn((int(codes[i]), texts[i]) for i in often)

    def _write_names(self, cursor: sqlite3.Cursor) -> None:
        new = self._crawl.store.names.since(self._names)
        cursor.executemany("INSERT OR IGNORE INTO name VALUES (?, ?)", new)
        self._names += len(new)

    def _rivals(self, entry: RecordEntry) -> list[tuple[int, float, str, str]]:
        store = self._crawl.store
        return [
            (leaf, round(q, 5), store.url(row)[:LONGEST_URL], store.anchors[row][:LONGEST])
            for leaf, q, row in rivals_of(entry.booking.decision)
        ]

    def _write_splits(self, cursor: sqlite3.Cursor) -> None:
        tree = tree_of(self._crawl.policy)
        if tree is None:
            return
        new = tree.rules[self._splits :]
        cursor.executemany(
            "INSERT OR REPLACE INTO split VALUES (?, ?, ?, ?, ?, ?)",
            [
                (number, self.steps, leaf, *split)
                for number, (leaf, split) in enumerate(new, self._splits)
            ],
        )
        self._splits += len(new)

    def _write_point(self, cursor: sqlite3.Cursor, time: float) -> None:
        crawl, (before, pages) = self._crawl, self._point
        tree = tree_of(crawl.policy)
        rate = (crawl.pages - pages) / max(time - before, 1e-3)
        cursor.execute(
            _CURVE,
            (
                self.steps,
                time,
                crawl.pages,
                crawl.relevant,
                crawl.store.ledger.relevant_domains,
                crawl.store.pending,
                None if tree is None else len(tree),
                round(rate, 3),
                crawl.loss,
            ),
        )
        self._point = time, crawl.pages
        self._due = crawl.pages + max(1, crawl.pages // CURVE)

    def _write_snapshots(self, cursor: sqlite3.Cursor, time: float) -> None:
        start, policy = perf_counter(), self._crawl.policy
        found: dict[str, Any] = {}
        if (tree := tree_of(policy)) is not None:
            found[TREE] = snapshot_of(tree)
        if policy.learns_q and self._recent:
            found[DEPENDENCE] = dependence(policy, np.array(self._recent))
        if (learner := link_learner_of(policy)) is not None:
            found[LINKS] = strongest(learner, self._crawl.store.names)
        cursor.executemany(
            "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)",
            [(name, self.steps, json.dumps(value)) for name, value in found.items()],
        )
        self._next_snapshot = time + max(PERIOD, COST * (perf_counter() - start))

    def _write_meta(self, cursor: sqlite3.Cursor, **values: str) -> None:
        cursor.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())
