"""The learner of a crawl in shards as a Ray actor, with its checkpoints."""

from __future__ import annotations

import logging
import os
from time import monotonic
from typing import Final

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.learner import Learner
from tres_scrapy.cluster.message import Reply, Version
from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.url.whole_file import whole_file

STATE: Final = "state.safetensors"
CHECKPOINT: Final = 30.0  # seconds between two checkpoints of the learner

logger = logging.getLogger(__name__)


class LearnerActor:
    """Holds the one learner, and keeps a checkpoint of it.

    What shards send is learned by number, so any checkpoint will do, or none: each shard is told
    from which transition on it must send again.
    """

    def __init__(self, plan: Plan, setup: PolicyInputs) -> None:
        plan = plan.here()
        self._file = plan.job / LEARNER / STATE
        if not plan.snapshots:
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
    ) -> Reply:
        """Learn the transitions of a shard; answer with what changed since it has `seen`."""
        learner = self._learner
        learner.learn(shard, first, transitions)
        if monotonic() - self._kept_at >= CHECKPOINT:
            self.checkpoint()
        now, update = Version(self._run, learner.version, learner.steps), None
        if seen.run != self._run:
            if learner.steps >= seen.transitions:  # until then the shard knows more
                update = learner.update_since()
        elif seen != now and (asks or learner.has_news(seen.transitions)):
            update = learner.update_since(seen.changes)
        return Reply(learner.positions[shard], now, update)

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
