"""Joins the records of the shards of a crawl into one, of which every reader can read.

Rows keep their order in each shard; row r of shard k of n becomes r * n + k, so no two are equal.
A page whose link was found by another shard names its parent by URL (table `guest`). The trees of
the shards have nothing in common: pages have no leaf here, their shard's own record has it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tres_scrapy.run.run_file import (
    FETCHES,
    Fetch,
    RecordError,
    open_to_read,
    open_to_write,
    reading,
)
from tres_scrapy.run.snapshot import DEPENDENCE, LINKS
from tres_scrapy.run.writer import CURVE, RIVALS_KEPT

STEP, ROW, PARENT, TIME, LEAF, SPLITS = map(
    Fetch.__slots__.index, ("step", "row", "parent", "time", "leaf", "splits")
)
RATE_SECONDS: Final = 1.0  # seconds over which a rate is measured
ENDING: Final = ("ended", "reason", "left", "gone", "labels", "final")  # of meta
OWN: Final = (  # settings of a shard that the crawl does not have
    "JOBDIR",
    "TRES_DASHBOARD",
    "TRES_OUTPUT",
    "TRES_REPORT",
    "TRES_SHARD",
    "TRES_WEB_PROXY",
)
# Without what only the crawl of the shard needs, such as the hosts it has asked for sitemaps.
_FACTS: Final = "SELECT * FROM meta WHERE instr(name, ' ') = 0"
JOINED: Final = "joined"  # in meta: when this was last brought up to date
PART_PAGES: Final = 1_000  # pages in a part
Row = tuple[Any, ...]
# The samples are in the files of the shards: here are no numbers of them.
_PAGE: Final = f"{', '.join(Fetch.__slots__)}, url_number, host, first, outlinks"
_VALUES: Final = f"{', '.join('?' * len(Fetch.__slots__))}, 0, 0, 0, 0"
_INSERT_PAGE: Final = f"INSERT OR REPLACE INTO page ({_PAGE}) VALUES ({_VALUES})"  # noqa: S608


class JoinedRecord:
    """The record of a crawl in shards; `add` brings what is new in the records of the shards.

    What has been added is noted in the file, so another process can go on. Use it as a context
    manager or close it. Raise RecordError if the file cannot be used.
    """

    def __init__(self, path: Path, shards: int, output: Path) -> None:
        self.path = path
        self._shards = shards
        self._output = output
        self._database = open_to_write(path)
        self._states: dict[int, _State] = {}
        self._known = ""  # the states as text
        self._recall()

    def __enter__(self) -> JoinedRecord:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def joined(self) -> float:
        """When something was added last, in seconds since 1970."""
        return float(self._meta(JOINED, "0"))

    def positions(self) -> dict[int, Position]:
        """Return how far the record of each shard has been read."""
        self._recall()
        return {
            shard: Position(state.step, int(state.point[0]) if state.point else 0, state.health[0])
            for shard, state in self._states.items()
        }

    def add(self, parts: Mapping[int, Part], time: float) -> bool:
        """Add the parts after `positions`, pages in order of their times.

        Return False if those are no longer the positions: then ask for them again.
        """
        parts = {shard: part for shard, part in parts.items() if part.meta}  # else it is too new
        with self._transaction() as cursor:
            if self._recall():
                return False  # another process has added something
            if any(part.steps < self._states[shard].step for shard, part in parts.items()):
                self._forget(cursor)  # a shard began again
                return False
            if parts:
                for shard, part in parts.items():
                    self._states[shard].meta = part.meta
                self._add_pages(cursor, parts)
                self._add_curve(cursor, parts)
                self._add_health(cursor, parts)
                self._write_meta(cursor, parts, time)
        return True

    def note(self, **facts: str) -> None:
        """Add facts of the whole crawl to its meta."""
        self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())

    def order(self) -> None:
        """Give the pages numbers in order of time: those that came late have later ones."""
        query = "SELECT time < lag(time) OVER (ORDER BY step) FROM page"
        if not any(is_late for (is_late,) in self._database.execute(query)):
            return
        with self._transaction() as cursor:
            cursor.execute(
                "CREATE TEMP TABLE place AS SELECT step AS old, "
                "row_number() OVER (ORDER BY time, step) AS new FROM page"
            )
            cursor.execute("CREATE UNIQUE INDEX temp.by_old ON place (old)")
            for table in ("page", "rivals"):  # by negative numbers, which are free
                new = "(SELECT new FROM place WHERE old = step)"
                cursor.execute(f"UPDATE {table} SET step = -{new}")  # noqa: S608 - ours
                cursor.execute(f"UPDATE {table} SET step = -step")  # noqa: S608 - ours
            cursor.execute("DROP TABLE place")

    def _recall(self) -> bool:
        """Read the states in the file; return whether they are not those in memory."""
        known, self._known = self._known, self._meta("states", "{}")
        if known == self._known:
            return False
        with reading(self.path):
            states = {
                int(shard): _State(**state) for shard, state in json.loads(self._known).items()
            }
        self._states = {shard: states.get(shard) or _State() for shard in range(self._shards)}
        return True

    def _forget(self, cursor: sqlite3.Cursor) -> None:
        for table in ("page", "rivals", "remark", "score", "guest", "curve", "health", "meta"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
        self._recall()

    def _add_pages(self, cursor: sqlite3.Cursor, parts: Mapping[int, Part]) -> None:
        ((last,),) = cursor.execute("SELECT ifnull(max(step), 0) FROM page")
        new = [(page, shard) for shard, part in parts.items() for page in part.pages]
        new.sort(key=lambda each: each[0][TIME])
        steps = {(shard, page[STEP]): step for step, (page, shard) in enumerate(new, last + 1)}
        pages = [self._page(page, shard, steps[shard, page[STEP]]) for page, shard in new]
        cursor.executemany(_INSERT_PAGE, pages)
        for shard, part in parts.items():
            rivals = [(steps[shard, step], value) for step, value in part.rivals]
            cursor.executemany("INSERT OR REPLACE INTO rivals VALUES (?, ?)", rivals)
            for table, found in (("remark", part.remarks), ("guest", part.guests)):
                rows = [(self._row(row, shard), text) for row, text in found]
                cursor.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", rows)  # noqa: S608
            scores = [(self._row(row, shard), *score) for row, *score in part.scores]
            cursor.executemany("INSERT OR REPLACE INTO score VALUES (?, ?, ?)", scores)
            if part.pages:
                self._states[shard].step = part.pages[-1][STEP]
        cursor.execute("DELETE FROM rivals WHERE step <= ?", (last + len(new) - RIVALS_KEPT,))

    def _page(self, page: Row, shard: int, step: int) -> list[Any]:
        values = list(page)
        values[STEP], values[ROW] = step, self._row(page[ROW], shard)
        if page[PARENT] is not None:
            values[PARENT] = self._row(page[PARENT], shard)
        values[LEAF] = values[SPLITS] = None
        return values

    def _row(self, row: int, shard: int) -> int:
        return row * self._shards + shard

    def _add_curve(self, cursor: sqlite3.Cursor, parts: Mapping[int, Part]) -> None:
        """Add the sum of the last points of all shards whenever a shard has a new one."""
        found = cursor.execute("SELECT time, pages, rate FROM curve ORDER BY step DESC LIMIT 1")
        time, pages, rate = found.fetchone() or (0.0, 0, 0.0)
        new = [(point, shard) for shard, part in parts.items() for point in part.curve]
        new.sort(key=lambda each: each[0][1])
        for number, (point, shard) in enumerate(new, 1):
            self._states[shard].point = point
            total = self._total()
            is_last = number == len(new) and self._has_ended
            if is_last or total[2] >= pages + max(1, pages // CURVE):
                if total[1] - time >= RATE_SECONDS:  # else the shards end together, one by one
                    rate = round((total[2] - pages) / (total[1] - time), 3) if time else 0.0
                total[7] = rate
                cursor.execute("INSERT OR REPLACE INTO curve VALUES (?,?,?,?,?,?,?,?,?)", total)
                time, pages = total[1:3]

    @property
    def _has_ended(self) -> bool:
        return all("reason" in state.meta for state in self._states.values() if state.meta)

    def _total(self) -> list[Any]:
        """Return the sum of the points of all shards; the loss is their mean."""
        points = [state.point for state in self._states.values() if state.point]
        columns = [
            [value for value in column if value is not None] for column in zip(*points, strict=True)
        ]
        steps, times, *counts, leaves, _, losses = columns
        return [
            *(sum(steps), max(times), *map(sum, counts)),
            sum(leaves) if leaves else None,
            0.0,
            sum(losses) / len(losses) if losses else None,
        ]

    def _add_health(self, cursor: sqlite3.Cursor, parts: Mapping[int, Part]) -> None:
        """Add the sum of the last notes of all shards at each note of the first of them."""
        new = [(note, shard) for shard, part in parts.items() for note in part.health]
        new.sort(key=lambda each: each[0][0])
        first = min(shard for shard, state in self._states.items() if state.meta)
        for (time, memory, answers), shard in new:
            self._states[shard].health = [time, memory, answers]
            if shard == first:
                notes = [state.health for state in self._states.values()]
                known = [note[1] for note in notes if note[1] is not None]
                total = sum((Counter(json.loads(note[2])) for note in notes), Counter[str]())
                values = time, sum(known) if known else None, json.dumps(total)
                cursor.execute("INSERT OR REPLACE INTO health VALUES (?, ?, ?)", values)

    def _write_meta(self, cursor: sqlite3.Cursor, parts: Mapping[int, Part], time: float) -> None:
        metas = [state.meta for state in self._states.values() if state.meta]
        has_ended = self._has_ended
        if not has_ended:
            cursor.executemany("DELETE FROM meta WHERE name = ?", [(name,) for name in ENDING])
        self._known = json.dumps({shard: vars(state) for shard, state in self._states.items()})
        facts = _shared(metas, has_ended=has_ended) | {
            "output": str(self._output.resolve()),
            "shards": str(self._shards),
            "states": self._known,
            JOINED: f"{time:.3f}",
        }
        cursor.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
        part = max(parts.values(), key=lambda part: part.steps)
        cursor.executemany("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", part.snapshots)
        settings = {name: value for name, value in part.settings.items() if name not in OWN}
        settings["JOBDIR"] = str(self.path.parent)
        cursor.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", settings.items())

    def _meta(self, name: str, default: str) -> str:
        query = "SELECT value FROM meta WHERE name = ?"
        found = self._database.execute(query, (name,)).fetchone()
        return default if found is None else str(found[0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        try:
            with self._database.transaction() as cursor:
                yield cursor
        except BaseException as error:
            self._known = ""  # the states are read again
            if isinstance(error, sqlite3.Error):
                raise RecordError(f"the record {self.path} cannot be written: {error}") from None
            raise


@dataclass
class _State:
    """What is known of a shard: its last step, point of the curve, note of health, and meta."""

    step: int = 0
    point: Sequence[Any] = ()
    health: Sequence[Any] = (0.0, None, "{}")
    meta: Mapping[str, str] = field(default_factory=dict)


def _shared(metas: Sequence[Mapping[str, str]], *, has_ended: bool) -> dict[str, str]:
    """Return the facts of a crawl from those of its shards."""
    refused = sum((Counter(json.loads(meta.get("refused", "{}"))) for meta in metas), Counter())
    changed = [name for name in json.loads(metas[0].get("changed", "[]")) if name not in OWN]
    facts = {
        **{name: metas[0].get(name, "") for name in ("topic", "policy", "spider", "scope")},
        "changed": json.dumps(changed),
        "started": min(meta.get("started", "") for meta in metas),
        "starts": min((meta.get("starts", "") for meta in metas), key=lambda all_: all_.count(" ")),
        "written": max((meta.get("written", "0") for meta in metas), key=float),
        "refused": json.dumps(refused),
    }
    if has_ended:
        facts["ended"] = max((meta["ended"] for meta in metas), key=float)
        for name in ("reason", "gone"):
            texts = dict.fromkeys(meta[name] for meta in metas if meta.get(name))
            facts[name] = "; ".join(texts)
    return facts


class Position(NamedTuple):
    """How far a record has been read: its last page, point of the curve and note of health."""

    step: int = 0
    point: int = 0
    health: float = 0.0


class Part(NamedTuple):
    """Rows of the tables of a record after a position, in order, and its meta and settings.

    `steps` is the number of its last page, which may come with a later part. The snapshots are
    those that all shards share: what the one learner has learned, not the trees.
    """

    steps: int
    pages: list[Row]
    rivals: list[Row]
    remarks: list[Row]
    scores: list[Row]
    guests: list[Row]
    curve: list[Row]
    health: list[Row]
    snapshots: list[Row]
    meta: dict[str, str]
    settings: dict[str, str]

    @property
    def is_last(self) -> bool:
        """Whether the record has no page after this part."""
        return not self.pages or self.pages[-1][0] >= self.steps


def read_part(path: Path, after: Position, most: int = PART_PAGES) -> Part:
    """Read what a record has after a position, at most so many pages; raise RecordError."""
    connection = open_to_read(path)
    try:
        with reading(path):
            connection.execute("BEGIN")  # all from the same moment

            def rows(query: str, *values: object) -> list[Row]:
                return connection.execute(query, values).fetchall()

            ((steps,),) = rows("SELECT ifnull(max(step), 0) FROM page")
            pages = rows(f"{FETCHES} page WHERE step > ? ORDER BY step LIMIT ?", after[0], most)
            steps_read = after.step, pages[-1][0] if pages else after.step
            these = "FROM page WHERE step > ? AND step <= ?"
            return Part(
                int(steps),
                pages,
                rows("SELECT * FROM rivals WHERE step > ? AND step <= ?", *steps_read),
                rows(f"SELECT * FROM remark WHERE row IN (SELECT row {these})", *steps_read),  # noqa: S608 - ours
                rows(f"SELECT * FROM score WHERE row IN (SELECT row {these})", *steps_read),  # noqa: S608 - ours
                rows(f"SELECT * FROM guest WHERE row IN (SELECT parent {these})", *steps_read),  # noqa: S608 - ours
                rows("SELECT * FROM curve WHERE step > ? ORDER BY step", after.point),
                rows("SELECT * FROM health WHERE time > ? ORDER BY time", after.health),
                rows("SELECT * FROM snapshot WHERE name IN (?, ?)", DEPENDENCE, LINKS),
                {str(name): str(value) for name, value in rows(_FACTS)},
                {str(name): str(value) for name, value in rows("SELECT * FROM setting")},
            )
    finally:
        connection.close()
