"""What is new in the record of one shard of a crawl, to be joined with those of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from tres_scrapy.report.record_file import open_to_read, reading
from tres_scrapy.report.snapshot import DEPENDENCE, LINKS

MOST: Final = 1_000  # pages in a part
Row = tuple[Any, ...]


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


def read_part(path: Path, after: Position, most: int = MOST) -> Part:
    """Read what a record has after a position, at most so many pages; raise RecordError."""
    connection = open_to_read(path)
    try:
        with reading(path):
            connection.execute("BEGIN")  # all from the same moment

            def rows(query: str, *values: object) -> list[Row]:
                return connection.execute(query, values).fetchall()

            ((steps,),) = rows("SELECT ifnull(max(step), 0) FROM page")
            pages = rows("SELECT * FROM page WHERE step > ? ORDER BY step LIMIT ?", after[0], most)
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
                {str(name): str(value) for name, value in rows("SELECT * FROM meta")},
                {str(name): str(value) for name, value in rows("SELECT * FROM setting")},
            )
    finally:
        connection.close()
