"""Double DQN over candidate actions of varying number (P 2.4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.adam import Adam
from tres_scrapy.agent.network import Prior, QNetwork
from tres_scrapy.agent.replay import Batch
from tres_scrapy.config.learning import AgentOptions

_LARGEST = 1e6  # weight allowed in a file: no sum of products overflows
_TINY = 1e-6  # added to the norm of a gradient before it divides

Features = Callable[[NDArray[np.int64]], NDArray[np.float32]]


class DoubleDQN:
    """An online Q-network chooses the best action; a target Q-network evaluates it."""

    def __init__(self, options: AgentOptions, seed: int, prior: Prior | None = None) -> None:
        self.options = options
        self.updates = 0
        self.skipped = 0  # updates whose gradient was not finite
        self.learning_rate = options.learning_rate  # the current one
        self.online = QNetwork.seeded(options.hidden, seed, prior)
        self.target = self.online.copy()
        self._optimizer = Adam(self.online.parameters)

    def state(self) -> NDArray[np.float32]:
        """Return the learned state, except the number of updates, as one vector [4 P].

        For P parameters it holds the online network, the target network and Adam's two means.
        """
        return np.concatenate(self._parts)

    def restore(self, state: NDArray[np.float32], updates: int) -> None:
        """Load a state [4 P] saved after `updates`; raise ValueError if it does not fit."""
        size = len(self.online.parameters)
        known = len(state) == 4 * size and updates >= 0 and (np.abs(state) <= _LARGEST).all()
        if not known or (state[3 * size :] < 0).any():  # the last part holds mean squares
            raise ValueError("the saved state does not fit this agent")
        for part, saved in zip(self._parts, np.split(state, 4), strict=True):
            part[:] = saved
        self.updates = self._optimizer.steps = updates
        self.learning_rate = self.options.learning_rate
        for _ in range(updates // self.options.target_period):
            if not self._cut_rate():
                break

    def q_values(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of the online network for x [n, 9] as [n]."""
        return self.online.q_values(x)

    def targets(self, batch: Batch, features: Features) -> NDArray[np.float32]:
        """Return y [B]: r + gamma Q_target(argmax over A~ of Q_online), or r if A~ is empty."""
        y = batch.rewards.copy()
        some = batch.counts > 0
        if some.any():
            x = features(batch.candidates)
            best = _argmax_each(self.q_values(x), batch.counts[some])
            y[some] += self.options.gamma * self.target.q_values(x[best])
        return y

    def update(self, batch: Batch, features: Features) -> float:
        """Take one gradient step on mean (y - Q)^2 and return that loss.

        `features` returns the current x(s, a) of candidate rows. A step whose gradient is not
        finite is skipped and counted, because it would make every Q NaN.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            loss, gradient = self.online.loss(batch.x, self.targets(batch, features))
            norm = math.sqrt(gradient @ gradient)
        if not math.isfinite(norm):
            self.skipped += 1
            return loss
        gradient *= min(1.0, self.options.gradient_clip / (norm + _TINY))
        self._optimizer.step(gradient, self.learning_rate)
        self.updates += 1
        if self.updates % self.options.target_period == 0:
            self.target.parameters[:] = self.online.parameters
            self._cut_rate()
        return loss

    def _cut_rate(self) -> bool:
        """Lower the learning rate one step; return whether it changed."""
        before, options = self.learning_rate, self.options
        lowest = options.learning_rate * options.learning_rate_floor
        self.learning_rate = max(lowest, before * options.learning_rate_decay)
        return self.learning_rate < before

    @property
    def _parts(self) -> tuple[NDArray[np.float32], ...]:
        adam = self._optimizer
        return self.online.parameters, self.target.parameters, adam.mean, adam.square


def _argmax_each(values: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of the first highest value of each consecutive group of `counts` > 0."""
    starts = np.cumsum(counts) - counts
    highest = np.repeat(np.maximum.reduceat(values, starts), counts)
    positions = np.flatnonzero(values == highest)
    first: NDArray[np.int64] = positions[np.searchsorted(positions, starts)]
    return first
