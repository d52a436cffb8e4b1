"""Snapshots of the parts of a crawl in a storage that all nodes reach, such as s3://.

Files are cut into blocks, named by their contents, so that a block that has not changed is not
sent again. A manifest names the blocks of a snapshot and is written last. The latest manifest is
that of the highest epoch: an owner of a lower epoch cannot replace it.

An owner first leaves its claim, then looks for the latest snapshot. It writes a snapshot, then
looks for claims: without a newer one, each newer owner will find this snapshot, so that what it
holds can be confirmed. The storage must list a new file at once, as object stores do.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import fsspec

from tres_scrapy.url.message import TresError

BLOCK: Final = 2**20  # bytes
CRAWL: Final = "crawl.json"
CLAIM: Final = "claim"
MANIFEST: Final = "manifest"


class SnapshotError(TresError):
    """Raised with a one-line reason when a storage cannot be used, or what it holds is damaged."""


class OvertakenError(TresError):
    """Raised when another process has become the owner."""


@dataclass(frozen=True)
class Manifest:
    """A snapshot: the names of the blocks of each file, and facts about it."""

    epoch: int
    number: int
    files: Mapping[str, list[str]]
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name; those of later ones are greater."""
        return f"{MANIFEST}-{self.epoch:010d}-{self.number:010d}"

    @property
    def blocks(self) -> set[str]:
        """The names of all blocks."""
        return {name for blocks in self.files.values() for name in blocks}

    def packed(self) -> bytes:
        """Return it as bytes, which begin with a hash of the rest."""
        data = json.dumps([self.epoch, self.number, self.files, self.facts]).encode()
        return _hash(data).encode() + b"\n" + data

    @classmethod
    def unpacked(cls, data: bytes) -> Manifest | None:
        """Return the manifest that was packed, None if it is torn."""
        head, _, rest = data.partition(b"\n")
        if head.decode(errors="replace") != _hash(rest):
            return None
        return cls(*json.loads(rest))


class SnapshotStore:
    """The storage of a crawl at a URL of fsspec; raise SnapshotError if it cannot be used."""

    def __init__(self, url: str) -> None:
        self.url = url
        with _named(url):
            self._files, self._root = fsspec.core.url_to_fs(url)

    def check(self, identity: Mapping[str, str]) -> None:
        """Raise SnapshotError if another crawl than `identity` is there, or nothing can be."""
        found = self._crawl()
        for name, value in identity.items() if found["identity"] else ():
            before = found["identity"].get(name)
            if before != value:
                raise SnapshotError(
                    f"--snapshots {self.url} holds a crawl with {name} {before!r}, not {value!r}: "
                    "give another URL"
                )
        with _named(self.url):
            _make(self._files, self._root)
            probe = f"{self._root}/probe-{secrets.token_hex(8)}"
            self._files.pipe_file(probe, b"1")
            self._files.rm(probe)

    def begin(self, identity: Mapping[str, str], run: str) -> None:
        """Note that a run of a crawl begins; raise SnapshotError."""
        with _named(self.url):
            data = json.dumps({"identity": dict(identity), "run": run}).encode()
            self._files.pipe_file(f"{self._root}/{CRAWL}", data)

    def holds(self, run: str) -> bool:
        """Return whether a run of a crawl has begun here."""
        return bool(self._crawl().get("run") == run)

    def folder(self, name: str) -> SnapshotFolder:
        """Return the folder of a part of the crawl, such as shard-0."""
        return SnapshotFolder(self._files, f"{self._root}/{name}", f"{self.url}/{name}")

    def _crawl(self) -> dict[str, Any]:
        with _named(self.url):
            self._files.invalidate_cache()
            path = f"{self._root}/{CRAWL}"
            text = self._files.cat_file(path) if self._files.exists(path) else b"{}"
            try:
                found = dict(json.loads(text))
                found["identity"] = dict(found.get("identity", {}))
            except (ValueError, TypeError):
                raise ValueError(f"{CRAWL} there is not a file of TRES") from None
            return found


