"""What the processes of a crawl in shards tell one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tres_scrapy.cluster.transition import WeightUpdate

SNAPSHOT_ERROR: Final = "snapshot_error"  # a figure: why the last snapshot failed
UNLIMITED: Final = 2**62  # pages of a crawl without a page budget


@dataclass(frozen=True)
class Status:
    """The state of a shard when it reports.

    `limit` is the number of pages that it may fetch in all. A shard is `ready` once it knows what
    the learner knows, `idle` while it has nothing to fetch, `busy` while it could send no request
    now, and `hopeless` while all its hosts rest and none has ever answered. `value` is Q of the
    best links that it could fetch now; while it is busy, of those that it may fetch soon. It has
    at most so many `requests` under way.
    `sent` and `received` are, by other shard, the number of the last batch. A shard is `settled`
    if it cannot lose anything of this state. `commands` is the number of the last command that it
    has obeyed, `figures` are shown to people.
    """

    shard: int
    pages: int = 0
    leased: int = 0
    limit: int = 0
    value: float = 1.0
    ready: bool = False
    idle: bool = False
    busy: bool = False
    hopeless: bool = False
    requests: float = 16
    sent: Mapping[int, int] = field(default_factory=dict)
    received: Mapping[int, int] = field(default_factory=dict)
    settled: bool = True
    commands: int = 0
    figures: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """The pages that it may fetch beside those that it is fetching."""
        return self.limit - self.pages - self.leased


@dataclass(frozen=True)
class Command:
    """What the user asks of all shards, by the name of a method of Steering, and its value."""

    number: int
    name: str
    value: str = ""


@dataclass(frozen=True)
class Orders:
    """What a shard is told: its limit of pages, new commands, and why to end, "" to go on.

    With `spare`, it gives back what it may fetch beyond so many free pages. With `settle`, it takes
    a snapshot now.
    """

    limit: int
    spare: int | None = None
    commands: tuple[Command, ...] = ()
    finish: str = ""
    settle: bool = False


class Version(NamedTuple):
    """Which weights a shard has: the learner's run, its changes and its transitions then."""

    run: int = 0
    changes: int = 0
    transitions: int = 0


class Reply(NamedTuple):
    """The learner's answer: the number of the next transition to send, and what it has learned.

    `update` is None if the shard has it all, or has asked for nothing and little is new.
    """

    position: int
    seen: Version
    update: WeightUpdate | None = None


class Receipt(NamedTuple):
    """The numbers of the last batches of a sender that a shard has, and that it cannot lose."""

    received: int
    durable: int
