"""Starts the actors of a crawl and watches it until it ends."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.actor import COORDINATOR, CoordinatorActor
from tres_scrapy.cluster.coordinator import FAILED, Overview
from tres_scrapy.cluster.learner_actor import LearnerActor
from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.cluster.record_join import Part, Position
from tres_scrapy.cluster.shard_actor import THREADS, ShardActor
from tres_scrapy.extensions.ending import SHUTDOWN
from tres_scrapy.url.message import TresError, first_line, plainly

LOOK: Final = 1.0  # seconds between two looks at the crawl
PARTS: Final = 5.0  # seconds for what the records of the shards have
CLOSING: Final = 60.0  # seconds that shards have to end, once the crawl ends,
SENDING: Final = 600.0  # or if they send a last snapshot
LOST: Final = 30.0  # seconds without an answer after which Ray is gone
REACHED: Final = 10.0  # seconds in which a cluster must take a connection
ADDRESS: Final = re.compile(r"(?:ray://)?\[?([^\[\]]+)\]?:(\d+)")
TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable

logger = logging.getLogger(__name__)


class Driver:
    """Runs a crawl until it ends; `show` receives its state every second.

    `address` is that of a Ray cluster; without one, Ray is started on this machine.
    """

    def __init__(
        self,
        plan: Plan,
        setup: PolicyInputs,
        address: str | None = None,
        show: Callable[[Overview], None] = lambda overview: None,
    ) -> None:
        self._plan = plan
        self._setup = setup
        self._address = address
        self._show = show
        self._actors: dict[str, Any] = {}
        self._overview: Overview | None = None

    def run(self) -> Overview:
        """Crawl; return the last state. Ctrl-C ends the crawl as a stop does."""
        with self._connected():
            self._start()
            try:
                self._watch()
            except KeyboardInterrupt:
                logger.info("Stopping: open requests are finished; Ctrl-C again ends at once")
                while not self._ask(COORDINATOR, "end", SHUTDOWN):
                    sleep(LOOK)
                self._watch()
            self._close()
        assert self._overview is not None
        return self._overview

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Connect to Ray; end it if it was started here."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        place = self._plan.snapshots or str(self._plan.job)
        name = hashlib.sha256(place.encode()).hexdigest()[:12]
        local: dict[str, Any] = {}
        if not self._address:
            # Ray listens on all networks and runs code for everyone who has its token. It keeps
            # one in a file that all users of this machine may be able to read.
            os.environ.setdefault(TOKEN, secrets.token_hex(32))
            local = {"include_dashboard": False}
        try:
            ray.init(
                self._address or "local",  # not a cluster that happens to run here
                namespace=f"tres-{name}",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **local,
            )
        except Exception as error:  # Ray raises plain ones
            raise TresError(f"Ray does not start: {first_line(error)}") from None
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray's prints a stack
        try:
            yield
        finally:
            ray.shutdown()

    def _start(self) -> None:
        plan = self._plan
        plan.share()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        place = here if plan.snapshots else "SPREAD"  # their files are on the disk of this node
        self._create(COORDINATOR, CoordinatorActor, plan, place=place)
        self._check(COORDINATOR)
        if plan.shards > 1:
            self._create(LEARNER, LearnerActor, plan, self._setup, place=place)
            self._check(LEARNER)
        for shard in range(plan.shards):
            self._create(f"shard-{shard}", ShardActor, plan, shard, threads=THREADS)

    def _create(
        self, name: str, kind: type, *arguments: object, threads: int = 1, place: object = "SPREAD"
    ) -> None:
        """Create an actor, which Ray starts again if it dies."""
        options = {"num_cpus": 0, "max_restarts": -1, "scheduling_strategy": place}
        remote: Any = ray.remote(kind).options(name=name, max_concurrency=threads, **options)
        try:
            self._actors[name] = remote.remote(*arguments)
        except ValueError as error:  # the name is taken
            job = self._plan.job
            raise TresError(f"the crawl in {job} runs already ({first_line(error)})") from None

    def _check(self, name: str) -> None:
        """Raise TresError if an actor cannot start."""
        try:
            ray.get(self._actors[name].__ray_ready__.remote())
        except RayError as error:
            raise TresError(_cause(error)) from None

    def _watch(self) -> None:
        """Show the crawl until all shards have ended."""
        closing, answered = None, monotonic()
        most = closing_time(self._plan)
        while True:
            overview = self._ask(COORDINATOR, "overview")
            if overview is None and monotonic() - answered > LOST:
                raise TresError("Ray does not answer any more: the same command resumes the crawl")
            if overview is not None:
                answered = monotonic()
                self._note(overview)
                self._show(overview)
                if overview.finish and closing is None:
                    closing = monotonic()
            if closing is not None and (self._has_ended() or monotonic() - closing > most):
                return
            if closing is not None and self._overview and not self._overview.statuses:
                return  # nothing has begun
            sleep(LOOK)

    def _note(self, overview: Overview) -> None:
        """Keep the last state. A coordinator that was started again may know less than before."""
        if self._overview is None or len(overview.statuses) >= len(self._overview.statuses):
            self._overview = overview

    def _has_ended(self) -> bool:
        names = [name for name in self._actors if name.startswith("shard-")]
        return all(self._ask(name, "has_ended") for name in names)

    def _close(self) -> None:
        if LEARNER in self._actors:
            self._ask(LEARNER, "checkpoint", seconds=closing_time(self._plan))
        assert self._overview is not None
        if self._overview.statuses and not self._has_ended():
            logger.warning("Some shards did not end in time")
        if (overview := self._ask(COORDINATOR, "overview")) is not None:
            self._note(overview)  # with the last pages

    def command(self, name: str, value: str = "") -> None:
        """Pass a command on to all shards; it returns at once and may be called in any thread."""
        self._actors[COORDINATOR].command.remote(name, value)

    def stop(self) -> None:
        """End the crawl as Ctrl-C does; it returns at once and may be called in any thread."""
        self._actors[COORDINATOR].end.remote(SHUTDOWN)

    def parts(self, after: Mapping[int, Position]) -> dict[int, Part]:
        """Return what the records of the shards have after a position; some may be missing."""
        calls = {
            shard: self._actors[f"shard-{shard}"].part.remote(place)
            for shard, place in after.items()
        }
        done, _ = ray.wait(list(calls.values()), num_returns=len(calls), timeout=PARTS)
        parts = {shard: _found(call) for shard, call in calls.items() if call in done}
        return {shard: part for shard, part in parts.items() if part is not None}

    def _ask(self, name: str, method: str, *arguments: str, seconds: float = 10.0) -> Any:
        """Call an actor; return None if it is away: Ray starts it again."""
        try:
            return ray.get(getattr(self._actors[name], method).remote(*arguments), timeout=seconds)
        except RayError as error:
            logger.debug("%s is away: %s", name, error)
            return None


def require_cluster(address: str) -> None:
    """Raise TresError if no cluster listens at an address: Ray itself would try for minutes."""
    place = ADDRESS.fullmatch(address)
    if place is None:
        return
    try:
        socket.create_connection((place[1], int(place[2])), REACHED).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise TresError(f"no Ray cluster answers at {address}: {plainly(error)}") from None


def closing_time(plan: Plan) -> float:
    """Return how many seconds the processes of a crawl have to end."""
    return SENDING if plan.snapshots else CLOSING


def _cause(error: RayError) -> str:
    """Return the last line of what Ray says about an actor, without the class of its error."""
    line = f"{error}".strip().rpartition("\n")[2]
    name, _, said = line.partition("Error: ")
    return said if said and re.fullmatch(r"[\w.]+", name) else line


def _found(call: Any) -> Part | None:
    """Return the result of a call that is done, None if it failed."""
    try:
        found: Part | None = ray.get(call)
    except RayError as error:
        logger.debug("The record of a shard cannot be read: %s", error)
        return None
    return found


def has_failed(overview: Overview) -> bool:
    """Return whether a crawl failed, or brought no page."""
    if overview.finish == FAILED:
        print(f"tres cluster crawl: {overview.error}", file=sys.stderr)
        return True
    return not overview.state.pages
