"""Variants of TRES: without a tree (P 2.5, 3.6.1), and without two features (P 3.6.3).

The Tree-Frontier approximates the synchronous method. The asynchronous method is TRES_Async.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.q_learner import QLearner
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import NEIGHBOURHOOD
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.queue import FrontierQueue
from tres_scrapy.frontier.store import Eligibility, SampleStore
from tres_scrapy.lab.policies.baseline import OneLeafPolicy


class WholeFrontierPolicy(OneLeafPolicy):
    """Learns Q as TRES does, over a frontier without a tree; subclasses define `best`.

    In the exploration phase it fetches a random sample.
    """

    learns_q = True

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store, np.random.default_rng([setup.seed, 1]))
        self.learner = QLearner(store, store.features, setup, np.random.default_rng(setup.seed))

    def value(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of any x [n, 9] as [n]."""
        return self.learner.value(x)

    def observe(self, experience: Experience) -> None:
        """Count the step."""
        self.learner.steps += 1

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the experience to the replay and the outlinks to the frontier."""
        self.learner.remember(experience, outlinks)
        super().expand(experience, outlinks, page)

    def learn(self) -> float | None:
        """Take the Double DQN steps that are due."""
        return self.learner.learn()

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Return the best sample, or any while exploring."""
        choose = super().select if self.learner.exploring else self.best
        decision = choose(available)
        if decision is not None:
            self.learner.note_choice(decision.row)
        return decision

    def best(self, available: Availability) -> Decision | None:
        """Remove and return the best ready sample, or None if no sample is ready."""
        raise NotImplementedError

    def figures(self) -> dict[str, float | str]:
        """Report the agent's state."""
        return self.learner.figures()


class SynchronousPolicy(WholeFrontierPolicy):
    """Evaluates Q for every sample of the frontier at every step."""

    def best(self, available: Availability) -> Decision | None:
        """Remove and return the best of all ready samples."""
        rows = self.pool.rows(self.leaf)
        eligibility = self.store.eligibility(rows, available)
        alive = eligibility != Eligibility.DEAD
        if not alive.all():
            self.pool.keep(self.leaf, alive)
            self.store.drop(rows[~alive])
            rows, eligibility = rows[alive], eligibility[alive]
        ready = np.flatnonzero(eligibility == Eligibility.READY)
        if not len(ready):
            return None
        q_values, bounds = self.learner.rate(rows[ready])
        best = int(np.argmax(bounds))
        self.pool.remove(self.leaf, int(ready[best]))
        return Decision(int(rows[ready[best]]), None, float(q_values[best]))


class AsynchronousPolicy(WholeFrontierPolicy):
    """Evaluates Q once for the outlinks of the page just fetched, and queues them by Q.

    Samples left in the frontier when exploration ends are evaluated then.
    """

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store, setup)
        self._queue = FrontierQueue(store)

    def best(self, available: Availability) -> Decision | None:
        """Remove and return the ready sample whose Q was highest when added."""
        rows = self.pool.rows(self.leaf)
        if len(rows):
            self.pool.keep(self.leaf, np.zeros(len(rows), dtype=np.bool_))
            self._queue.push(rows, self.learner.q_values(rows))  # no UCB: its width never shrinks
        best = self._queue.pop(available)
        return None if best is None else Decision(best[0], None, best[1])


class NoNeighbourhoodPolicy(TresPolicy):
    """TRES_NH, the ablation without features 7 and 8 (P 3.6.3): they are 0 for all samples.

    It has no intrinsic reward for new domains, because it does not know which domains are new.
    """

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store, replace(setup, learning=replace(setup.learning, breadth=0.0)))

    def view(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return x [n, 9] with features 7 and 8 set to 0."""
        x = x.copy()
        x[..., NEIGHBOURHOOD] = 0
        return x
