"""TRES: Tree-Frontier sampling valued by a Double DQN (P 2.4, 2.6, Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tres_scrapy.agent.ddqn import AgentOptions, DoubleDQN
from tres_scrapy.agent.replay import Replay
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.sampling import representatives
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.frontier.tree import TreeFrontier, TreeOptions
from tres_scrapy.policies.policy import Decision, Experience


@dataclass(frozen=True)
class LearningOptions:
    """How TRES explores and learns; a step is an experience taken in.

    Departures from the authors' code: exploration lasts 30 steps, not 500, which short crawls
    cannot afford; in the warm-up, every step brings `warm_up_updates` gradient steps, for then
    experiences are few. From the paper: it draws one representative of each leaf; a few cost as
    many times the Q evaluations, and within a leaf Q still tells samples apart.
    """

    representatives: int = 4
    exploration_steps: int = 30
    warm_up_steps: int = 500
    warm_up_updates: int = 4
    update_period: int = 1
    batch_size: int = 64
    replay_capacity: int = 20_000


class TresPolicy:
    """Evaluates Q for representatives of each leaf and fetches the best (Algorithms 2, 3).

    In the exploration phase the leaf is drawn uniformly. Gradient steps begin with the first
    experience.
    """

    def __init__(
        self,
        store: SampleStore,
        *,
        tree: TreeOptions,
        agent: AgentOptions,
        learning: LearningOptions,
        seed: int,
    ) -> None:
        self.tree = TreeFrontier(store.features, tree)
        self.evaluations = 0  # of Q on representatives: what Theorem 2 bounds
        self.steps = 0
        self._store = store
        self._learning = learning
        self._random = np.random.default_rng(seed)
        self._agent = DoubleDQN(agent, seed)
        self._replay = Replay(learning.replay_capacity, self._random)
        self._incomplete: list[int] = []  # experiences that await the tree's sample for their A~

    @property
    def exploring(self) -> bool:
        """Whether leaves are still drawn uniformly."""
        return self.steps < self._learning.exploration_steps

    def observe(self, experience: Experience) -> None:
        """Let the experience into the tree, where its leaf perhaps splits."""
        self.steps += 1
        self.tree.add_experience(experience.x, experience.reward)

    def expand(self, experience: Experience, outlinks: Rows) -> None:
        """Put the experience into the replay and the outlinks into the tree."""
        self._incomplete.append(self._replay.add(experience.x, experience.reward, outlinks))
        self.tree.insert(outlinks)

    def learn(self) -> float | None:
        """Take a Double DQN step every `update_period` steps, several in the warm-up."""
        if self.steps < self._learning.warm_up_steps:
            updates = self._learning.warm_up_updates
        else:
            updates = int(self.steps % self._learning.update_period == 0)
        loss = None
        for _ in range(updates):
            batch = self._replay.batch(self._learning.batch_size)
            loss = self._agent.update(batch, self._store.features)
        return loss

    def select(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Return the representative with the highest Q, or any while exploring."""
        each = 1 if self.exploring else self._learning.representatives
        drawn = representatives(self.tree.pool, self._store, self._random, busy_hosts, each=each)
        if not len(drawn.rows):
            return None
        q_value = None
        if self.exploring:
            best = int(self._random.integers(len(drawn.rows)))
        else:
            q_values = self._agent.q_values(self._store.features(drawn.rows))
            self.evaluations += len(q_values)
            best = int(np.argmax(q_values))
            q_value = float(q_values[best])
        leaf, row = int(drawn.leaves[best]), int(drawn.rows[best])
        self.tree.pool.discard(leaf, row)
        for ticket in self._incomplete:
            self._replay.note_sampled(ticket, row)
        self._incomplete.clear()
        return Decision(row, leaf, q_value)

    def figures(self) -> dict[str, float | str]:
        """Report the tree's and the agent's state."""
        return {
            "leaves": len(self.tree),
            "splits": self.tree.splits,
            "q_evaluations": self.evaluations,
            "phase": "exploration" if self.exploring else "exploitation",
        }
