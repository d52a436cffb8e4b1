"""Random, the papers' baseline: uniform over the frontier (P 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tres_scrapy.agent.policy import (
    NO_TEXT,
    Decision,
    Experience,
    PageText,
    Past,
    Policy,
    random_state,
    restore_random,
)
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.sampling import LeafPool, representatives
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.frontier.tree import Rule


class RandomPolicy(Policy):
    """Fetches a uniformly drawn frontier sample: the frontier is one leaf."""

    is_resumable = True

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        self._store = store
        self._pool = LeafPool()
        self._leaf = self._pool.add_leaf()
        self._random = np.random.default_rng(setup.seed)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the outlinks to the frontier."""
        self._pool.extend(self._leaf, outlinks)

    def readmit(self, rows: Rows) -> None:
        """Add samples to the frontier."""
        self._pool.extend(self._leaf, rows)

    def select(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Draw a sample uniformly."""
        drawn = representatives(self._pool, self._store, self._random, busy_hosts)
        if not len(drawn.rows):
            return None
        leaf, row = drawn.take(0, self._pool)
        return Decision(row, leaf, None)

    def state(self) -> dict[str, bytes]:
        """Return the state of the random choices."""
        return {"random": random_state(self._random)}

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Load the PENDING samples and the random state."""
        self._pool.extend(self._leaf, pending)
        restore_random(self._random, state["random"])
