"""Double DQN over candidate actions of varying number (P 2.4.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils import clip_grad_norm_, parameters_to_vector

from tres_scrapy.agent.network import QNetwork
from tres_scrapy.agent.replay import Batch
from tres_scrapy.config.learning import AgentOptions

_LARGEST = 1e6  # weight allowed in a file: no sum of products overflows
_MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's, by their names in its state

Features = Callable[[NDArray[np.int64]], NDArray[np.float32]]


class DoubleDQN:
    """An online Q-network chooses the best action; a target Q-network evaluates it."""

    def __init__(
        self, options: AgentOptions, seed: int, *, prior: bool = False, breadth: float = 0.0
    ) -> None:
        self.options = options
        self.updates = 0
        self.skipped = 0  # updates whose gradient was not finite
        generator = torch.Generator().manual_seed(seed)
        self.online = QNetwork(options.hidden, generator, prior=prior, breadth=breadth)
        self.target = copy.deepcopy(self.online).requires_grad_(requires_grad=False)
        self._optimizer = torch.optim.Adam(self.online.parameters(), lr=options.learning_rate)

    @property
    def learning_rate(self) -> float:
        """The current learning rate."""
        return float(self._optimizer.param_groups[0]["lr"])

    def state(self) -> NDArray[np.float32]:
        """Return the learned state, except the number of updates, as one vector [4 P].

        For P parameters it holds the online network, the target network and Adam's two moments.
        """
        networks = [*self.online.parameters(), *self.target.parameters()]
        moments = [moment for name in _MOMENTS for moment in self._moments(name)]
        vector: NDArray[np.float32] = parameters_to_vector(networks + moments).detach().numpy()
        return vector

    def restore(self, state: NDArray[np.float32], updates: int) -> None:
        """Load a state [4 P] saved after `updates`; raise ValueError if it does not fit."""
        parameters = list(self.online.parameters())
        size = sum(parameter.numel() for parameter in parameters)
        known = len(state) == 4 * size and updates >= 0 and (np.abs(state) <= _LARGEST).all()
        if not known or (state[3 * size :] < 0).any():  # the last part holds mean squares
            raise ValueError("the saved state does not fit this agent")
        online, target, *moments = torch.from_numpy(state).chunk(4)
        _fill(parameters, online)
        _fill(list(self.target.parameters()), target)
        self.updates = updates
        self._optimizer.param_groups[0]["lr"] = self.options.learning_rate
        for _ in range(updates // self.options.target_period):
            if not self._cut_rate():
                break
        for name, moment in zip(_MOMENTS, moments, strict=True):
            filled = [torch.zeros_like(parameter) for parameter in parameters]
            _fill(filled, moment)
            for parameter, tensor in zip(parameters, filled, strict=True):
                adam = self._optimizer.state[parameter]
                adam |= {"step": torch.tensor(float(updates)), name: tensor}

    def q_values(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of the online network for x [n, 9] as [n]."""
        return _evaluate(self.online, x)

    def targets(self, batch: Batch, features: Features) -> NDArray[np.float32]:
        """Return y [B]: r + gamma Q_target(argmax over A~ of Q_online), or r if A~ is empty."""
        y = batch.rewards.copy()
        some = batch.counts > 0
        if some.any():
            x = features(batch.candidates)
            best = _argmax_each(self.q_values(x), batch.counts[some])
            y[some] += self.options.gamma * _evaluate(self.target, x[best])
        return y

    def update(self, batch: Batch, features: Features) -> float:
        """Take one gradient step on mean (y - Q)^2 and return that loss.

        `features` returns the current x(s, a) of candidate rows. A step whose gradient is not
        finite is skipped and counted, because it would make every Q NaN.
        """
        y = torch.from_numpy(self.targets(batch, features))
        q = self.online(torch.from_numpy(batch.x)).squeeze(1)
        loss = torch.nn.functional.mse_loss(q, y)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(self.online.parameters(), self.options.gradient_clip)
        if not torch.isfinite(norm):
            self.skipped += 1
            return float(loss.detach())
        self._optimizer.step()
        self.updates += 1
        if self.updates % self.options.target_period == 0:
            self.target.load_state_dict(self.online.state_dict())
            self._cut_rate()
        return float(loss.detach())

    def _cut_rate(self) -> bool:
        """Lower the learning rate one step; return whether it changed."""
        before, options = self.learning_rate, self.options
        lowest = options.learning_rate * options.learning_rate_floor
        rate = max(lowest, before * options.learning_rate_decay)
        self._optimizer.param_groups[0]["lr"] = rate
        return rate < before

    def _moments(self, name: str) -> list[torch.Tensor]:
        state = self._optimizer.state  # empty until the first step
        return [
            state[parameter][name] if parameter in state else torch.zeros_like(parameter)
            for parameter in self.online.parameters()
        ]


def _fill(tensors: Sequence[torch.Tensor], vector: torch.Tensor) -> None:
    """Copy a vector into tensors with the same total number of elements."""
    parts = torch.split(vector, [tensor.numel() for tensor in tensors])
    with torch.no_grad():
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))


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
