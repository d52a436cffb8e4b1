"""Brings the folder of a shard to the last state that counts, from the snapshots of its owners."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tres_scrapy.cluster.snapshot import EPOCHS, Snapshot, SnapshotFolder
from tres_scrapy.report.record_path import PART
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file


def epochs_of(folder: Path) -> set[int]:
    """Return which owners of a shard have begun with the journal in a folder, one after the other.

    That of a crawl which never had snapshots has an owner 0; without a journal there is none.
    """
    if not (folder / NAME).exists():
        return set()
    file = folder / EPOCHS
    return set(map(int, file.read_text().split())) if file.exists() else {0}


def take_over(folder: Path, snapshots: SnapshotFolder, begin: Callable[[int], int]) -> None:
    """Bring the folder of a shard to the last state that counts, for a new owner.

    `begin` returns the owner's epoch, above a number. The state that counts is that on this disk
    if no other owner has begun since it was brought here; else it is the last snapshot: the other
    may have sent links, under higher numbers than those that wait on this disk. Raise TresError if
    a journal is there that has nothing to do with the snapshots, OvertakenError with a newer owner.
    """
    own = epochs_of(folder)
    epoch = begin(max(own | snapshots.epochs(), default=0))
    if own:  # noted first: if the claim fails, this disk still holds the last state
        _note(folder, own | {epoch})
    snapshots.claim(epoch)
    others = snapshots.epochs() - own - {epoch}
    if own and max(others, default=-1) < min(own):
        _note(folder, {epoch})
        return
    if 0 in own:
        raise TresError(
            f"{folder} holds another crawl than the snapshots in {snapshots.url}: give another "
            "directory"
        )
    _restore(folder, snapshots, snapshots.latest(), epoch)


def gather(folder: Path, snapshots: SnapshotFolder, run: str) -> bool:
    """Fetch what a shard has written until it ended, unless it is here.

    Return False if it has not taken its last snapshot in a run of the crawl.
    """
    snapshot = snapshots.latest()
    if snapshot is None or snapshot.run != run:
        return False
    if snapshot.epoch not in epochs_of(folder):
        _restore(folder, snapshots, snapshot, snapshot.epoch)
    return True


def _restore(
    folder: Path, snapshots: SnapshotFolder, snapshot: Snapshot | None, epoch: int
) -> None:
    """Replace a folder at once by a snapshot, or by an empty one, for an owner."""
    part = folder.with_name(f"{folder.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if snapshot is not None:
        snapshots.fetch(snapshot, part)
    _note(part, {epoch})
    (folder / NAME).unlink(missing_ok=True)  # first: without its epochs it would be another crawl
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def _note(folder: Path, epochs: set[int]) -> None:
    with whole_file(folder / EPOCHS) as file:
        file.write(" ".join(map(str, sorted(epochs))).encode())
