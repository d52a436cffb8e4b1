"""The agent and its replay, shared by all policies that use the Double DQN (P 2.4.2)."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.confidence import Confidence
from tres_scrapy.agent.ddqn import DoubleDQN, Features
from tres_scrapy.agent.network import Prior
from tres_scrapy.agent.policy import Experience
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.replay import NONE, Replay
from tres_scrapy.agent.resumption import Past
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.frontier.feature import KNOWN_DOMAIN, LINK
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import SampleStore


class Valued(NamedTuple):
    """Q [n] of samples, and its upper confidence bounds [n]."""

    q_values: NDArray[np.float32]
    bounds: NDArray[np.float32]


class QLearner:
    """Learns Q from experiences, independent of how samples are chosen.

    `features` returns the current x(s, a) of rows.
    With `prior`, Q starts from the reward that feature 9 promises (see QNetwork) and `ucb` is not
    read: what is not known of a link is for the caller to add.
    """

    def __init__(
        self,
        store: SampleStore,
        features: Features,
        setup: PolicyInputs,
        random: np.random.Generator,
        *,
        prior: bool = False,
    ) -> None:
        self.options = setup.learning
        self.steps = 0
        self.evaluations = 0  # of Q to choose a sample; Theorem 2 bounds the paper's
        self._store = store
        self._features = features
        self._ucb = 0.0 if prior else self.options.ucb
        self._agent = DoubleDQN(
            setup.agent, setup.seed, reward_expected(setup.learning) if prior else None
        )
        self._confidence = Confidence()
        self._replay = Replay(self.options.replay_capacity, random)
        self._found: set[int] = set()  # domains that gave a reward
        self._agent_state = -1, b""  # number of updates, and the state then
        self._incomplete: list[int] = []  # tickets whose A~ lacks the next choice

    @property
    def exploring(self) -> bool:
        """Whether choices are still made without Q."""
        return self.steps < self.options.exploration_steps

    def q_values(self, rows: Rows) -> NDArray[np.float32]:
        """Return Q of samples as [n]."""
        return self._valued(self._features(rows))

    def value(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of any x [n, 9] as [n], without counting an evaluation."""
        return self._agent.q_values(x)

    def rate(
        self,
        rows: Rows,
        x: NDArray[np.float32] | None = None,
        bonus: NDArray[np.float32] | float = 0.0,
    ) -> Valued:
        """Compute Q of samples to choose the one with the highest upper confidence bound.

        `x` [n, 9] is their x(s, a), if the caller has it.
        """
        x = self._features(rows) if x is None else x
        q_values = self._valued(x)
        bounds = q_values + bonus
        if self._ucb:
            bounds = bounds + self._ucb * self._confidence.width(x)
        return Valued(q_values, bounds)

    def remember(self, experience: Experience, outlinks: Rows) -> None:
        """Add an experience and its page's outlinks to the replay.

        The first page of a domain with a reward also earns the intrinsic one.
        """
        if self._ucb:
            self._confidence.add(experience.x)
        reward = self._earned(experience)
        self._incomplete.append(self._replay.add(experience.x, reward, outlinks))

    def note_choice(self, row: int) -> None:
        """Add the chosen row to A~ of the experiences since the choice before."""
        for ticket in self._incomplete:
            self._replay.note_sampled(ticket, row)
        self._incomplete.clear()

    def learn(self) -> float | None:
        """Take the gradient step that is due and return its loss, or None without a step."""
        if not self.options.learns_at(self.steps):
            return None
        batch = self._replay.batch(self.options.batch_size)
        return self._agent.update(batch, self._features)

    def state(self) -> dict[str, bytes]:
        """Return the state of the agent and its counts."""
        agent = self._agent
        counts = {
            "updates": agent.updates,
            "evaluations": self.evaluations,
            "skipped": agent.skipped,
        }
        if self._agent_state[0] != self._agent.updates:
            vector = self._agent.state().astype("<f4")
            self._agent_state = self._agent.updates, vector.tobytes()
        return {"agent": self._agent_state[1], "counts": json.dumps(counts).encode()}

    def restore(self, past: Past, state: dict[str, bytes]) -> None:
        """Load experiences and a saved state; raise ValueError if the state does not fit."""
        counts = json.loads(state["counts"])
        self.evaluations = int(counts["evaluations"])
        self._agent.skipped = int(counts["skipped"])
        self._agent.restore(np.frombuffer(state["agent"], "<f4").copy(), int(counts["updates"]))
        self._agent_state = -1, b""
        self.steps = len(past.rewards)
        if self._ucb:
            self._confidence.add(past.x)
        x, _, _, *rest = past
        self._replay.restore(x, self._earned_before(past), *rest)
        self._incomplete = np.flatnonzero(past.sampled == NONE).tolist()

    def figures(self) -> dict[str, float | str]:
        """Report the agent's state."""
        return {
            "q_evaluations": self.evaluations,
            "phase": "exploration" if self.exploring else "exploitation",
            "updates": self._agent.updates,
            "skipped_updates": self._agent.skipped,
        }

    def _earned(self, experience: Experience) -> float:
        """Return the reward of an experience, with the intrinsic one."""
        row, _, reward = experience
        domain = self._store.domain(row)
        if reward > 0 and domain not in self._found:
            self._found.add(domain)
            reward += self.options.novelty
        return reward

    def _earned_before(self, past: Past) -> NDArray[np.float32]:
        """Return the rewards [n] of a past, with the intrinsic ones."""
        rewarded = np.flatnonzero(past.rewards > 0)
        domains, firsts = np.unique(self._store.domains(past.rows[rewarded]), return_index=True)
        self._found = set(domains.tolist())
        earned = past.rewards.copy()
        earned[rewarded[firsts]] += self.options.novelty
        return earned

    def _valued(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q [n] of samples with x(s, a) [n, 9]."""
        self.evaluations += len(x)
        return self._agent.q_values(x)


def reward_expected(options: LearningOptions) -> Prior:
    """Return the function from samples [n, 9] to what they earn if P(relevant) is right [n].

    The intrinsic reward is part of it.
    """
    factors = np.array([1, 1 + options.novelty], dtype=np.float32)  # a known and a new domain

    def expected(x: NDArray[np.float32]) -> NDArray[np.float32]:
        values: NDArray[np.float32] = x[:, LINK] * factors.take(x[:, KNOWN_DOMAIN] < 1)
        return values

    return expected
