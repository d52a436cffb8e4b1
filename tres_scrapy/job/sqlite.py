"""SQLite files of ours, told from those of other programs and of later versions."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from enum import Enum


class Fault(Enum):
    """Why a file cannot be used."""

    FOREIGN = "it is another program's"
    NEWER = "a newer version has written it"
    TABLES = "its tables are others"


@dataclass(frozen=True)
class Schema:
    """SQLite's `application_id` and `user_version` of a file, and the statements of its tables."""

    application: int
    version: int
    tables: str

    def create(self, connection: sqlite3.Connection) -> None:
        """Make an empty file one of ours, within the transaction that is under way."""
        for statement in self._statements():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self.application}")
        connection.execute(f"PRAGMA user_version = {self.version}")

    def fault(self, connection: sqlite3.Connection) -> Fault | None:
        """Return why a file is none of this version's, None if it is one."""
        if connection.execute("PRAGMA application_id").fetchone()[0] != self.application:
            return Fault.FOREIGN
        version = version_of(connection)
        if version > self.version:
            return Fault.NEWER
        tables = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        same = {sql for (sql,) in tables} == set(self._statements())
        return None if same and version == self.version else Fault.TABLES

    def _statements(self) -> list[str]:
        return [each for each in map(str.strip, self.tables.split(";")) if each]


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the program's format that a file names."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_empty(connection: sqlite3.Connection) -> bool:
    """Say whether a file has no tables yet."""
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
