"""The processes of a crawl on many machines, as Ray actors.

Ray places them, starts them again when they die, and carries their calls. It keeps nothing: what
an actor must know after a restart is in the files of the job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from time import monotonic, sleep
from typing import Any, Final, TypeVar

import ray

from tres_scrapy.agent.teacher import Teacher
from tres_scrapy.cluster.coordinator import FAILED, Coordinator, Overview
from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.cluster.register import Register
from tres_scrapy.cluster.status import Orders, Status
from tres_scrapy.cluster.wire import Reply, Version
from tres_scrapy.crawl.setup import Setup
from tres_scrapy.job.job_file import JobError
from tres_scrapy.job.journal import check_job
from tres_scrapy.job.mail import Waiting

COORDINATOR: Final = "coordinator"
KEEP: Final = 30.0  # seconds between two checkpoints of the learner
FREE: Final = 15.0  # seconds to wait until the last owner of a file is gone
THREADS: Final = 16  # calls at the same time

Opened = TypeVar("Opened")

logger = logging.getLogger(__name__)


class CoordinatorActor:
    """Holds the coordinator; one call at a time."""

    def __init__(self, plan: Plan) -> None:
        waits = partial(Register, plan.job, plan.shards, plan.identity, plan.run)
        register = _when_free(waits)
        self._coordinator = Coordinator(register, plan.pages)

    def begin(self, shard: int) -> int:
        """Make the caller the owner of a shard; return its epoch."""
        return self._coordinator.begin(shard)

    def report(self, status: Status, epoch: int) -> Orders:
        """Take the report of a shard and tell it what to do."""
        return self._coordinator.report(status, epoch)

    def command(self, name: str, value: str = "") -> None:
        """Pass a command on to all shards."""
        self._coordinator.command(name, value)

    def end(self, reason: str, error: str = "") -> None:
        """End the crawl."""
        self._coordinator.end(reason, error)

    def overview(self) -> Overview:
        """Return the state of the whole crawl."""
        return self._coordinator.overview()


class LearnerActor:
    """Holds the one learner, and keeps a checkpoint of it."""

    def __init__(self, plan: Plan, setup: Setup) -> None:
        self._file = plan.job / LEARNER / "state.safetensors"
        self._teacher = Teacher(setup, plan.shards)
        if self._file.exists():
            self._teacher.restore(self._file.read_bytes())
        self._run = int.from_bytes(os.urandom(6), "big")  # versions of another run do not count
        self._kept, self._kept_at = self._teacher.steps, monotonic()

    def teach(self, shard: int, first: int, lessons: list[bytes], seen: Version | None) -> Reply:
        """Learn the lessons of a shard; answer with what changed since it has `seen`."""
        teacher = self._teacher
        teacher.learn(shard, first, lessons)
        if monotonic() - self._kept_at >= KEEP:
            self.keep()
        now, taught = Version(self._run, teacher.version), b""
        if seen is not None:
            taught = teacher.taught(seen.version if seen.run == self._run else 0).packed()
        return Reply(teacher.positions[shard], now, taught)

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

    def figures(self) -> dict[str, int]:
        """Return the counts of the learner."""
        return {"lessons": self._teacher.steps, "hurried_lessons": self._teacher.hurried}


class ShardActor:
    """Runs the crawl of a shard in a thread, and takes the links that others send."""

    def __init__(self, plan: Plan, shard: int) -> None:
        self._plan = plan
        self._number = shard
        self._shard: Any = None
        self._reactor: Any = None
        self._thread = threading.Thread(target=self._run, name=f"shard-{shard}", daemon=True)
        self._thread.start()

    def deliver(self, sender: int, parcels: list[Waiting]) -> int:
        """Add the links of another shard; return the number up to which all are saved."""
        if self._shard is None:
            raise RuntimeError(f"shard {self._number} is starting")
        answer: Future[int] = Future()
        self._reactor.callFromThread(self._receive, answer, sender, parcels)
        return answer.result(timeout=60)

    def has_ended(self) -> bool:
        """Return whether the crawl of the shard is over."""
        return not self._thread.is_alive()

    def _receive(self, answer: Future[int], sender: int, parcels: list[Waiting]) -> None:
        try:
            answer.set_result(self._shard.receive(sender, parcels))
        except Exception as error:
            answer.set_exception(error)

    def _run(self) -> None:
        coordinator = ray.get_actor(COORDINATOR)
        try:
            _when_free(partial(check_job, self._plan.folder(self._number), {}))
            begun: Any = coordinator.begin.remote(self._number)
            reason = self._crawl(ray.get(begun))
            if reason is not None:
                said = f"shard {self._number} ended ({reason}): see its log"
                ray.get(coordinator.end.remote(FAILED, said))
        except Exception as error:
            logger.exception("Shard %d cannot run", self._number)
            message = f"shard {self._number}: {type(error).__name__}: {error}"
            ray.get(coordinator.end.remote(FAILED, message))

    def _crawl(self, epoch: int) -> str | None:
        """Crawl until the coordinator ends it; return why it ended if it ended by itself."""
        asyncio.set_event_loop(asyncio.new_event_loop())
        # imported here: they load the reactor, which belongs to this thread
        from scrapy.crawler import CrawlerProcess  # noqa: PLC0415
        from scrapy.utils.project import get_project_settings  # noqa: PLC0415

        from tres_scrapy.cluster.shard import Shard  # noqa: PLC0415
        from tres_scrapy.spiders.tres import TresSpider  # noqa: PLC0415

        self._plan.log("any").parent.mkdir(parents=True, exist_ok=True)
        os.environ["SCRAPY_SETTINGS_MODULE"] = "tres_scrapy.settings"
        settings = get_project_settings()
        settings.setdict(self._plan.settings_of(self._number), priority="cmdline")
        process = CrawlerProcess(settings)
        crawler = process.create_crawler(TresSpider)
        wire = RayWire(self._number, epoch, self._plan.shards)
        shard = Shard(crawler, wire, self._number, self._plan.shards)
        crawling = process.crawl(crawler, **self._plan.arguments_of(self._number))
        from twisted.internet import reactor  # noqa: PLC0415

        self._reactor, self._shard = reactor, shard
        process.start(install_signal_handlers=False)
        if isinstance(crawling, asyncio.Task) and crawling.done() and crawling.exception():
            raise crawling.exception() or RuntimeError
        assert crawler.stats is not None
        return None if shard.is_ordered else str(crawler.stats.get_value("finish_reason"))


def _when_free(open_: Callable[[], Opened]) -> Opened:
    """Open a file once no process of an earlier run, which is ending, uses it; raise JobError."""
    until = monotonic() + FREE
    while True:
        try:
            return open_()
        except JobError as error:
            if monotonic() > until or "is using" not in str(error):
                raise
            sleep(0.5)


class RayWire:
    """The calls of one shard to the other actors, which are found by their names."""

    def __init__(self, shard: int, epoch: int, shards: int) -> None:
        self._shard = shard
        self._epoch = epoch
        self._coordinator = ray.get_actor(COORDINATOR)
        self._learner = ray.get_actor(LEARNER) if shards > 1 else None
        self._others: dict[int, Any] = {}

    def report(self, status: Status) -> Future[Orders]:
        """Report to the coordinator."""
        return _future(self._coordinator.report, status, self._epoch)

    def deliver(self, shard: int, parcels: list[Waiting]) -> Future[int]:
        """Send parcels to another shard; the result is the number up to which it has all."""
        if shard not in self._others:
            self._others[shard] = ray.get_actor(f"shard-{shard}")
        return _future(self._others[shard].deliver, self._shard, parcels)

    def teach(self, first: int, lessons: list[bytes], seen: Version | None) -> Future[Reply]:
        """Send lessons to the learner, from number `first` on; with `seen`, ask for weights."""
        assert self._learner is not None
        return _future(self._learner.teach, self._shard, first, lessons, seen)


def _future(method: Any, *arguments: object) -> Future[Any]:
    """Call an actor; the future fails if the actor is away."""
    try:
        future: Future[Any] = method.remote(*arguments).future()
    except Exception as error:
        future = Future()
        future.set_exception(error)
    return future
