"""The processes of a crawl on many machines, as Ray actors.

Ray places them, starts them again when they die, and carries their calls. It keeps nothing: what
an actor must know after a restart is in the files of the job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeVar

import ray
from ray.exceptions import RayError

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.coordinator import FAILED, Coordinator, Overview
from tres_scrapy.cluster.learner import Learner
from tres_scrapy.cluster.learner_keeper import STATE, LearnerKeeper
from tres_scrapy.cluster.line import note_owner, take_over
from tres_scrapy.cluster.outbox import Waiting
from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.cluster.record_part import Part, Position, read_part
from tres_scrapy.cluster.register import Register
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.snapshot_store import SnapshotError, SnapshotStore
from tres_scrapy.cluster.status import Orders, Status
from tres_scrapy.cluster.wire import Receipt, Reply, Version
from tres_scrapy.report.record_file import IN_JOB
from tres_scrapy.report.record_path import SHARD
from tres_scrapy.run.job_file import NAME, JobError

if TYPE_CHECKING:
    from tres_scrapy.cluster.shard_keeper import ShardKeeper

COORDINATOR: Final = "coordinator"
KEEP: Final = 30.0  # seconds between two checkpoints of the learner
AGAIN: Final = 5.0  # seconds after which a learner without its snapshot tries again
FREE: Final = 15.0  # seconds to wait until the last owner of a file is gone
OWNER: Final = 120.0  # the same for the files of a shard, whose owner may be cut off from us
PATIENCE: Final = 60.0  # seconds to wait for the coordinator
ANSWER: Final = 10.0  # seconds in which parcels are taken
BY_USER: Final = "closespider_"  # finish reasons of limits that the user has set
THREADS: Final = 16  # calls at the same time

Opened = TypeVar("Opened")

logger = logging.getLogger(__name__)


class CoordinatorActor:
    """Holds the coordinator; one call at a time."""

    def __init__(self, plan: Plan) -> None:
        if not plan.snapshots:
            plan.require_shared()
        waits = partial(
            Register, plan.job, plan.shards, plan.identity, plan.run, snapshots=plan.snapshots
        )
        register = when_free(waits)
        self._coordinator = Coordinator(register, plan.pages, snapshots=bool(plan.snapshots))

    def begin(self, shard: int, least: int = 0) -> int:
        """Make the caller the owner of a shard; return its epoch, which is above `least`."""
        return self._coordinator.begin(shard, least)

    def report(self, status: Status, epoch: int) -> Orders:
        """Take the report of a shard and tell it what to do."""
        return self._coordinator.report(status, epoch)

    def closed(self, status: Status, epoch: int) -> None:
        """Take the last report of a shard that has ended."""
        self._coordinator.closed(status, epoch)

    def overtaken(self, shard: int, epoch: int) -> None:
        """Hear that the snapshots of a shard have another owner."""
        self._coordinator.overtaken(shard, epoch)

    def command(self, name: str, value: str = "") -> None:
        """Pass a command on to all shards."""
        self._coordinator.command(name, value)

    def end(self, reason: str, error: str = "") -> bool:
        """End the crawl; return True, so that the caller knows that it was heard."""
        self._coordinator.end(reason, error)
        return True

    def overview(self) -> Overview:
        """Return the state of the whole crawl."""
        return self._coordinator.overview()


class LearnerActor:
    """Holds the one learner, and keeps a checkpoint of it."""

    def __init__(self, plan: Plan, setup: PolicyInputs) -> None:
        plan = plan.here()
        self._file = plan.job / LEARNER / STATE
        self._keeper = _learner_keeper(plan, self._file) if plan.snapshots else None
        if self._keeper is None:
            plan.require_shared()
        self._teacher = Learner(setup, plan.shards)
        if self._file.exists():
            try:
                self._teacher.restore(self._file.read_bytes())
            except Exception as error:  # a file can be damaged in many ways
                logger.warning("%s is left out: %s; all is learned again", self._file, error)
                self._teacher = Learner(setup, plan.shards)
        self._run = int.from_bytes(os.urandom(6), "big")  # versions of another run do not count
        self._kept, self._kept_at = self._teacher.steps, monotonic()

    def teach(
        self,
        shard: int,
        first: int,
        lessons: list[bytes],
        seen: Version,
        asks: bool,
        *,
        forks: Sequence[tuple[int, int]] = (),
    ) -> Reply:
        """Learn the lessons of a shard; answer with what changed since it has `seen`."""
        teacher = self._teacher
        teacher.follow(shard, forks)
        teacher.learn(shard, first, lessons)
        if monotonic() - self._kept_at >= KEEP:
            self.keep()
        now, taught = Version(self._run, teacher.version, teacher.steps), b""
        if seen.run != self._run:
            if teacher.steps >= seen.lessons:  # until then the shard knows more
                taught = teacher.taught().packed()
        elif seen != now and (asks or teacher.has_news(seen.lessons)):
            taught = teacher.taught(seen.changes).packed()
        return Reply(teacher.positions[shard], now, taught)

    def end(self) -> None:
        """Write the last checkpoint, and a snapshot of it."""
        self.keep()
        if self._keeper is not None:
            self._keeper.finish()

    def keep(self) -> None:
        """Write a checkpoint, whole or not at all."""
        self._kept_at = monotonic()
        if self._teacher.steps == self._kept:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        with part.open("wb") as file:
            file.write(self._teacher.state())
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._file)
        self._kept = self._teacher.steps
        if self._keeper is not None:
            self._keeper.look()

    def figures(self) -> dict[str, int]:
        """Return the counts of the learner."""
        return {"lessons": self._teacher.steps, "hurried_lessons": self._teacher.hurried}


class ShardActor:
    """Runs the crawl of a shard in a thread, and takes the links that others send."""

    def __init__(self, plan: Plan, shard: int) -> None:
        self._given, self._plan = plan, plan
        self._number = shard
        self._shard: Any = None
        self._reactor: Any = None
        self._thread = threading.Thread(target=self._run, name=f"shard-{shard}", daemon=True)
        self._thread.start()

    def deliver(self, sender: int, after: int, parcels: list[Waiting]) -> Receipt:
        """Add the links of another shard, if all parcels up to the number `after` are here."""
        if self._shard is None or not self._shard.is_open:
            raise ConnectionError(f"shard {self._number} is starting or ending")
        answer: Future[Receipt] = Future()
        self._reactor.callFromThread(self._receive, answer, sender, after, parcels)
        return answer.result(timeout=ANSWER)

    def part(self, after: Position) -> Part | None:
        """Return what the record of the shard has after a position, None without a record."""
        path = self._plan.folder(self._number) / IN_JOB
        return read_part(path, after) if path.exists() else None

    def has_ended(self) -> bool:
        """Return whether the crawl of the shard is over."""
        return not self._thread.is_alive()

    def _receive(
        self, answer: Future[Receipt], sender: int, after: int, parcels: list[Waiting]
    ) -> None:
        try:
            answer.set_result(self._shard.receive(sender, after, parcels))
        except Exception as error:
            answer.set_exception(error)

    def _run(self) -> None:
        """Crawl, and report how it ended if the coordinator did not end it."""
        try:
            self._plan = self._given.here()
            keeper = self._keeper() if self._plan.snapshots else None
            epoch = keeper.epoch if keeper else _insist("begin", self._number)
            reason = self._crawl(epoch, keeper)
        except Exception as error:
            logger.exception("Shard %d cannot run", self._number)
            _insist("end", FAILED, f"shard {self._number}: {error or type(error).__name__}")
            return
        if reason is not None and reason.startswith(BY_USER):
            _insist("end", reason)
        elif reason is not None:
            log = self._plan.log(f"shard-{self._number}")
            _insist("end", FAILED, f"shard {self._number} ended ({reason}): see {log}")
        if keeper is not None and (keeper.is_overtaken or not self._shard.is_replaced):
            self._finish(keeper)

    def _finish(self, keeper: ShardKeeper) -> None:
        """Take the last snapshot of a shard whose crawl is over."""
        if keeper.is_overtaken:
            _insist("overtaken", self._number, keeper.epoch)
            return
        try:
            keeper.finish(self._plan.run)
        except Exception as error:  # the disk, the storage: the driver says what is missing
            logger.error("The last snapshot failed: %s", error)
        if keeper.is_overtaken:
            _insist("overtaken", self._number, keeper.epoch)

    def _keeper(self) -> ShardKeeper:
        """Become the owner of the shard's snapshots, and bring its folder to the last state."""
        from tres_scrapy.cluster.shard_keeper import ShardKeeper  # noqa: PLC0415 - loads Scrapy

        plan, number = self._plan, self._number
        store = SnapshotStore(plan.snapshots)
        if not store.holds(plan.run):
            raise SnapshotError(
                f"--snapshots {plan.snapshots} is another place on this node, or the crawl was "
                "started again elsewhere"
            )
        plan.log("any").parent.mkdir(parents=True, exist_ok=True)
        folder, snapshots = plan.folder(number), store.folder(f"{SHARD}{number}")
        if (folder / NAME).exists():
            when_free(partial(ShardJournal.check, folder, {}), OWNER)
        before = snapshots.highest()
        epoch = _insist("begin", number, before)
        note_owner(folder, epoch, before)
        snapshots.claim(epoch)
        line = take_over(folder, snapshots, epoch)
        return ShardKeeper(folder, snapshots, line, epoch, plan.interval)

    def _crawl(self, epoch: int, keeper: ShardKeeper | None) -> str | None:
        """Crawl until the coordinator ends it; return why it ended if it ended by itself."""
        plan, number = self._plan, self._number
        if keeper is None:
            plan.require_shared()
        when_free(partial(ShardJournal.check, plan.folder(number), {}), OWNER)
        asyncio.set_event_loop(asyncio.new_event_loop())
        # imported here: they load the reactor, which belongs to this thread
        from scrapy.crawler import AsyncCrawlerProcess  # noqa: PLC0415
        from scrapy.utils.project import get_project_settings  # noqa: PLC0415

        from tres_scrapy.cluster.shard import Shard  # noqa: PLC0415
        from tres_scrapy.spiders.tres import TresSpider  # noqa: PLC0415

        os.environ["SCRAPY_SETTINGS_MODULE"] = "tres_scrapy.settings"
        settings = get_project_settings()
        settings.setdict(plan.settings_of(number), priority="cmdline")
        process = AsyncCrawlerProcess(settings)
        crawler = process.create_crawler(TresSpider)
        wire = RayWire(number, epoch, keeper.forks if keeper else ())
        shard = Shard(crawler, wire, number, plan.shards, keeper)
        crawling = process.crawl(crawler, **plan.arguments_of(number))
        from twisted.internet import reactor  # noqa: PLC0415

        self._reactor, self._shard = reactor, shard
        process.start(install_signal_handlers=False)
        if crawling.done() and (error := crawling.exception()) is not None:
            raise error
        assert crawler.stats is not None
        if shard.last is not None and not shard.is_replaced:
            wire.close(shard.last)
        return None if shard.is_ordered else str(crawler.stats.get_value("finish_reason"))


