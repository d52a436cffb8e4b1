"""Decides which parcels of its outbox a shard sends to each other shard, and when."""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from tres_scrapy.cluster.outbox import Outbox, Waiting, count_of
from tres_scrapy.cluster.send_schedule import MOST, SendSchedule
from tres_scrapy.cluster.wire import Receipt

FULL: Final = 100 * 2**20  # bytes that others do not have, above which no more pages are fetched
KEPT: Final = 4 * FULL  # the same for all that is kept until snapshots of others hold it
INQUIRY: Final = 5.0  # seconds between two questions about it


class Delivery(NamedTuple):
    """Parcels for a shard, which must have those up to the number `after`.

    Without parcels it only asks which of the parcels before the shard cannot lose any more.
    """

    after: int
    parcels: list[Waiting]


class Sender:
    """Sends each parcel once, and again if its receiver has lost it.

    `inquires` says whether a receiver may lose a parcel until a snapshot holds it, so that it must
    be asked later.
    """

    def __init__(self, mail: Outbox, *, inquires: bool) -> None:
        self._mail = mail
        self._inquires = inquires
        self._rhythm = SendSchedule()
        self._sent: dict[int, int] = {}  # the last parcel that another shard has
        self._durable: dict[int, int] = {}  # and that it cannot lose
        self._inquired: dict[int, float] = {}  # when it was asked

    @property
    def is_large(self) -> bool:
        """Whether the outbox holds so much that parcels which are safe leave it at once."""
        return self._mail.size > FULL

    @property
    def is_full(self) -> bool:
        """Whether the outbox holds so much that no more pages should be fetched."""
        if not self.is_large:
            return False
        mail = self._mail
        unknown = sum(mail.size_after(shard, self._sent.get(shard, 0)) for shard in mail.sent)
        return mail.size > KEPT or unknown > FULL

    def next(self, shard: int, now: float) -> Delivery | None:
        """Return what is due to a shard at a time in seconds; raise ValueError if links are lost.

        They are if the shard has gone back to a time before parcels that have left the outbox.
        """
        mail, last = self._mail, self._sent.get(shard, 0)
        new, known = mail.sent[shard] - last, count_of(last)
        has_turn = self._rhythm.take_turn(shard, new, known, now)
        parcels = mail.next(shard, last, MOST) if has_turn else []
        if has_turn and not parcels:  # all had arrived before this process began
            self._sent.setdefault(shard, mail.sent[shard])
        after = mail.before(shard, parcels[0].number) if parcels else 0
        if after > last and shard in self._sent:
            raise ValueError(f"shard {shard} has lost links: it needs parcel {last + 1} again")
        return Delivery(after, parcels) if parcels or self._asks(shard, now) else None

    def arrived(self, shard: int, receipt: Receipt) -> bool:
        """Note what a shard has; return whether it cannot lose some that it could lose before.

        Those leave the outbox with the next transaction.
        """
        before = self._durable.get(shard, 0)
        self._sent[shard], self._durable[shard] = receipt
        self._mail.arrived(shard, receipt.durable)
        return receipt.durable > before

    def _asks(self, shard: int, now: float) -> bool:
        if not self._inquires or self._durable.get(shard, 0) >= self._sent.get(shard, 0):
            return False
        if now - self._inquired.get(shard, -inf) < INQUIRY:
            return False
        self._inquired[shard] = now
        return True