class SnapshotFolder:
    """The snapshots of one part of a crawl, for one owner."""

    def __init__(self, files: Any, path: str, url: str) -> None:
        self.url = url
        self._files = files
        self._path = path
        self._claim = ""
        self._epoch = self._number = 0
        self._known: dict[str, str] = {}  # names of blocks of the last snapshot, by their hashes

    def highest(self) -> int:
        """Return the highest epoch of an owner, 0 without any."""
        return max(map(_epoch_of, self._names(CLAIM, MANIFEST)), default=0)

    def claim(self, epoch: int) -> None:
        """Become the owner with an epoch."""
        self._epoch, self._claim = epoch, f"{CLAIM}-{epoch:010d}-{secrets.token_hex(8)}"
        with _named(self.url):
            _make(self._files, self._path)
            _make(self._files, f"{self._path}/blocks")
            self._files.pipe_file(f"{self._path}/{self._claim}", b"1")

    def latest(self) -> Manifest | None:
        """Return the latest snapshot, None without any."""
        for name in sorted(self._names(MANIFEST), reverse=True):
            with _named(self.url):
                manifest = Manifest.unpacked(self._files.cat_file(f"{self._path}/{name}"))
            if manifest is not None:
                self._know(manifest)
                return manifest
        return None

    def write(
        self,
        files: Mapping[str, tuple[Path, int | None]],
        facts: Mapping[str, Any],
        check: Callable[[], None] = lambda: None,
    ) -> Manifest:
        """Write a snapshot of files, or of so many of their first bytes; then remove older ones.

        Raise OvertakenError if there is a newer owner: then the snapshot counts for nothing.
        `check` is called before each block and may raise.
        """
        sent = {name: list(self._send(*file, check)) for name, file in files.items()}
        self._number += 1
        manifest = Manifest(self._epoch, self._number, sent, facts)
        with _named(self.url):
            self._files.pipe_file(f"{self._path}/{manifest.name}", manifest.packed())
        claims = set(self._names(CLAIM)) - {self._claim}
        if any(_epoch_of(claim) >= self._epoch for claim in claims):
            raise OvertakenError(f"{self.url} has another owner")
        self._know(manifest)
        self._remove_others(manifest)
        return manifest

    def fetch(
        self, manifest: Manifest, folder: Path, without: frozenset[str] = frozenset()
    ) -> None:
        """Write the files of a snapshot to a folder; raise SnapshotError if it is damaged."""
        for name in manifest.files.keys() - without:
            with (folder / Path(name).name).open("wb") as file:
                for block in manifest.files[name]:
                    file.write(self._block(block))

    def _send(self, path: Path, size: int | None, check: Callable[[], None]) -> Iterator[str]:
        """Send the blocks of a file that are not there; yield the names of all."""
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size if size is None else size
            while left > 0:
                check()
                data = file.read(min(left, BLOCK))
                if not data:
                    raise OSError(f"{path} is shorter than it was")
                left -= len(data)
                digest = _hash(data)
                if digest not in self._known:
                    name = f"{self._epoch:010d}-{digest}"
                    with _named(self.url):
                        self._files.pipe_file(f"{self._path}/blocks/{name}", data)
                    self._known[digest] = name
                yield self._known[digest]

    def _block(self, name: str) -> bytes:
        with _named(self.url):
            data = bytes(self._files.cat_file(f"{self._path}/blocks/{name}"))
        if _hash(data) != name.rpartition("-")[2]:
            raise SnapshotError(f"the snapshot in {self.url} is damaged: block {name}")
        return data

    def _know(self, manifest: Manifest) -> None:
        self._known = {block.rpartition("-")[2]: block for block in manifest.blocks}

    def _remove_others(self, manifest: Manifest) -> None:
        """Remove what only older snapshots need, and older claims."""
        needed = {*manifest.blocks, manifest.name, self._claim}
        with _named(self.url):
            for folder in (self._path, f"{self._path}/blocks"):
                names = self._listed(folder)
                old = [f"{folder}/{n}" for n in names - needed if _epoch_of(n) <= self._epoch]
                if old:
                    self._files.rm(old)

    def _names(self, *kinds: str) -> list[str]:
        with _named(self.url):
            return [name for name in self._listed(self._path) if name.startswith(kinds)]

    def _listed(self, folder: str) -> set[str]:
        self._files.invalidate_cache()
        try:
            found = self._files.ls(folder, detail=False)
        except FileNotFoundError:
            return set()
        return {str(path).rpartition("/")[2] for path in found}


def _make(files: Any, path: str) -> None:
    """Make a folder where there are any, but no bucket: its name may be a mistake."""
    with suppress(FileExistsError):
        files.mkdir(path, create_parents=False)


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=20).hexdigest()


def _epoch_of(name: str) -> int:
    """Return the epoch in the name of a claim, manifest or block; of other files a high one."""
    parts = name.split("-")
    number = parts[1 if parts[0] in {CLAIM, MANIFEST} else 0] if len(parts) > 1 else ""
    return int(number) if number.isdigit() else 2**62


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Raise SnapshotError, in one line with the URL, for what the library of a storage raises."""
    try:
        yield
    except (SnapshotError, OvertakenError):
        raise
    except Exception as error:
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SnapshotError(f"--snapshots {url}: {text}") from error
