"""Learns Q: the agent with its replay B (P 2.4.2)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.ddqn import Batch, DoubleDQN, Features, Prior, learns_at
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import FEATURES, KNOWN_DOMAIN, LINK
from tres_scrapy.frontier.store import SampleStore

NO_ROW = -1
_EXPERIENCE = np.dtype(
    [
        ("x", "f4", (len(FEATURES),)),
        ("reward", "f4"),
        ("first", "i8"),
        ("outlinks", "i8"),
        ("sampled", "i8"),
    ]
)


class Replay:
    """The last `capacity` experiences, each with the range of rows of its page's outlinks.

    A~_{t+1} is that range plus the sample that is chosen next. Only the range is kept: the store
    returns the vectors, with features 7 and 8 as they are when a batch is used.
    """

    def __init__(self, capacity: int, random: np.random.Generator) -> None:
        self._records = np.zeros(capacity, dtype=_EXPERIENCE)
        self._added = 0
        self._random = random

    def __len__(self) -> int:
        return min(self._added, len(self._records))

    def add(self, x: NDArray[np.float32], reward: float, outlinks: Rows) -> int:
        """Store x [9], its reward and the consecutive rows of the page's outlinks.

        Return a ticket for `note_sampled`.
        """
        first = int(outlinks[0]) if len(outlinks) else 0
        self._records[self._added % len(self._records)] = (x, reward, first, len(outlinks), NO_ROW)
        self._added += 1
        return self._added - 1

    def note_sampled(self, ticket: int, row: int) -> None:
        """Add the row chosen at the next step to the candidates of `ticket`."""
        if self._added - ticket <= len(self._records):
            self._records["sampled"][ticket % len(self._records)] = row

    def restore(
        self,
        x: NDArray[np.float32],
        rewards: NDArray[np.float32],
        firsts: Rows,
        outlinks: NDArray[np.int64],
        sampled: Rows,
    ) -> None:
        """Fill an empty replay with all past experiences [n], oldest first.

        `firsts` and `outlinks` hold the first row and the number of the outlinks. `sampled` is -1
        where no next row was noted.
        """
        self._added = len(x)
        kept = np.arange(max(0, len(x) - len(self._records)), len(x))
        columns: list[NDArray[Any]] = [x, rewards, firsts, outlinks, sampled]
        for name, values in zip(_EXPERIENCE.names or (), columns, strict=True):
            self._records[name][kept % len(self._records)] = values[kept]

    def batch(self, size: int) -> Batch:
        """Draw `size` experiences uniformly with replacement, U(B)."""
        drawn = self._records[self._random.integers(len(self), size=size)]
        sampled = drawn["sampled"]
        counts = drawn["outlinks"] + (sampled != NO_ROW)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        candidates = np.repeat(drawn["first"], counts) + within
        has_sample = sampled != NO_ROW
        candidates[ends[has_sample] - 1] = sampled[has_sample]
        return Batch(drawn["x"], drawn["reward"], candidates, counts)


class QLearner:
    """Learns Q from experiences, independent of how samples are chosen.

    `features` returns the current x(s, a) of rows.
    With `prior`, Q starts from the reward that feature 9 promises (see QNetwork).
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
        self._novelty = self.options.novelty
        self.evaluations = 0  # of Q to choose a sample; Theorem 2 bounds the paper's
        self._store = store
        self._features = features
        self._agent = DoubleDQN(
            setup.agent, setup.seed, reward_expected(setup.learning) if prior else None
        )
        self._replay = Replay(self.options.replay_capacity, random)
        self._found: set[int] = set()  # domains that gave a reward
        self._agent_state = -1, b""  # number of updates, and the state then
        self._incomplete: list[int] = []  # tickets whose A~ lacks the next choice

    @property
    def exploring(self) -> bool:
        """Whether choices are still made without Q."""
        return self.steps < self.options.exploration_steps

    def value(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of any x [n, 9] as [n], without counting an evaluation."""
        return self._agent.q_values(x)

    def rate(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q [n] of samples with x(s, a) [n, 9], to choose one of them."""
        self.evaluations += len(x)
        return self._agent.q_values(x)

    def remember(self, experience: Experience, outlinks: Rows) -> None:
        """Add an experience and its page's outlinks to the replay.

        The first page of a domain with a reward also earns the intrinsic one.
        """
        reward = self._earned(experience)
        self._incomplete.append(self._replay.add(experience.x, reward, outlinks))

    def note_choice(self, row: int) -> None:
        """Add the chosen row to A~ of the experiences since the choice before."""
        for ticket in self._incomplete:
            self._replay.note_sampled(ticket, row)
        self._incomplete.clear()

    def learn(self) -> float | None:
        """Take the gradient step that is due and return its loss, or None without a step."""
        if not learns_at(self.options, self.steps):
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
        links = past.firsts, past.outlinks, past.sampled
        self._replay.restore(past.x, self._earned_before(past), *links)
        self._incomplete = np.flatnonzero(past.sampled == NO_ROW).tolist()

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
        row, _, reward, _ = experience
        domain = self._store["domain"][row]
        if reward > 0 and domain not in self._found:
            self._found.add(domain)
            reward += self._novelty
        return reward

    def _earned_before(self, past: Past) -> NDArray[np.float32]:
        """Return the rewards [n] of a past, with the intrinsic ones."""
        rewarded = np.flatnonzero(past.rewards > 0)
        domains, firsts = np.unique(
            self._store["domain"].take(past.rows[rewarded]), return_index=True
        )
        self._found = set(domains.tolist())
        earned = past.rewards.copy()
        earned[rewarded[firsts]] += self._novelty
        return earned


def reward_expected(options: LearningOptions) -> Prior:
    """Return the function from samples [n, 9] to what they earn if P(relevant) is right [n].

    The intrinsic reward is part of it.
    """
    factors = np.array([1, 1 + options.novelty], dtype=np.float32)  # a known and a new domain

    def expected(x: NDArray[np.float32]) -> NDArray[np.float32]:
        values: NDArray[np.float32] = x[:, LINK] * factors.take(x[:, KNOWN_DOMAIN] < 1)
        return values

    return expected
