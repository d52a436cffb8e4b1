"""One shard: a crawl of its own domains that exchanges links and transitions with the others."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy.cluster.actor_policy import ActorPolicy
from tres_scrapy.cluster.call import Calls
from tres_scrapy.cluster.learner import NEWS
from tres_scrapy.cluster.message import (
    SNAPSHOT_ERROR,
    Command,
    Orders,
    Receipt,
    Reply,
    Status,
    Version,
)
from tres_scrapy.cluster.outbox import NumberedBatch, Outbox, Sender
from tres_scrapy.cluster.router import LinkBatch
from tres_scrapy.cluster.shard_crawl import ShardCrawl
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.snapshot import ShardSnapshots
from tres_scrapy.config.config import Config
from tres_scrapy.config.parser import parted
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.downloader.engine import requests_under_way, wake
from tres_scrapy.export.archive import ENDING
from tres_scrapy.export.csv_table import PAGES
from tres_scrapy.export.output_file import beside
from tres_scrapy.extensions.control import Control
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.live.steering import ControlError

if TYPE_CHECKING:
    from tres_scrapy.cluster.actor import RayWire

PULSE: Final = 0.25  # seconds between two looks at what is due
REPORT: Final = 1.0  # seconds between two reports while there are pages to fetch
WEIGHTS: Final = 1.0  # seconds between two requests for weights
MOST_TRANSITIONS: Final = 64  # of one call
SOON: Final = 16  # transitions that are sent at once
SETTLING: Final = 30.0  # seconds after which a seed that the store does not know was refused
BROKEN: Final = "shard_failed"
STALE: Final = "stale_epoch"

logger = logging.getLogger(__name__)


class Shard:
    """Gives a crawler its part in the crawl; all methods run in its reactor."""

    def __init__(
        self,
        crawler: Crawler,
        wire: RayWire,
        number: int,
        count: int,
        snapshots: ShardSnapshots | None = None,
    ) -> None:
        self._crawler = crawler
        self._wire = wire
        self._number = number
        self._is_alone = count == 1
        self._requests = crawler.settings.getint("CONCURRENT_REQUESTS") or math.inf
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        self._calls = Calls(self._guarded, self._end_replaced)
        self._obeyed = 0  # commands
        self._next_transition = 0  # the next to send
        self._seen = Version()
        self._asked = 0.0  # when weights were asked for last
        self._has_weights = self._is_broken = False
        self._snapshots = snapshots
        self._reported = 0.0  # when it reported last
        self._reason = ""
        self.last: Status | None = None  # when the crawl ended
        self._opened = self._measured_at = 0.0
        self._value = 1.0  # of the best links
        self._figures: dict[str, float | str] = {}
        self._seeds: list[str] = []  # of this shard, that the store does not know yet
        self._bytes = 0  # sent to other processes
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    def spider_opened(self, spider: Spider) -> None:
        """Fetch nothing until the coordinator grants pages."""
        self._crawl.granted = self._crawl.pages
        self._opened = monotonic()
        seeds = Config.of(self._crawler.settings).seed
        self._seeds = [url for url in seeds if self._crawl.owns(url)]
        if not self._is_alone:
            # what is confirmed to another shard must be on the disk
            self._journal.survive_power_cuts()
        if self._snapshots is not None:
            self._outbox.begin(self._snapshots.epoch)
        self._session.listeners.append(self._booked)
        self._loop = create_looping_call(self._pulse)
        self._loop.start(PULSE, now=True)

    def spider_idle(self, spider: Spider) -> None:
        """Wait for links of other shards, and for pages, until the whole crawl ends."""
        if not self._reason:
            raise DontCloseSpider

    def spider_closed(self, spider: Spider) -> None:
        """Keep the last state, and report no more."""
        if self._snapshots is not None:
            self._snapshots.wait()
        if self._loop is not None:
            self._loop.stop()
            self._measured_at = 0.0  # measure all again
            self.last = self.status

    @property
    def status(self) -> Status:
        """The state of the shard."""
        crawl, outbox, now = self._crawl, self._outbox, monotonic()
        if now - self._measured_at >= PULSE:  # it takes milliseconds, and reports are frequent
            policy, self._measured_at = crawl.policy, now
            self._value = policy.worth(crawl.available) if isinstance(policy, ActorPolicy) else 1.0
            self._figures = crawl.figures()
            if self._snapshots is not None:
                self._figures["snapshot_age"] = self._snapshots.age
                self._figures[SNAPSHOT_ERROR] = self._snapshots.error
        return Status(
            self._number,
            crawl.pages,
            crawl.leased,
            crawl.granted,
            value=self._value,
            ready=self._is_ready(),
            idle=not crawl.leased and not crawl.store.pending,
            busy=crawl.leased >= self._requests or not crawl.store.may_be_ready(crawl.available),
            requests=self._requests,
            hopeless=not crawl.leased and self._session.health.exhausted(crawl.leased, now),
            sent=dict(outbox.sent),
            received=dict(outbox.received),
            settled=self._snapshots is None or self._snapshots.holds(self._journal),
            commands=self._obeyed,
            figures={
                **self._figures,
                "under_way": self._under_way,
                "outbox": outbox.waiting,
                "bytes_sent": self._bytes,
            },
        )

    @property
    def is_ordered(self) -> bool:
        """Whether the shard ends because the coordinator, or a newer owner, wants it."""
        return bool(self._reason)

    @property
    def is_replaced(self) -> bool:
        """Whether the shard ends because it has a newer owner."""
        return self._reason == STALE

    @property
    def is_open(self) -> bool:
        """Whether the shard takes batches: it has begun, and is not told to end."""
        return self._loop is not None and not self._reason

    def receive(self, sender: int, after: int, batches: list[NumberedBatch]) -> Receipt:
        """Add the links of batches that are new, unless one up to the number `after` is missing.

        A damaged batch is logged.
        """
        last = self._outbox.received[sender]
        new = [batch for batch in batches if batch.number > last >= after]
        if new:
            self._crawl.receive(_unpacked(sender, new))
            if not self._job.write(self._journal.receive, self._crawl, sender, new[-1].number):
                raise OSError("the links of another shard could not be saved")
            self._wake()
        received = self._outbox.received[sender]
        return Receipt(received, self._snapshots.durable(sender) if self._snapshots else received)

    def end(self, reason: str) -> None:
        """End the crawl of this shard."""
        if not self._reason:
            self._reason = reason
            self._session.stop(reason)

    @cached_property
    def _session(self) -> CrawlSession:
        return CrawlSession.of(self._crawler)

    @property
    def _job(self) -> Job:
        assert self._session.job is not None  # a shard has a JOBDIR
        return self._session.job

    @property
    def _journal(self) -> ShardJournal:
        return cast("ShardJournal", self._job.journal)

    @property
    def _outbox(self) -> Outbox:
        return self._journal.outbox

    @cached_property
    def _sender(self) -> Sender:
        return Sender(self._outbox)

    @property
    def _crawl(self) -> ShardCrawl:
        return cast("ShardCrawl", self._session.crawl)

    @property
    def _policy(self) -> ActorPolicy:
        return cast("ActorPolicy", self._crawl.policy)  # of a shard that is not alone

    def _is_ready(self) -> bool:
        """Return whether the shard knows its seeds, and what the learner knows.

        The store refuses a seed whose domain is full or given up.
        """
        self._seeds = [url for url in self._seeds if not self._crawl.store.closure.knows(url)]
        known = not self._seeds or monotonic() - self._opened > SETTLING
        return known and (self._has_weights or self._is_alone)

    def _booked(self, booking: Booking) -> None:
        """Report at once when no pages are left."""
        crawl = self._crawl
        if crawl.pages + crawl.leased >= crawl.granted:
            self._guarded(self._report)

    def _pulse(self) -> None:
        crawl, late = self._crawl, monotonic() - self._reported >= REPORT
        if late or crawl.pages + crawl.leased >= crawl.granted:
            self._guarded(self._report)
        if self._snapshots is not None:
            self._guarded(partial(self._take_snapshot, at_once=False))
        if not self._is_alone:
            self._guarded(self._send_transitions)
            self._guarded(self._deliver_all)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Act, unless the job has failed; end the shard on an error that nothing else catches."""
        if self._job.failed or self._reason or self._is_broken:
            return
        try:
            act()
        except Exception:
            logger.exception("This shard cannot go on")
            self._is_broken = True
            self._session.stop(BROKEN)

    def _take_snapshot(self, *, at_once: bool) -> None:
        """Take a snapshot if it is time; stop if another process takes those of this shard."""
        assert self._snapshots is not None
        if self._snapshots.is_due(self._journal, at_once=at_once):
            output = self._session.output
            if self._job.write(self._journal.commit):  # that items are exported
                files = output, beside(output, PAGES), beside(output, ENDING)
                self._snapshots.take(self._journal, files)
        if self._snapshots.is_overtaken:
            self._end_replaced("its shard has another owner")

    def _end_replaced(self, why: object) -> None:
        logger.error("This process stops: %s", why)
        self.end(STALE)

    def _report(self) -> None:
        if "report" not in self._calls.under_way:
            self._reported = monotonic()
            self._calls.make("report", partial(self._wire.report, self.status), self._obey)

    def _send_transitions(self) -> None:
        policy, now = self._policy, monotonic()
        wants, new = now - self._asked >= WEIGHTS, policy.noted - self._next_transition
        many = new >= SOON or new > NEWS * self._next_transition  # of those the learner has
        if "learn" in self._calls.under_way or not (wants or many):
            return
        transitions = policy.transitions(self._next_transition, MOST_TRANSITIONS)
        self._bytes += sum(map(len, transitions))
        self._asked = now if wants else self._asked
        learn = partial(
            self._wire.learn, self._next_transition, transitions, self._seen, asks=wants
        )
        self._calls.make("learn", learn, self._take_update)

    def _take_update(self, answer: Reply) -> None:
        self._next_transition = answer.position
        if answer.update is not None:
            self._bytes += answer.update.size
            self._policy.take(answer.update)
            self._seen, self._has_weights = answer.seen, True

    def _deliver_all(self) -> None:
        for shard in self._outbox.sent:
            self._deliver(shard)

    def _deliver(self, shard: int) -> None:
        if shard in self._calls.under_way:
            return
        delivery = self._sender.next(shard, monotonic())
        if delivery is not None:
            self._bytes += sum(len(batch.data) for batch in delivery.batches)
            deliver = partial(self._wire.deliver, shard, *delivery)
            self._calls.make(shard, deliver, partial(self._arrived, shard))

    def _arrived(self, shard: int, receipt: Receipt) -> None:
        has_gone = self._sender.arrived(shard, receipt)
        if has_gone and self._sender.is_full:
            # removes them: a crawl that waits books nothing
            self._job.write(self._journal.save, self._crawl)
        self._deliver(shard)  # the next ones

    def _obey(self, orders: Orders) -> None:
        crawl = self._crawl
        for command in orders.commands:
            self._obeyed = command.number
            self._do(command)
        held = crawl.pages + crawl.leased
        limit = held if self._sender.is_full else orders.limit
        if orders.spare is not None:
            limit = min(limit, held + orders.spare)
        if limit > crawl.granted:
            crawl.granted = limit
            self._wake()
        crawl.granted = max(held, min(crawl.granted, limit))
        if orders.settle and self._snapshots is not None:
            self._take_snapshot(at_once=True)
        if orders.finish:
            self.end(orders.finish)

    def _do(self, command: Command) -> None:
        control, value = Control(self._crawler, self._session), command.value
        try:
            if command.name == "add_seed":
                own = [url for url in parted(value) if self._crawl.owns(url)]
                said = control.add_seed(",".join(own)) if own else ""
            elif command.name == "change_max":
                said = control.change_max(value)
            else:
                said = getattr(control, command.name)()
        except ControlError as error:
            said = str(error)
        if said:
            logger.info("Command %s: %s", command.name, said)

    @property
    def _under_way(self) -> int:
        engine = self._crawler.engine
        return 0 if engine is None else requests_under_way(engine)

    def _wake(self) -> None:
        if self._crawler.engine is not None:
            wake(self._crawler.engine)


def _unpacked(sender: int, batches: list[NumberedBatch]) -> list[LinkBatch]:
    """Return the contents of batches, without those that are damaged."""
    found = []
    for number, data in batches:
        try:
            found.append(LinkBatch.unpacked(data))
        except ValueError as error:
            logger.error("Batch %d of shard %d is left out: %s", number, sender, error)
    return found
