"""The links that a shard sends to others and receives from them, each exactly once.

A batch is saved with the page that it comes from, and has a number that only grows. The sender
keeps it until the receiver has saved its links together with that number. So a batch that comes
again, after a kill of either side or a lost answer, is recognised.

A shard that is restored from a snapshot has forgotten the last batches that it sent. So with
snapshots the numbers of each owner of a shard begin above all numbers of the owners before. What a
receiver has saved after its last snapshot it may forget in the same way: it confirms only what a
snapshot holds, and the sender keeps the rest.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple

from tres_scrapy.cluster.message import Receipt
from tres_scrapy.cluster.router import PackedBatch

OWNER: Final = 32  # bits of a number below those that say which owner of a shard gave it
EVERY: Final = 2.0  # seconds between two deliveries to a shard
DELIVERED: Final = 200  # batches of one delivery
NEWS: Final = 0.1  # of the batches that a shard has: if more are new to it, it gets them at once
FULL_OUTBOX: Final = 400 * 2**20  # bytes that others may lose, above which no page is fetched
INQUIRY: Final = 5.0  # seconds between two questions about it


class NumberedBatch(NamedTuple):
    """A batch in the outbox."""

    number: int
    data: bytes


def count_of(number: int) -> int:
    """Return how many batches an owner has sent up to the one with a number."""
    return number % (1 << OWNER)


class Outbox:
    """The outbox of a shard, and the number of the last batch from and to each other shard.

    `waiting` batches of `size` bytes in all are in the outbox.
    """

    waiting: int
    size: int

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._packed: list[PackedBatch] = []  # batches that are not saved yet
        self._arrived: dict[int, int] = {}  # by shard, batches up to this number
        self._floor = 0  # the numbers of new batches are above it
        self.undo()

    def begin(self, epoch: int) -> None:
        """Give new batches numbers above those of all owners of the shard with a lower epoch."""
        self._floor = epoch << OWNER

    def next(self, shard: int, after: int, most: int) -> list[NumberedBatch]:
        """Return the first batches for a shard after a number, at most so many."""
        query = "SELECT number, value FROM outbox WHERE shard = ? AND number > ? ORDER BY number"
        found = self._connection.execute(f"{query} LIMIT ?", (shard, after, most))
        return [NumberedBatch(number, bytes(data)) for number, data in found]

    def arrived(self, shard: int, number: int) -> None:
        """Remove the batches to a shard up to a number, with the next transaction."""
        self._arrived[shard] = max(number, self._arrived.get(shard, 0))

    def send(self, cursor: sqlite3.Cursor, packed: Sequence[PackedBatch]) -> None:
        """Add batches to the outbox in a transaction, with those of one that was rolled back."""
        self._packed += packed
        self._sends = True
        for shard, data in self._packed:
            self.sent[shard] = max(self.sent[shard], self._floor) + 1
            cursor.execute("INSERT INTO outbox VALUES (?, ?, ?)", (shard, self.sent[shard], data))
            self._note(cursor, shard)
        self.waiting += len(self._packed)
        self.size += sum(len(data) for _, data in self._packed)

    def receive(self, cursor: sqlite3.Cursor, shard: int, number: int) -> None:
        """Note in a transaction that the links of a shard are saved up to a batch's number."""
        self.received[shard] = number
        self._note(cursor, shard)

    def remove_arrived(self, cursor: sqlite3.Cursor) -> None:
        """Remove the batches that have arrived."""
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


class SendSchedule:
    """Lets batches wait for others: a delivery costs much the same, whatever it holds.

    A shard that has few yet, as at the start of a crawl, does not wait for its next ones.
    """

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._times: dict[int, float] = {}  # of the last delivery to a shard

    def take_turn(self, shard: int, new: int, known: int, now: float) -> bool:
        """Return whether a shard that has the first `known` batches gets `new` ones; note when."""
        late = now - self._times.get(shard, -inf) >= self._every
        due = new > 0 and (late or new >= DELIVERED or new > NEWS * known)
        if due:
            self._times[shard] = now
        return due


class Delivery(NamedTuple):
    """Batches for a shard, which must have those up to the number `after`.

    Without batches it only asks which of the batches before the shard cannot lose any more.
    """

    after: int
    batches: list[NumberedBatch]


class Sender:
    """Sends each batch once, and again if its receiver has lost it."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._schedule = SendSchedule()
        self._sent: dict[int, int] = {}  # the last batch that another shard has
        self._durable: dict[int, int] = {}  # and that it cannot lose
        self._inquired: dict[int, float] = {}  # when it was asked

    @property
    def is_full(self) -> bool:
        """Whether the outbox holds so much that no more pages should be fetched."""
        return self._outbox.size > FULL_OUTBOX

    def next(self, shard: int, now: float) -> Delivery | None:
        """Return what is due to a shard at a time in seconds; raise ValueError if links are lost.

        They are if the shard has gone back to a time before batches that have left the outbox.
        """
        outbox, last = self._outbox, self._sent.get(shard, 0)
        new, known = outbox.sent[shard] - last, count_of(last)
        has_turn = self._schedule.take_turn(shard, new, known, now)
        batches = outbox.next(shard, last, DELIVERED) if has_turn else []
        if has_turn and not batches:  # all had arrived before this process began
            self._sent.setdefault(shard, outbox.sent[shard])
        first = batches[0].number if batches else 0
        after = max(last, first - 1 if count_of(first) > 1 else 0)
        if after > last and shard in self._sent:
            raise ValueError(f"shard {shard} has lost links: it needs batch {last + 1} again")
        return Delivery(after, batches) if batches or self._asks(shard, now) else None

    def arrived(self, shard: int, receipt: Receipt) -> bool:
        """Note what a shard has; return whether it cannot lose some that it could lose before.

        Those leave the outbox with the next transaction.
        """
        before = self._durable.get(shard, 0)
        self._sent[shard], self._durable[shard] = receipt
        self._outbox.arrived(shard, receipt.durable)
        return receipt.durable > before

    def _asks(self, shard: int, now: float) -> bool:
        if self._durable.get(shard, 0) >= self._sent.get(shard, 0):
            return False
        if now - self._inquired.get(shard, -inf) < INQUIRY:
            return False
        self._inquired[shard] = now
        return True
