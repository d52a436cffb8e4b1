"""One shard: a crawl of its own domains that exchanges links and lessons with the others."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property, partial
from time import monotonic
from typing import Any, Final

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy.cluster.actor_policy import ActorPolicy
from tres_scrapy.cluster.learner import NEWS
from tres_scrapy.cluster.link_batch import LinkBatch
from tres_scrapy.cluster.outbox import Outbox, Waiting
from tres_scrapy.cluster.sender import Sender
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.shard_keeper import ShardKeeper
from tres_scrapy.cluster.status import SNAPSHOT_ERROR, Command, Orders, Status
from tres_scrapy.cluster.transition import WeightUpdate
from tres_scrapy.cluster.wire import Receipt, Reply, Version, Wire
from tres_scrapy.config.config import Config
from tres_scrapy.config.parser import parted
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.downloader.wake import wake
from tres_scrapy.extensions.control import Control
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.live.steering import ControlError

PULSE: Final = 0.25  # seconds between two looks at what is due
REPORT: Final = 1.0  # seconds between two reports while there are pages to fetch
WEIGHTS: Final = 1.0  # seconds between two requests for weights
LESSONS: Final = 64  # of one call
SOON: Final = 16  # lessons that are sent at once
SETTLING: Final = 30.0  # seconds after which a seed that the store does not know was refused
BROKEN: Final = "shard_failed"
STALE: Final = "stale_epoch"

logger = logging.getLogger(__name__)


class Shard:
    """Gives a crawler its part in the crawl; all methods run in its reactor."""

    def __init__(
        self,
        crawler: Crawler,
        wire: Wire,
        number: int,
        count: int,
        keeper: ShardKeeper | None = None,
    ) -> None:
        self._crawler = crawler
        self._wire = wire
        self._number = number
        self._is_alone = count == 1
        self._requests = crawler.settings.getint("CONCURRENT_REQUESTS") or math.inf
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        self._under_way: set[object] = set()  # calls without an answer
        self._obeyed = 0  # commands
        self._lesson = 0  # the next to send
        self._seen = Version()
        self._asked = 0.0  # when weights were asked for last
        self._taught = self._is_broken = False
        self._keeper = keeper
        self._reported = 0.0  # when it reported last
        self._reason = ""
        self.last: Status | None = None  # when the crawl ended
        self._opened = self._measured_at = 0.0
        self._value = 1.0  # of the best links
        self._figures: dict[str, float | str] = {}
        self._seeds: list[str] = []  # of this shard, that the store does not know yet
        self._warned: set[object] = set()  # calls whose failure the log has named
        self._bytes = 0  # sent to other processes
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    def spider_opened(self, spider: Spider) -> None:
        """Fetch nothing until the coordinator grants pages."""
        self._crawl.granted = self._crawl.pages
        self._opened = monotonic()
        seeds = Config.of(self._crawler.settings).seed
        self._seeds = [url for url in seeds if self._owns(url)]
        if not self._is_alone:
            # what is confirmed to another shard must be on the disk
            self._journal.survive_power_cuts()
        if self._keeper is not None:
            if self._keeper.is_restored:
                logger.info("Restored from a snapshot after %d bookings", self._keeper.forks[-1][1])
            self._mail.begin(self._keeper.epoch)
            self._journal.note_lengths(self._keeper.outputs)
        self._session.listeners.append(self._booked)
        self._loop = create_looping_call(self._pulse)
        self._loop.start(PULSE, now=True)

    def spider_idle(self, spider: Spider) -> None:
        """Wait for links of other shards, and for pages, until the whole crawl ends."""
        if not self._reason:
            raise DontCloseSpider

    def spider_closed(self, spider: Spider) -> None:
        """Keep the last state, and report no more."""
        if self._keeper is not None:
            self._keeper.stop()
        if self._loop is not None:
            self._loop.stop()
            self._measured_at = 0.0  # measure all again
            self.last = self.status

    @property
    def status(self) -> Status:
        """The state of the shard."""
        crawl, mail, now = self._crawl, self._mail, monotonic()
        busy = self._session.busy_hosts()
        if now - self._measured_at >= PULSE:  # it takes milliseconds, and reports are frequent
            policy, self._measured_at = crawl.policy, now
            self._value = policy.worth(busy) if isinstance(policy, ActorPolicy) else 1.0
            self._figures = crawl.figures()
            if self._keeper is not None:
                self._figures["snapshot_age"] = self._keeper.age
                self._figures[SNAPSHOT_ERROR] = self._keeper.error
        return Status(
            self._number,
            crawl.pages,
            crawl.leased,
            crawl.granted,
            value=self._value,
            ready=self._is_ready(),
            idle=not crawl.leased and not crawl.store.pending,
            busy=crawl.leased >= self._requests or not crawl.store.may_be_ready(busy),
            requests=self._requests,
            hopeless=not crawl.leased and self._session.exhausted(now),
            sent=dict(mail.sent),
            received=dict(mail.received),
            settled=self._keeper is None or self._keeper.holds(self._journal.changes),
            commands=self._obeyed,
            figures={**self._figures, "outbox": mail.waiting, "bytes_sent": self._bytes},
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
        """Whether the shard takes parcels: it has begun, and is not told to end."""
        return self._loop is not None and not self._reason

    def receive(self, sender: int, after: int, parcels: list[Waiting]) -> Receipt:
        """Add the links of parcels that are new, unless one up to the number `after` is missing.

        A damaged parcel is logged.
        """
        last = self._mail.received[sender]
        new = [parcel for parcel in parcels if parcel.number > last >= after]
        if new:
            self._crawl.receive(_unpacked(sender, new))
            if not self._job.write(self._journal.receive, self._crawl, sender, new[-1].number):
                raise OSError("the links of another shard could not be saved")
            self._wake()
        received = self._mail.received[sender]
        return Receipt(received, self._keeper.durable(sender) if self._keeper else received)

    def end(self, reason: str) -> None:
        """End the crawl of this shard."""
        if not self._reason:
            self._reason = reason
            self._session.stop(reason)

    @cached_property
    def _session(self) -> CrawlSession:
        session = self._crawler.get_extension(CrawlSession)
        assert session is not None  # the add-on installs it
        return session

    @property
    def _job(self) -> Job:
        assert self._session.job is not None  # a shard has a JOBDIR
        return self._session.job

    @property
    def _journal(self) -> ShardJournal:
        journal: Any = self._job.journal  # that of a config with shards
        return journal  # type: ignore[no-any-return]

    @property
    def _mail(self) -> Outbox:
        return self._journal.outbox

    @cached_property
    def _sender(self) -> Sender:
        return Sender(self._mail, inquires=self._keeper is not None)

    @property
    def _crawl(self) -> Any:
        return self._session.crawl

    def _is_ready(self) -> bool:
        """Return whether the shard knows its seeds, and what the learner knows.

        The store refuses a seed whose domain is full or given up.
        """
        self._seeds = [url for url in self._seeds if not self._crawl.store.knows(url)]
        known = not self._seeds or monotonic() - self._opened > SETTLING
        return known and (self._taught or self._is_alone)

    def _owns(self, url: str) -> bool:
        return bool(self._crawl.owns(url))

    def _booked(self, booking: Booking, visit: Visit | None) -> None:
        """Report at once when no pages are left."""
        crawl = self._crawl
        if crawl.pages + crawl.leased >= crawl.granted:
            self._guarded(self._report)

    def _pulse(self) -> None:
        crawl, late = self._crawl, monotonic() - self._reported >= REPORT
        if late or crawl.pages + crawl.leased >= crawl.granted:
            self._guarded(self._report)
        if self._keeper is not None:
            self._guarded(self._keep)
        if not self._is_alone:
            self._guarded(self._teach)
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

    def _keep(self) -> None:
        """Take a snapshot if it is time; stop if another process takes those of this shard."""
        assert self._keeper is not None
        self._keeper.look(self._journal)
        if self._keeper.is_overtaken:
            logger.error("This process stops: its shard has another owner")
            self.end(STALE)

    def _report(self) -> None:
        if "report" not in self._under_way:
            self._reported = monotonic()
            self._call("report", partial(self._wire.report, self.status), self._obey)

    def _teach(self) -> None:
        policy, now = self._crawl.policy, monotonic()
        wants, new = now - self._asked >= WEIGHTS, policy.noted - self._lesson
        many = new >= SOON or new > NEWS * self._lesson  # of those the learner has
        if "teach" in self._under_way or not (wants or many):
            return
        lessons = policy.lessons(self._lesson, LESSONS)
        self._bytes += sum(map(len, lessons))
        self._asked = now if wants else self._asked
        teach = partial(self._wire.teach, self._lesson, lessons, self._seen, asks=wants)
        self._call("teach", teach, self._learn)

    def _learn(self, answer: Reply) -> None:
        self._lesson = answer.position
        if answer.taught:
            self._bytes += len(answer.taught)
            self._crawl.policy.take(WeightUpdate.unpacked(answer.taught))
            self._seen, self._taught = answer.seen, True

    def _deliver_all(self) -> None:
        for shard in self._mail.sent:
            self._deliver(shard)

    def _deliver(self, shard: int) -> None:
        if shard in self._under_way:
            return
        delivery = self._sender.next(shard, monotonic())
        if delivery is not None:
            self._bytes += sum(len(parcel.data) for parcel in delivery.parcels)
            deliver = partial(self._wire.deliver, shard, *delivery)
            self._call(shard, deliver, partial(self._arrived, shard))

    def _arrived(self, shard: int, receipt: Receipt) -> None:
        has_gone = self._sender.arrived(shard, receipt)
        if has_gone and self._sender.is_large:
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
        if orders.settle and self._keeper is not None:
            self._keeper.look(self._journal, at_once=True)
        if orders.finish:
            self.end(orders.finish)

    def _do(self, command: Command) -> None:
        control, value = Control(self._crawler, self._session), command.value
        try:
            if command.name == "add_seed":
                own = [url for url in parted(value) if self._owns(url)]
                said = control.add_seed(",".join(own)) if own else ""
            elif command.name == "change_max":
                said = control.change_max(value)
            else:
                said = getattr(control, command.name)()
        except ControlError as error:
            said = str(error)
        if said:
            logger.info("Command %s: %s", command.name, said)

    def _call(
        self, name: object, call: Callable[[], Future[Any]], answered: Callable[[Any], None]
    ) -> None:
        """Call another process unless the last such call is under way; it may be tried again."""
        if name in self._under_way:
            return
        self._under_way.add(name)
        call().add_done_callback(partial(self._in_reactor, name, answered))

    def _in_reactor(
        self, name: object, answered: Callable[[Any], None], future: Future[Any]
    ) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        threaded: Any = reactor
        threaded.callFromThread(self._answered, name, answered, future)

    def _answered(self, name: object, answered: Callable[[Any], None], future: Future[Any]) -> None:
        self._under_way.discard(name)
        error = future.exception()
        if error is None:
            self._guarded(partial(answered, future.result()))
        elif "StaleEpochError" in type(error).__name__:
            logger.error("This process stops: %s", error)
            self.end(STALE)
        elif "ValueError" in type(error).__name__ and name not in self._warned:
            self._warned.add(name)
            logger.error("The call %s fails again and again: %s", name, error)
        else:
            logger.debug("No answer to %s: %s", name, error)

    def _wake(self) -> None:
        if self._crawler.engine is not None:
            wake(self._crawler.engine)


def _unpacked(sender: int, parcels: list[Waiting]) -> list[LinkBatch]:
    """Return the contents of parcels, without those that are damaged."""
    found = []
    for number, data in parcels:
        try:
            found.append(LinkBatch.unpacked(data))
        except ValueError as error:
            logger.error("Parcel %d of shard %d is left out: %s", number, sender, error)
    return found
