"""What a shard asks of the other processes of a crawl; each call returns at once."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, Protocol

from tres_scrapy.cluster.outbox import Waiting
from tres_scrapy.cluster.status import Orders, Status


class Version(NamedTuple):
    """Which weights a shard has: the learner's run, and its counts of changes and lessons then."""

    run: int = 0
    changes: int = 0
    lessons: int = 0


class Reply(NamedTuple):
    """The learner's answer: the number of the next lesson to send, and what it has learned.

    `taught` is empty if the shard has it all, or has asked for nothing and little is new.
    """

    position: int
    seen: Version
    taught: bytes = b""


class Receipt(NamedTuple):
    """The numbers of the last parcels of a sender that a shard has, and that it cannot lose."""

    received: int
    durable: int


class Wire(Protocol):
    """The calls of one shard; a future fails if the other process is away, and is tried again."""

    def report(self, status: Status) -> Future[Orders]:
        """Report to the coordinator."""

    def deliver(self, shard: int, after: int, parcels: list[Waiting]) -> Future[Receipt]:
        """Send parcels to another shard, which must have those up to the number `after`."""

    def teach(
        self, first: int, lessons: list[bytes], seen: Version, *, asks: bool
    ) -> Future[Reply]:
        """Send lessons to the learner, from number `first` on, and ask for weights."""
