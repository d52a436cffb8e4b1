"""The one learner of a crawl on many machines: it learns from the transitions of all shards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from tres_scrapy.agent.ddqn import Batch, DoubleDQN, learns_at
from tres_scrapy.agent.link_learner import LinkTrainer
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.q_learner import reward_expected
from tres_scrapy.cluster.transition import Transition, WeightUpdate
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.sampling import random_state, restore_random
from tres_scrapy.links.model import LinkModel, Links, prior_of

NEWS: Final = 0.1  # of the transitions: if so many are new to a shard, it gets weights at once
HURRIED_CALL: Final = 32  # transitions of one call from which the link model learns each only once


class TransitionReplay:
    """The last transitions, with the vectors of their candidates as they were when sent."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._added = 0
        self._transitions: list[tuple[NDArray[np.float32], float, NDArray[np.float32]]] = []

    def add(self, transition: Transition) -> None:
        """Keep a transition."""
        kept = transition.x, transition.earned, transition.candidates
        if len(self._transitions) < self._capacity:
            self._transitions.append(kept)
        else:
            self._transitions[self._added % self._capacity] = kept
        self._added += 1

    def batch(self, size: int, random: np.random.Generator) -> tuple[Batch, NDArray[np.float32]]:
        """Draw transitions uniformly with replacement; return them and their candidates [m, 9]."""
        drawn = [
            self._transitions[i]
            for i in random.integers(len(self._transitions), size=size).tolist()
        ]
        x, earned, candidates = zip(*drawn, strict=True)
        counts = np.array([*map(len, candidates)], dtype=np.int64)
        rewards = np.array(earned, dtype=np.float32)
        batch = Batch(np.array(x), rewards, np.arange(int(counts.sum())), counts)
        return batch, np.concatenate(candidates)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the transitions as arrays, in the order of their places."""
        transitions, width = self._transitions, len(FEATURES)
        return {
            "replay.added": np.array([self._added]),
            "replay.x": np.array([x for x, *_ in transitions], dtype="f4").reshape(-1, width),
            "replay.earned": np.array([earned for _, earned, _ in transitions], dtype="f4"),
            "replay.counts": np.array([len(each) for *_, each in transitions], dtype=np.int64),
            "replay.candidates": np.concatenate(
                [np.zeros((0, width), dtype="f4"), *(each for *_, each in transitions)]
            ),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Fill an empty replay."""
        ends = np.cumsum(state["replay.counts"])[:-1]
        parts = np.split(state["replay.candidates"], ends)
        columns = state["replay.x"], state["replay.earned"].tolist(), parts
        self._transitions = list(zip(*columns, strict=True)) if len(state["replay.x"]) else []
        self._added = int(state["replay.added"][0])


class Learner:
    """Learns Q and the link model from transitions, each of them once.

    If many come at once, the link model learns no earlier ones again, so that no shard waits long.
    """

    def __init__(self, setup: PolicyInputs, shards: int) -> None:
        self.steps = 0  # transitions learned
        self.hurried = 0  # of them from which the link model learned only once
        self.positions = [0] * shards
        self._options = setup.learning
        self._agent = DoubleDQN(setup.agent, setup.seed, reward_expected(setup.learning))
        self._replay = TransitionReplay(setup.learning.replay_capacity)
        self._random = np.random.default_rng(setup.seed)
        self._model = LinkModel(setup.links, *prior_of(), setup.link_prior)
        self._trainer = LinkTrainer(self._model, setup.links, setup.seed)

    def learn(self, shard: int, first: int, transitions: Sequence[bytes]) -> None:
        """Learn the transitions of a shard from number `first` on, each number once.

        If transitions before them are missing, nothing is learned: `positions` says what to send.
        A shard that goes back to a snapshot uses some numbers again: what it did before counts.
        """
        known = self.positions[shard] - first
        new = transitions[known:] if known >= 0 else []
        for packed in new:
            self._learn(Transition.unpacked(packed), hurried=len(new) >= HURRIED_CALL)
            self.positions[shard] += 1

    def has_news(self, steps: int) -> bool:
        """Return whether a shard that knows what was learned after `steps` should hear of it now.

        It should once much is new: early, a few experiences change everything.
        """
        return self.steps - steps > NEWS * steps

    @property
    def version(self) -> int:
        """The number of changes of the link model; it grows with each transition."""
        return self._model.steps

    def update_since(self, since: int = 0) -> WeightUpdate:
        """Return what was learned, with the weights of the link model that changed since."""
        where = self._model.changed(since)
        return WeightUpdate(
            self.steps,
            self._agent.updates,
            self._agent.online.parameters.copy(),
            where.astype(np.uint32),
            self._model.weights[where],
            self._model.squares[where],
            self._model.precisions[where],
        )

    def state(self) -> bytes:
        """Return everything that was learned, for `restore`."""
        kept = self._trainer.kept
        head = {
            "steps": self.steps,
            "updates": self._agent.updates,
            "hurried": self.hurried,
            "positions": self.positions,
            "random": random_state(self._random).decode(),
            "links": self._trainer.counts(),
        }
        links: dict[str, NDArray[Any]] = {
            "links.known": np.array([link.known[0] for link, _ in kept], dtype=np.float32),
            "links.counts": np.array([len(link.codes) for link, _ in kept], dtype=np.int64),
            "links.codes": np.concatenate(
                [np.zeros(0, dtype=np.uint32), *(link.codes for link, _ in kept)]
            ),
            "links.targets": np.array([target for _, target in kept], dtype=np.float64),
        }
        return save(
            {
                "head": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
                "agent": self._agent.state(),
                "model": np.frombuffer(self._model.state(), dtype=np.uint8),
                **links,
                **self._replay.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Load a state into a new learner; raise ValueError if it does not fit."""
        parts = load(state)
        head = json.loads(parts["head"].tobytes())
        if len(head["positions"]) != len(self.positions):
            raise ValueError("the learner's state is of another number of shards")
        self._agent.restore(parts["agent"], head["updates"])
        self._model.restore(parts["model"].tobytes())
        self._replay.restore(parts)
        restore_random(self._random, head["random"].encode())
        codes = np.split(parts["links.codes"], np.cumsum(parts["links.counts"])[:-1])
        links = zip(parts["links.known"], codes, parts["links.targets"].tolist(), strict=False)
        for known, some, target in links:
            self._trainer.keep(self._read(known, some), target)
        self._trainer.seen = self._trainer.restore(head["links"])
        self.steps, self.hurried = head["steps"], head["hurried"]
        self.positions = head["positions"]

    def _learn(self, transition: Transition, *, hurried: bool) -> None:
        self.steps += 1
        self.hurried += hurried
        link = self._read(transition.known, transition.codes)
        self._trainer.keep(link, transition.target)
        self._trainer.learn(link, transition.target, replays=not hurried)
        self._replay.add(transition)
        if learns_at(self._options, self.steps):
            batch, candidates = self._replay.batch(self._options.batch_size, self._random)
            self._agent.update(batch, candidates.__getitem__)

    def _read(self, known: NDArray[np.float32], codes: NDArray[np.uint32]) -> Links:
        """Return a link as the link model reads it."""
        owner = np.zeros(len(codes), dtype=np.int64)
        return self._model.read(known.reshape(1, -1), codes, owner)
