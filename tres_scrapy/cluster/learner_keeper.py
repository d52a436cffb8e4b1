"""Takes snapshots of the learner's checkpoints, in another thread."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from time import monotonic
from typing import Final

from tres_scrapy.cluster.plan import LEARNER, Plan
from tres_scrapy.cluster.snapshot_store import OvertakenError, SnapshotError, SnapshotStore

STATE: Final = "state.safetensors"

logger = logging.getLogger(__name__)


class LearnerKeeper:
    """Brings the last checkpoint of the learner to this node, and copies new ones from here.

    What shards send is learned by number, so any checkpoint will do: each shard is told from which
    lesson on it must send again.
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

    def look(self) -> None:
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
