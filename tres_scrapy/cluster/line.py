"""Which history the folder of a shard holds: a restored snapshot begins a new one, a *line*."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from tres_scrapy.cluster.shard_journal import held_in
from tres_scrapy.cluster.snapshot_store import Manifest, SnapshotFolder
from tres_scrapy.report.record_path import PART
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

FILE: Final = "line.json"
STEPS: Final = "steps"  # facts of a snapshot: its bookings, its line,
LINE: Final = "line"
RUN: Final = "run"  # and the run of the crawl that ended with it, "" if the crawl went on


@dataclass(frozen=True)
class Line:
    """The epoch of the owner that began a line, and its past.

    `forks` are the numbers of all lines until this one, each with how many bookings it took over:
    what other processes know of later bookings of the line before is about another past. `owner` is
    the epoch of the last owner that went on from this folder.
    """

    number: int
    forks: tuple[tuple[int, int], ...] = ()
    owner: int = field(default=0, compare=False)

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the line of a folder, None if it has no journal or never had snapshots."""
        file = folder / FILE
        if not file.exists() or not (folder / NAME).exists():
            return None
        return cls.of(json.loads(file.read_text(encoding="utf-8")))

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Self:
        """Return the line that `facts` describes."""
        forks = tuple((line, steps) for line, steps in facts["forks"])
        return cls(facts["number"], forks, facts["owner"])

    @property
    def facts(self) -> dict[str, Any]:
        """The line as JSON can hold it."""
        return asdict(self)

    def write(self, folder: Path) -> Self:
        """Write to a folder that it holds this line."""
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / FILE) as file:
            file.write(json.dumps(self.facts).encode())
        return self


def is_current(folder: Path, manifest: Manifest) -> bool:
    """Return whether a folder that no process uses holds all that a snapshot holds."""
    line = Line.read(folder)
    if line is None or line.number != manifest.facts[LINE]["number"]:
        return False
    try:
        return bool(held_in(folder / NAME).steps >= manifest.facts[STEPS])
    except sqlite3.Error:  # damaged, or in use
        return False


def note_owner(folder: Path, epoch: int, before: int) -> None:
    """Note a new owner in the folder of a shard if the owner `before`, 0 if none, left it.

    This comes before the new owner leaves its claim: whatever fails then, the next one knows that
    this disk was in use until then. A journal without a line begins one if it never had snapshots.
    """
    line = Line.read(folder)
    if line is not None and line.owner >= before:
        replace(line, owner=epoch).write(folder)
    elif line is None and not before and (folder / NAME).exists():
        Line(epoch, owner=epoch).write(folder)


def take_over(folder: Path, snapshots: SnapshotFolder, epoch: int) -> Line:
    """Bring the folder of a shard to the last state that counts, for a new owner; return its line.

    That is the state on this disk if it notes this owner and the last snapshot was taken of it.
    Else it is the last snapshot: an owner on another node may have sent links since, under the
    numbers that this disk would use. Raise TresError if a journal is there that has nothing to do
    with the snapshots.
    """
    line, manifest = Line.read(folder), snapshots.latest()
    is_last = manifest is None or is_current(folder, manifest)
    if line is not None and line.owner == epoch and is_last:
        return line
    if line is None and (folder / NAME).exists():
        raise TresError(
            f"{folder} holds another crawl than the snapshots in {snapshots.url}: give another "
            "directory"
        )
    with _replaced(folder) as part:
        if manifest is None:
            return Line(epoch, ((epoch, 0),), epoch).write(part)
        snapshots.fetch(manifest, part)
        forks = Line.of(manifest.facts[LINE]).forks
        return Line(epoch, (*forks, (epoch, manifest.facts[STEPS])), epoch).write(part)


def gather(folder: Path, snapshots: SnapshotFolder, run: str) -> bool:
    """Fetch what a shard has written until it ended, without its journal, unless it is here.

    Return False if it has not taken its last snapshot in a run of the crawl.
    """
    manifest = snapshots.latest()
    if manifest is None or manifest.facts[RUN] != run:
        return False
    if not is_current(folder, manifest):
        with _replaced(folder) as part:
            snapshots.fetch(manifest, part, without=frozenset({NAME}))
    return True


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Replace a folder by a new one at once, when all is written to that."""
    part = folder.with_name(f"{folder.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    (folder / NAME).unlink(missing_ok=True)  # first: without its line it would be another crawl
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
