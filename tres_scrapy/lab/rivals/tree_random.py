"""Tree-Random, the paper's baseline: the tree without the agent (P 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tres_scrapy.agent.policy import (
    NO_TEXT,
    Choice,
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
from tres_scrapy.frontier.sampling import representatives
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.frontier.tree import Rule, TreeFrontier

# The authors' code has stricter limits for splits of this baseline.
MIN_SAMPLES, MIN_SHARE = 20, 0.2


class TreeRandomPolicy(Policy):
    """Fetches a uniform sample of a uniform leaf of the Tree-Frontier."""

    is_resumable = True

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        options = replace(setup.tree, min_samples=MIN_SAMPLES, min_share=MIN_SHARE)
        self.tree = TreeFrontier(store.features, options)
        self._store = store
        self._random = np.random.default_rng(setup.seed)

    def observe(self, experience: Experience) -> None:
        """Add the experience to the tree, whose leaf may split."""
        self.tree.add_experience(experience.x, experience.reward)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the outlinks to the tree."""
        self.tree.insert(outlinks)

    def readmit(self, rows: Rows) -> None:
        """Insert samples into the leaves that match their current features."""
        self.tree.insert(rows)

    def select(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Draw one sample of each leaf and return one of those samples."""
        drawn = representatives(self.tree.pool, self._store, self._random, busy_hosts)
        if not len(drawn.rows):
            return None
        chosen = int(self._random.integers(len(drawn.rows)))
        leaf, row = drawn.take(chosen, self.tree.pool)
        choice = Choice(self.tree.splits, drawn.leaves, drawn.rows, None)
        return Decision(row, leaf, None, choice=choice)

    @property
    def rules(self) -> Sequence[Rule]:
        """The splits of the tree."""
        return self.tree.rules

    def state(self) -> dict[str, bytes]:
        """Return the state of the random choices."""
        return {"random": random_state(self._random)}

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Load the past of a policy of this kind."""
        self.tree.restore(rules, past.x, past.rewards)
        self.tree.insert(pending)
        restore_random(self._random, state["random"])

    def figures(self) -> dict[str, float | str]:
        """Report the tree's size."""
        return {"leaves": len(self.tree), "splits": self.tree.splits}