def _learner_keeper(plan: Plan, file: Path) -> LearnerKeeper:
    """Bring the last checkpoint here; without the storage, try again unless this is the start.

    Ray does not start an actor again whose constructor fails, but one whose process ends.
    """
    try:
        return LearnerKeeper(plan, file)
    except SnapshotError as error:
        if not ray.get_runtime_context().was_current_actor_reconstructed:
            raise
        logger.error("The learner waits for its snapshot: %s", error)
        sleep(AGAIN)
        os._exit(1)


def _insist(method: str, *arguments: object) -> Any:
    """Call the coordinator until it answers; else end this process: Ray starts it again."""
    until = monotonic() + PATIENCE
    while monotonic() < until:
        try:
            return ray.get(getattr(ray.get_actor(COORDINATOR), method).remote(*arguments))
        except (RayError, ValueError) as error:  # ValueError: it is not known yet
            logger.debug("The coordinator is away: %s", error)
            sleep(0.5)
    os._exit(1)


def when_free(open_: Callable[[], Opened], seconds: float | None = None) -> Opened:
    """Open a file once no process of an earlier run, which is ending, uses it; raise JobError."""
    seconds = FREE if seconds is None else seconds
    until, waits = monotonic() + seconds, False
    while True:
        try:
            return open_()
        except JobError as error:
            if monotonic() > until or "is using" not in str(error):
                raise
            if not waits:
                waits = True
                logger.warning("%s: waiting up to %.0f s for it to end", error, seconds)
            sleep(0.5)


