"""Counts what the shards do, divides the page budget, passes on commands, and ends the crawl."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final

from tres_scrapy.cluster.budget import Budget
from tres_scrapy.cluster.message import Orders, Status
from tres_scrapy.cluster.register import Register
from tres_scrapy.live.state import CrawlState, Figures
from tres_scrapy.url.message import TresError

GONE: Final = 5.0  # seconds without a report after which a shard holds up no other
SLOW: Final = 2.0  # seconds after which a shard that begins no fetch is slow
PAGE_LIMIT: Final = "page_limit"
EXHAUSTED: Final = "frontier_exhausted"
FAILED: Final = "failed"

logger = logging.getLogger(__name__)


class StaleEpochError(TresError):
    """Raised when a process reports for a shard that another process owns by now."""


@dataclass(frozen=True)
class Overview:
    """The state of the whole crawl: the last status of each shard, and its age in seconds.

    `finish` is why the crawl ends, "" while it runs, and `error` a line about a failure.
    """

    statuses: Mapping[int, Status]
    ages: Mapping[int, float]
    total: int | None
    finish: str
    error: str
    shards: int = 0  # that there are

    @property
    def state(self) -> CrawlState:
        """The figures of the shards."""
        found = {shard: self._figures(shard) for shard in self.statuses}
        return CrawlState(found, self.total, self.shards)

    def gone(self) -> list[int]:
        """Return the shards that have not reported for a while."""
        return [shard for shard, age in self.ages.items() if age > GONE]

    def _figures(self, shard: int) -> Figures:
        status, age = self.statuses[shard], self.ages.get(shard)
        figures = {
            **status.figures,
            "pages": status.pages,
            "leased": status.leased,
            "last_q": status.value,
            "state": _in_words(status, age),
        }
        return figures if age is None else figures | {"report_age": age}


def _in_words(status: Status, age: float | None) -> str:
    """Return what a shard does, in a word or two."""
    if age is None or age > GONE:
        return "does not report"
    if not status.ready:
        return "starting"
    return "idle" if status.idle else "running"


class Coordinator:
    """The part of a crawl on many machines that there is once.

    Limits and epochs are in a file; all else is known again when every shard has reported. With
    `snapshots`, the file may be older than what the shards have done, so nothing is granted until
    all have reported; and the crawl ends when no shard can lose a page any more.
    """

    def __init__(
        self,
        register: Register,
        total: int | None,
        clock: Callable[[], float] = monotonic,
        *,
        snapshots: bool = False,
    ) -> None:
        self._register = register
        self._total = total
        self._budget = Budget(total, register.limits())
        if snapshots and total is not None:
            self._budget.limits = [total] * len(self._budget.limits)
        self._epochs = register.epochs()
        self._clock = clock
        self._statuses: dict[int, Status] = {}
        self._times: dict[int, float] = {}
        self._begun: dict[int, tuple[int, float]] = {}  # fetches, and since when so many
        self._slow: set[int] = set()  # shards whose hosts rest
        self._commands = register.commands()
        self._finish, self._error = register.end()
        self._quiet: tuple[object, set[int]] | None = None  # what was seen, and who confirmed it

    def begin(self, shard: int, least: int = 0) -> int:
        """Make the caller the owner of a shard; return its epoch, which is above `least`."""
        self._epochs[shard] = self._register.begin(shard, least)
        self._times.pop(shard, None)
        return self._epochs[shard]

    def report(self, status: Status, epoch: int) -> Orders:
        """Take the report of a shard and tell it what to do; raise StaleEpochError."""
        self.check(status.shard, epoch)
        shard = status.shard
        self._statuses[shard], self._times[shard] = status, self._clock()
        before = self._budget.limits[shard]
        slow = self._is_slow(status)
        others = [each for each in self._active() if each.shard != shard]
        limit = self._budget.ask(status, others, slow=slow)
        if limit != before:
            self._register.save_limits(self._budget.limits)
        reason = self._reason(shard) if not self._finish and self._knows_all() else ""
        if reason and all(each.settled for each in self._statuses.values()):
            self.end(reason)
        spare = self._budget.spare(status, others, slow=slow)
        new = tuple(each for each in self._commands if each.number > status.commands)
        return Orders(limit, spare, new, self._finish, settle=bool(reason))

    def closed(self, status: Status, epoch: int) -> None:
        """Take the last report of a shard that has ended; raise StaleEpochError."""
        self.check(status.shard, epoch)
        self._statuses[status.shard] = status

    def check(self, shard: int, epoch: int) -> None:
        """Raise StaleEpochError unless the caller owns a shard."""
        if epoch != self._epochs[shard]:
            raise StaleEpochError(
                f"shard {shard} has another owner: epoch {self._epochs[shard]}, not {epoch}"
            )

    def overtaken(self, shard: int, epoch: int) -> None:
        """End the crawl if the snapshots of a shard have an owner that is not known here."""
        if epoch == self._epochs[shard]:
            error = f"shard {shard}: its snapshots have another owner: was the crawl started twice?"
            self.end(FAILED, error)

    def command(self, name: str, value: str = "") -> None:
        """Pass a command on to all shards."""
        self._register.add_command(name, value)
        self._commands = self._register.commands()

    def end(self, reason: str, error: str = "") -> bool:
        """End the crawl, if it does not end yet; return True: so a remote caller was heard."""
        if not self._finish:
            self._register.save_end(reason, error)
            self._finish, self._error = reason, error
        return True

    def overview(self) -> Overview:
        """Return the state of the whole crawl."""
        now = self._clock()
        ages = {shard: now - time for shard, time in self._times.items()}
        end, shards = (self._finish, self._error), len(self._epochs)
        return Overview(dict(self._statuses), ages, self._total, *end, shards)

    def _is_slow(self, status: Status) -> bool:
        """Return whether a shard has had pages to fetch for a while, and begun none.

        It is slow until it begins one.
        """
        now, begun = self._clock(), status.pages + status.leased
        before, since = self._begun.get(status.shard, (None, now))
        if before != begun or (status.free <= 0 and status.shard not in self._slow):
            self._begun[status.shard] = begun, now
            self._slow.discard(status.shard)
        elif now - since > SLOW:
            self._slow.add(status.shard)
        return status.shard in self._slow

    def _active(self) -> list[Status]:
        """Return the shards that report and have something that they can fetch now."""
        now = self._clock()
        return [
            status
            for shard, status in self._statuses.items()
            if status.ready
            and not (status.idle or shard in self._slow)
            and now - self._times.get(shard, -GONE) <= GONE
        ]

    def _knows_all(self) -> bool:
        return len(self._statuses) == len(self._epochs) == len(self._times)

    def _reason(self, shard: int) -> str:
        """Return why the crawl ends after the report of a shard, "" if it goes on."""
        statuses = self._statuses.values()
        if self._total is not None and sum(each.pages for each in statuses) >= self._total:
            return PAGE_LIMIT
        seen = self._still()
        if seen is None:
            self._quiet = None
        elif self._quiet is None or self._quiet[0] != seen:
            self._quiet = seen, set()
        else:
            self._quiet[1].add(shard)
            if len(self._quiet[1]) == len(self._epochs):  # nothing was under way in between
                return EXHAUSTED
        return ""

    def _still(self) -> object | None:
        """Return what the shards have done if none has a link to fetch or to send, else None."""
        statuses = self._statuses
        if not all(each.ready and (each.idle or each.hopeless) for each in statuses.values()):
            return None
        for shard, status in statuses.items():
            for other, count in status.sent.items():
                if statuses[other].received.get(shard, 0) < count:
                    return None
        return [(each.shard, each.pages, tuple(each.sent.items())) for each in statuses.values()]
