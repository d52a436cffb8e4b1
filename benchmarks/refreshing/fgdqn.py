"""Full-gradient DQN over arms (paper, section 3, Algorithm 1 and Eq. 9)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from refreshing.simulation import Bandit
from tres_scrapy.refresh.page_table import Floats

State = NDArray[np.float32]


@dataclass(frozen=True)
class FgDqnOptions:
    """The parameters of the agent; hidden layers, gamma and epsilon are the paper's."""

    hidden: tuple[int, int] = (4000, 8)
    gamma: float = 0.95
    learning_rate: float = 1e-3
    batch_size: int = 32
    replay_capacity: int = 10_000
    first_epsilon: float = 0.7
    epsilon_decay: float = 0.998
    last_epsilon: float = 0.1


class FgDqnBandit(Bandit):
    """Learns Q of the state and chooses the best arm, or in a share epsilon of the slots any arm.

    The state is ln X and Y of each arm, [2K]. X counts the slots since the arm was chosen, from 1
    in the next slot; Y is 1 if the page fetched then had changed. The reward is the importance of
    the arm if the page had changed. One gradient step a slot, by Adam, which needs no noise xi.
    """

    def __init__(self, weights: Floats, options: FgDqnOptions, seed: int) -> None:
        self.options, self.learns = options, True
        self._weights, self._random = weights, np.random.default_rng(seed)
        arms = len(weights)
        generator = torch.Generator().manual_seed(seed)
        self.network = _network((2 * arms, *options.hidden, arms), generator)
        self._optimiser = torch.optim.Adam(
            self.network.parameters(), options.learning_rate, fused=True
        )
        self._waited = np.ones(arms)  # X
        self._changed = np.zeros(arms)  # Y
        self._replay = ArmReplay(options.replay_capacity, 2 * arms)
        self.slots = 0

    @property
    def epsilon(self) -> float:
        """The probability of a random arm."""
        options = self.options
        falling = options.first_epsilon * options.epsilon_decay**self.slots
        return max(options.last_epsilon, falling) if self.learns else 0.0

    @property
    def state(self) -> State:
        """The present state, [2K]."""
        return np.concatenate([np.log(self._waited), self._changed]).astype(np.float32)

    def choose(self) -> int:
        """Return the arm with the highest Q, or with probability epsilon any."""
        if self._random.random() < self.epsilon:
            return int(self._random.integers(len(self._weights)))
        with torch.no_grad():
            return int(self.network(torch.from_numpy(self.state)).argmax())

    def learn(self, arm: int, changed: bool) -> None:
        """Count the slot, store the experience and take a gradient step (Eq. 4, 5 and 9)."""
        before = self.state
        self._waited += 1
        self._waited[arm] = 1  # X counts from 1
        self._changed[arm] = changed
        self.slots += 1
        if self.learns:
            self._replay.add(before, arm, self._weights[arm] * changed, self.state)
            if len(self._replay) >= self.options.batch_size:
                self._step()

    def loss(self, batch: ArmBatch) -> torch.Tensor:
        """Return half the mean squared Bellman error with the gradient of max Q of the next state.

        DQN treats that maximum as a constant and needs a target network; FG-DQN does not.
        """
        both = self.network(torch.cat([batch.states, batch.following]))  # [2B, K]
        q, following = both.chunk(2)
        best = following.max(dim=1).values
        error = batch.rewards + self.options.gamma * best - q.gather(1, batch.arms[:, None])[:, 0]
        loss: torch.Tensor = 0.5 * (error**2).mean()
        return loss

    def _step(self) -> None:
        self._optimiser.zero_grad()
        self.loss(self._replay.batch(self.options.batch_size, self._random)).backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()


@dataclass(frozen=True)
class ArmBatch:
    """Experiences (Z, U, R, Z'): [B, 2K], [B], [B], [B, 2K]."""

    states: torch.Tensor
    arms: torch.Tensor
    rewards: torch.Tensor
    following: torch.Tensor


class ArmReplay:
    """The last `capacity` experiences."""

    def __init__(self, capacity: int, size: int) -> None:
        self._states = np.zeros((capacity, size), np.float32)
        self._following = np.zeros((capacity, size), np.float32)
        self._arms = np.zeros(capacity, np.int64)
        self._rewards = np.zeros(capacity, np.float32)
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, len(self._arms))

    def add(self, state: State, arm: int, reward: float, following: State) -> None:
        """Store one experience; a full replay drops the oldest."""
        place = self._added % len(self._arms)
        self._states[place], self._following[place] = state, following
        self._arms[place], self._rewards[place] = arm, reward
        self._added += 1

    def batch(self, size: int, random: np.random.Generator) -> ArmBatch:
        """Draw `size` experiences uniformly with replacement."""
        drawn = random.integers(len(self), size=size)
        columns = (self._states, self._arms, self._rewards, self._following)
        return ArmBatch(*(torch.from_numpy(column[drawn]) for column in columns))


def _network(sizes: tuple[int, ...], generator: torch.Generator) -> nn.Sequential:
    """Return an MLP with ReLU between its layers and weights drawn from `generator`."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        layer = nn.Linear(fan_in, fan_out)
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -(fan_in**-0.5), fan_in**-0.5, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
