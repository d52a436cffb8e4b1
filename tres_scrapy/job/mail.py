"""The links that a shard sends to others and receives from them, each exactly once.

A parcel is saved with the page that it comes from, and has a number that only grows. The sender
keeps it until the receiver has saved its links together with that number. So a parcel that comes
again, after a kill of either side or a lost answer, is recognised.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tres_scrapy.crawl.router import Packed


class Waiting(NamedTuple):
    """A parcel in the outbox."""

    number: int
    data: bytes


class Mail:
    """The outbox of a shard, and the number of the last parcel from and to each other shard."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._packed: list[Packed] = []  # parcels that are not saved yet
        self._arrived: dict[int, int] = {}  # by shard, parcels up to this number
        self.undo()

    def next(self, shard: int, after: int, most: int) -> list[Waiting]:
        """Return the first parcels for a shard after a number, at most so many."""
        query = "SELECT number, value FROM outbox WHERE shard = ? AND number > ? ORDER BY number"
        found = self._connection.execute(f"{query} LIMIT ?", (shard, after, most))
        return [Waiting(number, bytes(data)) for number, data in found]

    def arrived(self, shard: int, number: int) -> None:
        """Remove the parcels to a shard up to a number, with the next transaction."""
        self._arrived[shard] = max(number, self._arrived.get(shard, 0))

    def send(self, cursor: sqlite3.Cursor, packed: Sequence[Packed]) -> None:
        """Add parcels to the outbox in a transaction, with those of one that was rolled back."""
        self._packed += packed
        self._sends = True
        for shard, data in self._packed:
            self.sent[shard] += 1
            cursor.execute("INSERT INTO outbox VALUES (?, ?, ?)", (shard, self.sent[shard], data))
            self._note(cursor, shard)
        self.waiting += len(self._packed)

    def receive(self, cursor: sqlite3.Cursor, shard: int, number: int) -> None:
        """Note in a transaction that the links of a shard are saved up to a parcel's number."""
        self.received[shard] = number
        self._note(cursor, shard)

    def remove_arrived(self, cursor: sqlite3.Cursor) -> None:
        """Remove the parcels that have arrived."""
        for shard, number in self._arrived.items():
            cursor.execute("DELETE FROM outbox WHERE shard = ? AND number <= ?", (shard, number))
            self.waiting -= cursor.rowcount

    def keep(self) -> None:
        """Note that the transaction is written."""
        if self._sends:
            self._packed.clear()
        self._sends = False
        self._arrived.clear()

    def undo(self) -> None:
        """Read the counts again, for the transaction is rolled back."""
        self._sends = False
        found = self._connection.execute("SELECT shard, sent, received FROM peer").fetchall()
        self.sent = Counter({shard: sent for shard, sent, _ in found})
        self.received = Counter({shard: received for shard, _, received in found})
        (self.waiting,) = self._connection.execute("SELECT count(*) FROM outbox").fetchone()

    def _note(self, cursor: sqlite3.Cursor, shard: int) -> None:
        counts = shard, self.sent[shard], self.received[shard]
        cursor.execute("INSERT OR REPLACE INTO peer VALUES (?, ?, ?)", counts)
