"""The links that a shard sends to others and receives from them, each exactly once.

A parcel is saved with the page that it comes from, and has a number that only grows. The sender
keeps it until the receiver has saved its links together with that number. So a parcel that comes
again, after a kill of either side or a lost answer, is recognised.

A shard that is restored from a snapshot has forgotten the last parcels that it sent. So with
snapshots the numbers of each owner of a shard begin above all numbers of the owners before. What a
receiver has saved after its last snapshot it may forget in the same way: it confirms only what a
snapshot holds, and the sender keeps the rest.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from tres_scrapy.cluster.router import Packed

OWNER: Final = 32  # bits of a number below those that say which owner of a shard gave it


class Waiting(NamedTuple):
    """A parcel in the outbox."""

    number: int
    data: bytes


def count_of(number: int) -> int:
    """Return how many parcels an owner has sent up to the one with a number."""
    return number % (1 << OWNER)


class Outbox:
    """The outbox of a shard, and the number of the last parcel from and to each other shard.

    `waiting` parcels of `size` bytes in all are in the outbox.
    """

    waiting: int
    size: int

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._packed: list[Packed] = []  # parcels that are not saved yet
        self._arrived: dict[int, int] = {}  # by shard, parcels up to this number
        self._floor = 0  # the numbers of new parcels are above it
        self.undo()

    def begin(self, epoch: int) -> None:
        """Give new parcels numbers above those of all owners of the shard with a lower epoch."""
        self._floor = epoch << OWNER

    def next(self, shard: int, after: int, most: int) -> list[Waiting]:
        """Return the first parcels for a shard after a number, at most so many."""
        query = "SELECT number, value FROM outbox WHERE shard = ? AND number > ? ORDER BY number"
        found = self._connection.execute(f"{query} LIMIT ?", (shard, after, most))
        return [Waiting(number, bytes(data)) for number, data in found]

    def before(self, shard: int, number: int) -> int:
        """Return the number of the parcel to a shard before a number, 0 if that is not known.

        The shard must have that parcel before it takes this one.
        """
        if (number - 1) % (1 << OWNER):
            return number - 1
        query = "SELECT max(number) FROM outbox WHERE shard = ? AND number < ?"
        (found,) = self._connection.execute(query, (shard, number)).fetchone()
        return found or 0

    def size_after(self, shard: int, number: int) -> int:
        """Return the bytes of the parcels to a shard with numbers above one."""
        query = "SELECT coalesce(sum(length(value)), 0) FROM outbox WHERE shard = ? AND number > ?"
        return int(self._connection.execute(query, (shard, number)).fetchone()[0])

    def arrived(self, shard: int, number: int) -> None:
        """Remove the parcels to a shard up to a number, with the next transaction."""
        self._arrived[shard] = max(number, self._arrived.get(shard, 0))

    def send(self, cursor: sqlite3.Cursor, packed: Sequence[Packed]) -> None:
        """Add parcels to the outbox in a transaction, with those of one that was rolled back."""
        self._packed += packed
        self._sends = True
        for shard, data in self._packed:
            self.sent[shard] = max(self.sent[shard], self._floor) + 1
            cursor.execute("INSERT INTO outbox VALUES (?, ?, ?)", (shard, self.sent[shard], data))
            self._note(cursor, shard)
        self.waiting += len(self._packed)
        self.size += sum(len(data) for _, data in self._packed)

    def receive(self, cursor: sqlite3.Cursor, shard: int, number: int) -> None:
        """Note in a transaction that the links of a shard are saved up to a parcel's number."""
        self.received[shard] = number
        self._note(cursor, shard)

    def remove_arrived(self, cursor: sqlite3.Cursor) -> None:
        """Remove the parcels that have arrived."""
        measure = "SELECT coalesce(sum(length(value)), 0) FROM outbox"
        for last in self._arrived.items():
            (size,) = cursor.execute(f"{measure} WHERE shard = ? AND number <= ?", last).fetchone()
            cursor.execute("DELETE FROM outbox WHERE shard = ? AND number <= ?", last)
            self.waiting -= cursor.rowcount
            self.size -= size

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
        query = "SELECT count(*), coalesce(sum(length(value)), 0) FROM outbox"
        self.waiting, self.size = self._connection.execute(query).fetchone()

    def _note(self, cursor: sqlite3.Cursor, shard: int) -> None:
        counts = shard, self.sent[shard], self.received[shard]
        cursor.execute("INSERT OR REPLACE INTO peer VALUES (?, ?, ?)", counts)