class RayWire:
    """The calls of one shard to the other actors, which are found by their names."""

    def __init__(self, shard: int, epoch: int, forks: Sequence[tuple[int, int]] = ()) -> None:
        self._shard = shard
        self._epoch = epoch
        self._forks = forks
        self._actors: dict[str, Any] = {}

    def report(self, status: Status) -> Future[Orders]:
        """Report to the coordinator."""
        return self._call(COORDINATOR, "report", status, self._epoch)

    def close(self, status: Status) -> None:
        """Send the coordinator the last report; it may be away."""
        with suppress(Exception):  # Ray raises many kinds
            self._call(COORDINATOR, "closed", status, self._epoch).result(timeout=ANSWER)

    def deliver(self, shard: int, after: int, parcels: list[Waiting]) -> Future[Receipt]:
        """Send parcels to another shard, which must have those up to the number `after`."""
        return self._call(f"shard-{shard}", "deliver", self._shard, after, parcels)

    def teach(
        self, first: int, lessons: list[bytes], seen: Version, *, asks: bool
    ) -> Future[Reply]:
        """Send lessons to the learner, from number `first` on, and ask for weights."""
        lesson = (self._shard, first, lessons, seen, asks)
        return self._call(LEARNER, "teach", *lesson, forks=self._forks)

    def _call(self, name: str, method: str, *arguments: object, **more: object) -> Future[Any]:
        """Call an actor; the future fails if the actor is away."""
        try:
            if name not in self._actors:
                self._actors[name] = ray.get_actor(name)
            remote = getattr(self._actors[name], method).remote
            future: Future[Any] = remote(*arguments, **more).future()
        except Exception as error:  # Ray raises many kinds
            future = Future()
            future.set_exception(ConnectionError(f"{name}: {error}"))
        return future
