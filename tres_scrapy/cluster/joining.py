"""Keeps the joined record of a running crawl up to date, from what the shards send."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, time
from typing import Final

from tres_scrapy.cluster.record_join import JoinedRecord
from tres_scrapy.report.record_file import IN_JOB, RecordError
from tres_scrapy.report.record_part import Part, Position

COST: Final = 20  # the next parts are asked for after this many times what the last ones took

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
        self.path = job / IN_JOB
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
