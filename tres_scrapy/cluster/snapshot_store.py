"""Snapshots of the shards of a crawl in a storage that all nodes reach, such as s3://.

Files are cut into blocks, named by their contents, so that a block that has not changed is not
sent again. A list names the blocks of a snapshot and is written last. All names begin with the
epoch of their owner: the latest snapshot is that of the highest epoch.

An owner first leaves its claim, then looks for the latest snapshot. It writes a snapshot, then
looks for claims: without a newer one, each newer owner will find this snapshot, so that what it
holds can be confirmed. The storage must list a new file at once, as object stores do.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import fsspec

from tres_scrapy.url.message import TresError

BLOCK: Final = 2**20  # bytes
CRAWL: Final = "crawl.json"
CLAIM, SNAPSHOT = ".claim", ".snapshot"  # ends of names
EPOCH: Final = 10  # digits of an epoch


class OvertakenError(TresError):
    """Raised when an owner, that of an `epoch`, has been followed by another process."""

    def __init__(self, url: str, epoch: int) -> None:
        super().__init__(f"{url} has another owner")
        self.epoch = epoch


class Snapshot(NamedTuple):
    """The names of the blocks of each file, and the run of the crawl that ended with it, or ""."""

    epoch: int
    files: Mapping[str, list[str]]
    run: str


def crawl_at(url: str) -> dict[str, Any]:
    """Return the identity and the last `run` of the crawl at a URL, empty without one."""
    files, path = fsspec.core.url_to_fs(f"{url}/{CRAWL}")
    files.invalidate_cache()
    data = files.cat_file(path) if files.exists(path) else b"{}"
    try:
        return dict(json.loads(data))
    except (ValueError, TypeError):
        raise TresError(f"--snapshots {url}: {CRAWL} is not a file of TRES") from None


def begin_run(url: str, identity: Mapping[str, str], run: str) -> None:
    """Note that a run of a crawl begins; raise TresError if that is not possible at the URL."""
    try:
        found = crawl_at(url)
        for name, value in identity.items() if found else ():
            if found.get(name) != value:
                raise TresError(
                    f"--snapshots {url} holds a crawl with {name} {found.get(name)!r}, not "
                    f"{value!r}: give another URL"
                )
        files, path = fsspec.core.url_to_fs(url)
        _make(files, path)
        files.pipe_file(f"{path}/{CRAWL}", json.dumps({**identity, "run": run}).encode())
    except TresError:
        raise
    except Exception as error:  # libraries raise many kinds
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        raise TresError(f"--snapshots {url}: {text}") from error


class SnapshotFolder:
    """The snapshots of one shard, for one owner; any error of a library may be raised."""

    epoch = 0
    _claim = ""
    _number = 0  # of snapshots

    def __init__(self, url: str) -> None:
        self.url = url
        self._files, self._path = fsspec.core.url_to_fs(url)
        self._known: dict[str, str] = {}  # names of blocks of the last snapshot, by their hashes

    def epochs(self) -> set[int]:
        """Return the epochs of all owners that are known."""
        return {int(name[:EPOCH]) for name in self._names()}

    def claim(self, epoch: int) -> None:
        """Become the owner with an epoch; raise OvertakenError if a newer one is known."""
        self.epoch = epoch
        self._claim = self._name(f"{secrets.token_hex(8)}{CLAIM}")
        _make(self._files, self._path)
        self._put(self._claim, b"1")
        self._former()

    def latest(self) -> Snapshot | None:
        """Return the latest snapshot that is whole, None without any."""
        for name in sorted(self._names(), reverse=True):
            if name.endswith(SNAPSHOT):
                data = self._get(name)
                with suppress(ValueError):  # it is torn
                    snapshot = Snapshot(int(name[:EPOCH]), *json.loads(data))
                    self._know(snapshot.files)
                    return snapshot
        return None

    def write(self, files: Mapping[str, tuple[Path, int | None]], run: str = "") -> None:
        """Write a snapshot of files, or of so many of their first bytes; then remove older ones.

        Raise OvertakenError if there is a newer owner: then the snapshot counts for nothing.
        """
        sent = {name: list(self._send(*file)) for name, file in files.items()}
        self._number += 1
        name = self._name(f"{self._number:010d}{SNAPSHOT}")
        self._put(name, json.dumps([sent, run]).encode())
        former = self._former()
        self._know(sent)
        if old := former - {*self._known.values(), name}:
            self._files.rm([f"{self._path}/{each}" for each in old])

    def fetch(self, snapshot: Snapshot, folder: Path) -> None:
        """Write the files of a snapshot to a folder; raise TresError if it is damaged."""
        for name, blocks in snapshot.files.items():
            with (folder / Path(name).name).open("wb") as file:
                for block in blocks:
                    data = self._get(block)
                    if _hash(data) != _hash_in(block):
                        raise TresError(f"{self.url} is damaged: block {block}")
                    file.write(data)

    def _send(self, path: Path, size: int | None) -> Iterator[str]:
        """Send the blocks of a file that are not there; yield the names of all."""
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size if size is None else size
            while left > 0:
                data = file.read(min(left, BLOCK))
                if not data:
                    raise OSError(f"{path} is shorter than it was")
                left -= len(data)
                digest = _hash(data)
                if digest not in self._known:
                    self._put(self._name(digest), data)
                    self._known[digest] = self._name(digest)
                yield self._known[digest]

    def _put(self, name: str, data: bytes) -> None:
        self._files.pipe_file(f"{self._path}/{name}", data)

    def _get(self, name: str) -> bytes:
        return bytes(self._files.cat_file(f"{self._path}/{name}"))

    def _name(self, rest: str) -> str:
        return f"{self.epoch:0{EPOCH}d}-{rest}"

    def _know(self, files: Mapping[str, list[str]]) -> None:
        self._known = {_hash_in(block): block for blocks in files.values() for block in blocks}

    def _former(self) -> set[str]:
        """Return the names until this epoch, without the claim; raise OvertakenError."""
        names = self._names() - {self._claim}
        if any(name.endswith(CLAIM) and name >= self._name("") for name in names):
            raise OvertakenError(self.url, self.epoch)
        return {name for name in names if name <= self._name("~")}

    def _names(self) -> set[str]:
        """Return the names of all files that begin with an epoch."""
        self._files.invalidate_cache()
        try:
            found = self._files.ls(self._path, detail=False)
        except FileNotFoundError:
            return set()
        names = {str(path).rpartition("/")[2] for path in found}
        return {name for name in names if name[:EPOCH].isdigit()}


def _make(files: Any, path: str) -> None:
    """Make a folder where there are any, but no bucket: its name may be a mistake."""
    with suppress(FileExistsError):
        files.mkdir(path, create_parents=False)


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=20).hexdigest()


def _hash_in(block: str) -> str:
    return block[EPOCH + 1 :]
