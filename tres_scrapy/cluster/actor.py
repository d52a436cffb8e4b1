"""The processes of a crawl in shards, as Ray actors: how they are called, and the coordinator's.

Ray places them, starts them again when they die, and carries their calls. It keeps nothing: what
an actor must know after a restart is in the files of the job.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic, sleep
from typing import Any, Final, TypeVar

import ray
from ray.exceptions import RayError

from tres_scrapy.cluster.coordinator import Coordinator
from tres_scrapy.cluster.message import Orders, Receipt, Reply, Status, Version
from tres_scrapy.cluster.outbox import NumberedBatch
from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.cluster.register import Register
from tres_scrapy.url.message import TresError

COORDINATOR: Final = "coordinator"
FREE: Final = 15.0  # seconds to wait until the last owner of a file is gone
PATIENCE: Final = 60.0  # seconds to wait for the coordinator
ANSWER: Final = 10.0  # seconds in which batches of links are taken

Opened = TypeVar("Opened")

logger = logging.getLogger(__name__)


class CoordinatorActor(Coordinator):
    """The coordinator of a planned crawl; one call at a time."""

    def __init__(self, plan: Plan) -> None:
        if not plan.snapshots:
            plan.require_shared()
        waits = partial(
            Register, plan.job, plan.shards, plan.identity, plan.run, snapshots=plan.snapshots
        )
        super().__init__(when_free(waits), plan.pages, snapshots=bool(plan.snapshots))


def insist(method: str, *arguments: object) -> Any:
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
    """Open a file once no process of an earlier run, which is ending, uses it; raise TresError."""
    seconds = FREE if seconds is None else seconds
    until, waits = monotonic() + seconds, False
    while True:
        try:
            return open_()
        except TresError as error:
            if monotonic() > until or "is using" not in str(error):
                raise
            if not waits:
                waits = True
                logger.warning("%s: waiting up to %.0f s for it to end", error, seconds)
            sleep(0.5)


class RayWire:
    """The calls of one shard to the other actors, which are found by their names."""

    def __init__(self, shard: int, epoch: int) -> None:
        self._shard = shard
        self._epoch = epoch
        self._actors: dict[str, Any] = {}

    def report(self, status: Status) -> Future[Orders]:
        """Report to the coordinator."""
        return self._call(COORDINATOR, "report", status, self._epoch)

    def close(self, status: Status) -> None:
        """Send the coordinator the last report; it may be away."""
        with suppress(Exception):  # Ray raises many kinds
            self._call(COORDINATOR, "closed", status, self._epoch).result(timeout=ANSWER)

    def deliver(self, shard: int, after: int, batches: list[NumberedBatch]) -> Future[Receipt]:
        """Send batches to another shard, which must have those up to the number `after`."""
        return self._call(f"shard-{shard}", "deliver", self._shard, after, batches)

    def learn(
        self, first: int, transitions: list[bytes], seen: Version, *, asks: bool
    ) -> Future[Reply]:
        """Send transitions to the learner, from number `first` on, and ask for weights."""
        return self._call(LEARNER, "learn", self._shard, first, transitions, seen, asks)

    def _call(self, name: str, method: str, *arguments: object) -> Future[Any]:
        """Call an actor; the future fails if the actor is away."""
        try:
            if name not in self._actors:
                self._actors[name] = ray.get_actor(name)
            remote = getattr(self._actors[name], method).remote
            future: Future[Any] = remote(*arguments).future()
        except Exception as error:  # Ray raises many kinds
            future = Future()
            future.set_exception(ConnectionError(f"{name}: {error}"))
        return future
