"""What a shard asks of the other processes of a crawl; each call returns at once."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, Protocol

from tres_scrapy.cluster.status import Orders, Status
from tres_scrapy.job.mail import Waiting


class Version(NamedTuple):
    """Which version of the weights a shard has: the learner's run, and its count then."""

    run: int = 0
    version: int = 0


class Reply(NamedTuple):
    """The learner's answer: the number of the next lesson to send, and what it has learned.

    `taught` is empty if the shard did not ask, or has it all.
    """

    position: int
    seen: Version
    taught: bytes = b""


class Wire(Protocol):
    """The calls of one shard; a future fails if the other process is away, and is tried again."""

    def report(self, status: Status) -> Future[Orders]:
        """Report to the coordinator."""

    def deliver(self, shard: int, parcels: list[Waiting]) -> Future[int]:
        """Send parcels to another shard; the result is the number up to which it has all."""

    def teach(self, first: int, lessons: list[bytes], seen: Version | None) -> Future[Reply]:
        """Send lessons to the learner, from number `first` on; with `seen`, ask for weights."""
