"""Joins the records of the shards of a crawl: while it runs, or from the files in its folder."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, time
from typing import Final

from tres_scrapy.cluster.record_join import JoinedRecord, Part, Position, read_part
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import SHARD
from tres_scrapy.run.run_file import NAME, RecordError

COST: Final = 20  # the next parts are asked for after this many times what the last ones took
FRESH: Final = 30.0  # seconds since the crawl itself joined the records of its shards
SHARDS: Final = "TRES_SHARDS"  # the setting of a shard that says how many there are

logger = logging.getLogger(__name__)


class Joining:
    """Joins the records of the shards every `period` seconds, or less often if that takes long.

    `parts` returns what the shards have after a position. If the record cannot be written, one
    line is logged and the crawl goes on.
    """

    def __init__(
        self,
        job: Path,
        shards: int,
        output: Path,
        parts: Callable[[Mapping[int, Position]], Mapping[int, Part]],
        period: float,
    ) -> None:
        self.path = job / NAME
        self._parts = parts
        self._period = period
        self._due = 0.0
        self._joined: JoinedRecord | None = None
        try:
            self._joined = JoinedRecord(self.path, shards, output)
        except RecordError as error:
            self._give_up(error)

    def look(self) -> None:
        """Join the records if it is time."""
        begun = monotonic()
        if self._joined is None or begun < self._due:
            return
        try:
            self._joined.add(self._parts(self._joined.positions()), time())
        except Exception as error:  # whatever a record holds, the crawl goes on
            self._give_up(error)
        end = monotonic()
        self._due = end + max(self._period, COST * (end - begun))

    def close(self) -> None:
        """Close the record."""
        if self._joined is not None:
            self._joined.close()
            self._joined = None

    def _give_up(self, error: Exception) -> None:
        logger.error("%s: the crawl goes on without a record of all shards", error)
        self.close()


def join_records(records: Mapping[int, Path], joined: JoinedRecord, time: float) -> None:
    """Add to a joined record all that the records of the shards have; raise RecordError."""
    while True:
        after = joined.positions()
        parts = {shard: read_part(path, after[shard]) for shard, path in records.items()}
        if joined.add(parts, time) and all(part.is_last for part in parts.values()):
            break
    joined.order()


def shard_records(folder: Path) -> dict[int, Path]:
    """Return the records of the shards of a crawl in a folder, by their numbers."""
    found = {path.parent.name.removeprefix(SHARD): path for path in folder.glob(f"{SHARD}*/{NAME}")}
    return {int(number): path for number, path in found.items() if number.isdigit()}


def join_shards(folder: Path, output: Path | None = None, *, at_once: bool = False) -> Path | None:
    """Join the records of the shards of a crawl in a folder; return the record, None without any.

    A running crawl does that itself: then nothing is done, unless `at_once`.
    """
    records, path = shard_records(folder), folder / NAME
    if not records:
        return None
    with Record(next(iter(records.values()))) as first:
        shards, topic = int(first.settings()[SHARDS]), first.meta()["topic"]
    try:
        with JoinedRecord(path, shards, output or folder / f"{topic}.jsonl") as joined:
            if at_once or time() - joined.joined > FRESH:
                join_records(records, joined, time())
    except (RecordError, sqlite3.Error):
        if at_once or not path.exists():  # else it is read as it is, in a folder of someone else
            raise
    return path
