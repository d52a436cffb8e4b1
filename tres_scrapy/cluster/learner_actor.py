"""The learner of a crawl in shards as a Ray actor, with its checkpoints and their snapshots."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import ray

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.learner import Learner
from tres_scrapy.cluster.message import Reply, Version
from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.cluster.snapshot_store import OvertakenError, SnapshotError, SnapshotStore
from tres_scrapy.url.whole_file import whole_file

STATE: Final = "state.safetensors"
CHECKPOINT: Final = 30.0  # seconds between two checkpoints of the learner
AGAIN: Final = 5.0  # seconds after which a learner without its snapshot tries again

logger = logging.getLogger(__name__)


class LearnerActor:
    """Holds the one learner, and keeps a checkpoint of it."""

    def __init__(self, plan: Plan, setup: PolicyInputs) -> None:
        plan = plan.here()
        self._file = plan.job / LEARNER / STATE
        self._snapshots = _open_snapshots(plan, self._file) if plan.snapshots else None
        if self._snapshots is None:
            plan.require_shared()
        self._learner = Learner(setup, plan.shards)
        if self._file.exists():
            try:
                self._learner.restore(self._file.read_bytes())
            except Exception as error:  # a file can be damaged in many ways
                logger.warning("%s is left out: %s; all is learned again", self._file, error)
                self._learner = Learner(setup, plan.shards)
        self._run = int.from_bytes(os.urandom(6), "big")  # versions of another run do not count
        self._kept, self._kept_at = self._learner.steps, monotonic()

    def learn(
        self,
        shard: int,
        first: int,
        transitions: list[bytes],
        seen: Version,
        asks: bool,
        *,
        forks: Sequence[tuple[int, int]] = (),
    ) -> Reply:
        """Learn the transitions of a shard; answer with what changed since it has `seen`."""
        learner = self._learner
        learner.follow(shard, forks)
        learner.learn(shard, first, transitions)
        if monotonic() - self._kept_at >= CHECKPOINT:
            self.checkpoint()
        now, update = Version(self._run, learner.version, learner.steps), b""
        if seen.run != self._run:
            if learner.steps >= seen.transitions:  # until then the shard knows more
                update = learner.update_since().packed()
        elif seen != now and (asks or learner.has_news(seen.transitions)):
            update = learner.update_since(seen.changes).packed()
        return Reply(learner.positions[shard], now, update)

    def end(self) -> None:
        """Write the last checkpoint, and a snapshot of it."""
        self.checkpoint()
        if self._snapshots is not None:
            self._snapshots.finish()

    def checkpoint(self) -> None:
        """Write a checkpoint, whole or not at all."""
        self._kept_at = monotonic()
        if self._learner.steps == self._kept:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._file) as file:
            file.write(self._learner.state())
            file.flush()
            os.fsync(file.fileno())
        self._kept = self._learner.steps
        if self._snapshots is not None:
            self._snapshots.take_if_due()

    def figures(self) -> dict[str, int]:
        """Return the counts of the learner."""
        return {"transitions": self._learner.steps, "hurried_transitions": self._learner.hurried}


class LearnerSnapshots:
    """Brings the last checkpoint of the learner to this node, and copies new ones from here.

    What shards send is learned by number, so any checkpoint will do: each shard is told from which
    transition on it must send again.
    """

    def __init__(self, plan: Plan, file: Path) -> None:
        self._file = file
        self._snapshots = SnapshotStore(plan.snapshots).folder(LEARNER)
        self._period = plan.interval
        self._due = monotonic() + plan.interval
        self._thread: threading.Thread | None = None
        self._is_overtaken = False
        self._snapshots.claim(self._snapshots.highest() + 1)
        if (manifest := self._snapshots.latest()) is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._snapshots.fetch(manifest, file.parent)

    def take_if_due(self) -> None:
        """Begin a snapshot of the checkpoint if it is time."""
        is_running = self._thread is not None and self._thread.is_alive()
        if monotonic() >= self._due and not is_running:
            self._due = monotonic() + self._period
            self._thread = threading.Thread(target=self._send, name="tres-snapshot", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Take the last snapshot."""
        if self._thread is not None:
            self._thread.join()
        if self._file.exists():
            self._send()

    def _send(self) -> None:
        if self._is_overtaken:
            return
        try:
            self._snapshots.write({STATE: (self._file, None)}, {})
        except OvertakenError:
            self._is_overtaken = True  # a newer learner is at work; the shards talk to it
        except SnapshotError as error:
            logger.error("No snapshot of the learner: %s", error)


def _open_snapshots(plan: Plan, file: Path) -> LearnerSnapshots:
    """Bring the last checkpoint here; without the storage, try again unless this is the start.

    Ray does not start an actor again whose constructor fails, but one whose process ends.
    """
    try:
        return LearnerSnapshots(plan, file)
    except SnapshotError as error:
        if not ray.get_runtime_context().was_current_actor_reconstructed:
            raise
        logger.error("The learner waits for its snapshot: %s", error)
        sleep(AGAIN)
        os._exit(1)
