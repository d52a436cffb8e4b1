"""Policies that do not learn, and the base class of policies with a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rivals.inputs import RivalInputs
from tres_scrapy.agent.policy import (
    NO_TEXT,
    Choice,
    Decision,
    Experience,
    PageText,
    Past,
    Policy,
)
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.queue import FrontierQueue
from tres_scrapy.frontier.sampling import LeafPool, random_state, representatives, restore_random
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.frontier.tree import Rule, TreeFrontier
from tres_scrapy.url.message import TresError


class QueuePolicy(Policy):
    """Fetches the sample with the highest value; subclasses define `values`.

    The value of a sample is computed once, when the sample is added.
    """

    def __init__(self, store: SampleStore) -> None:
        self.store = store
        self.queue = FrontierQueue(store)

    def values(self, rows: Rows, page: PageText) -> ArrayLike:
        """Return the values [n] of new samples, which are outlinks of `page`."""
        raise NotImplementedError

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the outlinks to the queue."""
        self.queue.push(outlinks, self.values(outlinks, page))

    def readmit(self, rows: Rows) -> None:
        """Add samples to the queue, valued as on a page without text."""
        self.queue.push(rows, self.values(rows, NO_TEXT))

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Take the best sample from the queue."""
        best = self.queue.pop(available)
        return None if best is None else Decision(best[0], None, best[1])


_ANCHOR = FEATURES.index("anchor_probability")


class BreadthFirstPolicy(QueuePolicy):
    """Fetches URLs in the order in which they were found (Najork and Wiener, 2001)."""

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float32]:
        """Return 0 for all: among equal values the oldest is fetched first."""
        return np.zeros(len(rows), dtype=np.float32)


class BestFirstPolicy(QueuePolicy):
    """Fetches the link whose anchor text is most probably relevant (Cho et al., 1998)."""

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float32]:
        """Return P(relevant) of the anchor texts, feature 6."""
        return self.store.features(rows)[:, _ANCHOR]


class OraclePolicy(QueuePolicy):
    """Fetches relevant pages while the frontier has one: it reads the true label of each link.

    No crawler can know more about the page behind a link. The oracle does not know, however, which
    links that page has.
    """

    def __init__(self, store: SampleStore, setup: RivalInputs) -> None:
        super().__init__(store)
        if setup.labels is None:
            raise TresError("policy 'oracle' needs the labels of an offline web")
        self._labels = setup.labels

    def values(self, rows: Rows, page: PageText) -> list[bool]:
        """Return the true labels."""
        return self._labels([self.store.url(row) for row in rows.tolist()])


class RandomPolicy(Policy):
    """Fetches a uniformly drawn sample of the frontier, which is one leaf, without a tree."""

    is_resumable = True

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        self._store = store
        self.pool = LeafPool()
        self._leaf = self.pool.add_leaf()
        self._random = np.random.default_rng(setup.seed)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the outlinks to the frontier."""
        self.pool.extend(self._leaf, outlinks)

    def readmit(self, rows: Rows) -> None:
        """Add samples to the frontier."""
        self.pool.extend(self._leaf, rows)

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Draw a sample uniformly."""
        drawn = representatives(self.pool, self._store, self._random, available)
        if not len(drawn.rows):
            return None
        _, row = drawn.take(0, self.pool)
        return Decision(row, None, None)

    def state(self) -> dict[str, bytes]:
        """Return the state of the random choices."""
        return {"random": random_state(self._random)}

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Load the PENDING samples and the random state."""
        self.readmit(pending)
        restore_random(self._random, state["random"])


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

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Draw one sample of each leaf and return one of those samples."""
        drawn = representatives(self.tree.pool, self._store, self._random, available)
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
