"""The checksum of a job's rows, by which a flipped bit or a lost row is noticed."""

from __future__ import annotations

import sqlite3
from typing import Final
from zlib import crc32

TABLES: Final = (
    "meta",
    "batch",
    "lease",
    "redirect",
    "step",
    "rule",
    "state",
    "item",
    "request",
    "guest",
    "outbox",
    "peer",
)
_MODULUS: Final = 1 << 32


class RowChecksum:
    """The sum of the CRCs of all rows, kept up to date by triggers on the connection.

    The sum does not depend on the order of changes, so a change costs only as much as its row.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._saved = self._value = total(connection)
        connection.execute("PRAGMA recursive_triggers = ON")  # a REPLACE deletes, too
        connection.create_function("tres_note", -1, self._note)
        for table in TABLES:
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            for event, rows in {"INSERT": "N", "DELETE": "O", "UPDATE": "ON"}.items():
                calls = (_call(table, row, columns) for row in rows)
                connection.execute(
                    f"CREATE TEMP TRIGGER tres_{table}_{event} AFTER {event} ON main.{table} "
                    f"BEGIN {' '.join(calls)} END"
                )

    @property
    def saved(self) -> int:
        """The sum after the last transaction."""
        return self._saved

    def check(self) -> None:
        """Raise ValueError if the rows are not those that were saved."""
        found = self._connection.execute("SELECT value FROM checksum").fetchone()
        if self._value != (found[0] if found else 0):
            raise ValueError("its checksum is wrong")
        (state,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise ValueError(str(state))

    def save(self) -> None:
        """Save the sum in the transaction that changed the rows."""
        if self._value != self._saved:
            self._connection.execute("INSERT OR REPLACE INTO checksum VALUES (0, ?)", [self._value])

    def keep(self) -> None:
        """Note that the transaction is written."""
        self._saved = self._value

    def undo(self) -> None:
        """Note that the transaction is rolled back."""
        self._value = self._saved

    def _note(self, table: str, sign: int, *values: object) -> None:
        self._value = (self._value + sign * _crc(table, values)) % _MODULUS


def total(connection: sqlite3.Connection) -> int:
    """Return the checksum of all rows."""
    return (
        sum(
            _crc(table, row)
            for table in TABLES
            for row in connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own names
        )
        % _MODULUS
    )


def _crc(table: str, values: tuple[object, ...]) -> int:
    crc = crc32(table.encode())
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode()
        crc = crc32(data, crc32(b"%d " % len(data), crc))
    return crc


def _call(table: str, row: str, columns: list[str]) -> str:
    name, sign = {"N": ("NEW", 1), "O": ("OLD", -1)}[row]
    return (
        f"SELECT tres_note('{table}', {sign}, {', '.join(f'{name}.{each}' for each in columns)});"
    )
