"""Double DQN over candidate actions of varying number (P 2.4.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tres_scrapy.agent.network import QNetwork
from tres_scrapy.agent.replay import Batch

Features = Callable[[NDArray[np.int64]], NDArray[np.float32]]


@dataclass(frozen=True)
class AgentOptions:
    """What the agent learns with; `gamma` is the paper's, the rest stands in the authors' code."""

    gamma: float = 0.3
    hidden: tuple[int, int] = (30, 15)
    learning_rate: float = 1e-3
    learning_rate_decay: float = 0.9
    gradient_clip: float = 1.0
    target_period: int = 500


class DoubleDQN:
    """An online and a target Q-network; the online one chooses, the target one values."""

    def __init__(self, options: AgentOptions, seed: int) -> None:
        self.options = options
        self.updates = 0
        self.online = QNetwork(options.hidden, torch.Generator().manual_seed(seed))
        self.target = copy.deepcopy(self.online).requires_grad_(requires_grad=False)
        self._optimizer = torch.optim.Adam(self.online.parameters(), lr=options.learning_rate)
        self._schedule = torch.optim.lr_scheduler.ExponentialLR(
            self._optimizer, options.learning_rate_decay
        )

    @property
    def learning_rate(self) -> float:
        """The present learning rate."""
        return float(self._optimizer.param_groups[0]["lr"])

    def q_values(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of the online network for x [n, 8] as [n]."""
        return _evaluate(self.online, x)

    def targets(self, batch: Batch, features: Features) -> NDArray[np.float32]:
        """Return y [B]: r + gamma Q_target(argmax over A~ of Q_online); r where A~ is empty."""
        y = batch.rewards.copy()
        some = batch.counts > 0
        if some.any():
            x = features(batch.candidates)
            best = _argmax_each(self.q_values(x), batch.counts[some])
            y[some] += self.options.gamma * _evaluate(self.target, x[best])
        return y

    def update(self, batch: Batch, features: Features) -> float:
        """Take one gradient step on mean (y - Q)^2; return that loss.

        `features` gives the present x(s, a) of candidate rows.
        """
        y = torch.from_numpy(self.targets(batch, features))
        q = self.online(torch.from_numpy(batch.x)).squeeze(1)
        loss = torch.nn.functional.mse_loss(q, y)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), self.options.gradient_clip)
        self._optimizer.step()
        self.updates += 1
        if self.updates % self.options.target_period == 0:
            self.target.load_state_dict(self.online.state_dict())
            self._schedule.step()
        return float(loss.detach())


def _evaluate(network: QNetwork, x: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.no_grad():
        q: NDArray[np.float32] = network(torch.from_numpy(x)).squeeze(1).numpy()
    return q


def _argmax_each(values: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of the first highest value of each consecutive group of `counts` > 0."""
    starts = np.cumsum(counts) - counts
    highest = np.repeat(np.maximum.reduceat(values, starts), counts)
    group = np.repeat(np.arange(len(counts)), counts)
    positions = np.flatnonzero(values == highest)
    _, first = np.unique(group[positions], return_index=True)
    return positions[first]
