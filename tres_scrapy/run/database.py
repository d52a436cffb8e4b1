"""The SQLite files of TRES: open them, refuse others without changing them, and write them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from tres_scrapy.url.message import TresError, reason

_LOCK: Final = "-lock"  # ends the name of the file that the only writer of another locks
_ENDINGS: Final = ("", "-wal", "-shm", "-journal", _LOCK)  # of the files that SQLite writes
_FAULTS: Final = {  # by SQLite's name of the error
    "SQLITE_BUSY": "BUSY",
    "SQLITE_LOCKED": "BUSY",
    "SQLITE_CORRUPT": "DAMAGED",
    "SQLITE_NOTADB": "DAMAGED",
}


Migration = Callable[[sqlite3.Cursor], None]


class FileFault(Enum):
    """Why a file cannot be used; the value is the message."""

    MISSING = "there is no {noun} {path}"
    LINK = "{path} is not a plain file"
    EMPTY = "{path} holds no {noun} yet"
    FOREIGN = "{path} is another program's file, not a {noun}"
    OLDER = "{path} was written by an older version of TRES ({detail})"
    NEWER = "{path} was written by a newer version of TRES ({detail}): update TRES"
    TABLES = "{path} has tables that TRES did not create"
    BUSY = "another process is using {path}"
    DAMAGED = "{path} is damaged: {detail}"
    UNUSABLE = "{path} cannot be opened: {detail}"


class SqliteFileError(TresError):
    """Raised with a one-line message when a file cannot be used; `fault` is the reason."""

    def __init__(self, fault: FileFault, path: Path, noun: str, detail: str = "") -> None:
        super().__init__(fault.value.format(path=path, noun=noun, detail=detail))
        self.fault = fault


class Access(Enum):
    """How a file is opened: SQLite's mode, and the seconds to wait for another process."""

    READ = "ro", 5.0  # an existing file, perhaps while another process writes it
    SHARED = "rwc", 1.0  # to write, while others read
    EXCLUSIVE = "rwc", 1.5  # the same, and no other process opens it to write


class Database(sqlite3.Connection):
    """A file of TRES that is open; `Schema.open` returns it.

    The `lock` of its only writer is kept until it is closed.
    """

    lock: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file, and let another process write it."""
        super().close()
        if self.lock is not None:
            self.lock.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Save everything that is written inside, or nothing if an error is raised."""
        cursor = self.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                cursor.execute("ROLLBACK")
            raise


@dataclass(frozen=True)
class Schema:
    """A kind of file: its `noun` in messages, `application_id`, `user_version` and tables.

    `migrations` change the tables of a version into those of the next one. A file is migrated when
    it is opened to write, in one transaction; if it is opened to read, a copy of it is.
    """

    noun: str
    application: int
    version: int
    tables: str
    migrations: Mapping[int, Migration] = field(default_factory=dict)

    def open(self, path: Path, access: Access) -> Database:
        """Open a file; create it if it is missing and opened for writing.

        Raise SqliteFileError, and change nothing, if the file cannot be used.
        """
        try:
            self._check_names(path, access)
            mode, timeout = access.value
            database = _connected(f"{path.absolute().as_uri()}?mode={mode}", timeout)
            try:
                is_older = self._prepare(database, path, access)
                return self._migrated_copy(database, path) if is_older else database
            except BaseException:
                database.close()
                raise
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            name = getattr(error, "sqlite_errorname", "")
            is_text = isinstance(error, UnicodeDecodeError)
            fault = FileFault["DAMAGED" if is_text else _FAULTS.get(name, "UNUSABLE")]
            hint = ": check the permissions of its folder" if name == "SQLITE_CANTOPEN" else ""
            raise SqliteFileError(fault, path, self.noun, reason(error) + hint) from None

    def _check_names(self, path: Path, access: Access) -> None:
        """Refuse to read a missing file, and to write through links."""
        if access is Access.READ:
            if not path.is_file():
                raise SqliteFileError(FileFault.MISSING, path, self.noun)
            return
        for file in (path.with_name(f"{path.name}{ending}") for ending in _ENDINGS):
            if file.is_symlink() or (file.exists() and not file.is_file()):
                raise SqliteFileError(FileFault.LINK, file, self.noun)

    def _prepare(self, database: Database, path: Path, access: Access) -> bool:
        """Make a file ready for use; return whether it has to be migrated to be read."""
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        if access is Access.EXCLUSIVE:
            database.lock = _locked(path)
        fault = self._fault(database)
        is_older = fault is FileFault.OLDER and _version(database) in self.migrations
        if not is_older and (access is Access.READ or fault is not FileFault.EMPTY):
            self._refuse(fault, database, path)
        if access is not Access.READ:
            database.execute("PRAGMA journal_mode = WAL")
            # A commit survives a kill at once, and a power cut after the next checkpoint.
            database.execute("PRAGMA synchronous = NORMAL")
            self._update(database, path)
        return is_older and access is Access.READ

    def _update(self, database: Database, path: Path) -> None:
        """Create the tables of an empty file, or migrate those of an older one: all or nothing."""
        with database.transaction() as cursor:
            if self._fault(database) is FileFault.EMPTY:
                for statement in self._statements():
                    cursor.execute(statement)
                cursor.execute(f"PRAGMA application_id = {self.application}")
            for version in range(_version(database) or self.version, self.version):
                self.migrations[version](cursor)
            cursor.execute(f"PRAGMA user_version = {self.version}")
            self._refuse(self._fault(database), database, path)

    def _migrated_copy(self, database: Database, path: Path) -> Database:
        """Close an older file, and return a migrated copy in a file that goes when it is closed."""
        copy = _connected("", 0.0)
        with closing(database):
            database.backup(copy)
        try:
            self._update(copy, path)
        except BaseException:
            copy.close()
            raise
        return copy

    def _refuse(self, fault: FileFault | None, database: Database, path: Path) -> None:
        """Raise SqliteFileError if there is a fault."""
        if fault is not None:
            formats = f"format {_version(database)}, this one reads {self.version}"
            raise SqliteFileError(fault, path, self.noun, formats)

    def _fault(self, database: Database) -> FileFault | None:
        """Return why a file is not of this kind and version, or None if it is."""
        tables = database.execute("SELECT sql FROM sqlite_master").fetchall()
        if not tables:
            return FileFault.EMPTY
        if database.execute("PRAGMA application_id").fetchone()[0] != self.application:
            return FileFault.FOREIGN
        version = _version(database)
        if version > self.version:
            return FileFault.NEWER
        if 0 < version < self.version:
            return FileFault.OLDER
        same = {sql for (sql,) in tables if sql is not None} == set(self._statements())
        return None if same and version == self.version else FileFault.TABLES

    def _statements(self) -> list[str]:
        return [each for each in map(str.strip, self.tables.split(";")) if each]


def _connected(uri: str, timeout: float) -> Database:
    return sqlite3.connect(
        uri,
        timeout,
        isolation_level=None,
        check_same_thread=False,  # another thread may copy the file
        factory=Database,
        uri=True,
    )


def _locked(path: Path) -> sqlite3.Connection:
    """Lock a file for this process; raise sqlite3.OperationalError if another one has done so.

    Readers need no lock. The end of the process, whatever ends it, frees the file.
    """
    lock = sqlite3.connect(f"{path}{_LOCK}", 0.0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        lock.close()
        raise
    return lock


def _version(database: Database) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])
