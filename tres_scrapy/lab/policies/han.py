"""Async: linear SARSA over a queue of links valued once (Han, Wuillemin and Senellart, 2018).

The asynchronous method: Q is computed for the outlinks of the page just fetched and not updated.
The features it shares with TRES come from the frontier: reward, closeness of relevance and share
of relevant pages along the path. The relevance of an anchor is its cosine with the keywords.
Departures: values are not cut into intervals, and the reward of the page, 0 or 1, replaces its
graded relevance. Discount and step size are our choice: as in TRES, only a few steps ahead matter,
and one step moves Q(s, a), whose features are at most 1, by at most a quarter of its error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Decision, Experience, PageText
from tres_scrapy.frontier import feature
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import Eligibility, SampleStore, State
from tres_scrapy.lab.policies.baseline import QueuePolicy
from tres_scrapy.lab.policies.inputs import RivalInputs
from tres_scrapy.url.message import TresError

FEATURES = 5  # a constant 1, three path features, the cosine of the anchor
EPSILON = 0.1
DISCOUNT = 0.5
STEP_SIZE = 0.05
DRAWS = 20  # tries to find a row that can be fetched; most rows can


class _Step(NamedTuple):
    """An experience whose update needs the next choice."""

    x: NDArray[np.float64]
    reward: float


class AsyncPolicy(QueuePolicy):
    """Fetches the link whose Q was highest when found, or a random link (EPSILON)."""

    def __init__(self, store: SampleStore, setup: RivalInputs) -> None:
        super().__init__(store)
        self.weights = np.zeros(FEATURES)
        if setup.similarity is None:
            raise TresError("policy 'async' needs the similarity of anchors")
        self._similarity = setup.similarity
        self._random = np.random.default_rng(setup.seed)
        self._steps: list[_Step] = []

    def features(self, rows: Rows) -> NDArray[np.float64]:
        """Return the features x(s, a) [n, 5] of this method."""
        x = np.ones((len(rows), FEATURES))
        x[:, 1:4] = self.store.features(rows)[:, feature.STATE]
        x[:, 4] = self._similarity([self.store.anchors[row] for row in rows.tolist()])
        return x

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float64]:
        """Return Q of new samples."""
        return self.features(rows) @ self.weights

    def observe(self, experience: Experience) -> None:
        """Keep the experience until its update."""
        x = self.features(np.array([experience.row]))[0]
        self._steps.append(_Step(x, experience.reward))

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Return the best sample or, with probability EPSILON, any; update Q with this choice."""
        decision = self._any(available) if self._random.random() < EPSILON else None
        decision = decision or super().select(available)
        if decision is not None:
            self._update(decision.row)
        return decision

    def _any(self, available: Availability) -> Decision | None:
        """Draw a sample uniformly, except seeds, which the policy does not manage."""
        if not len(self.store):
            return None
        rows = self._random.integers(len(self.store), size=DRAWS)
        for row in rows[self.store.eligibility(rows, available) == Eligibility.READY].tolist():
            if self.store["state"][row] == State.PENDING and not self.store.is_seed(row):
                return Decision(row, None, None)
        return None

    def _update(self, next_row: int) -> None:
        """Move Q of each experience towards its reward plus the discounted Q of the next choice."""
        next_x = self.features(np.array([next_row]))[0]
        for x, reward in self._steps:
            target = reward + DISCOUNT * next_x @ self.weights
            self.weights += STEP_SIZE * (target - x @ self.weights) * x
        self._steps.clear()
