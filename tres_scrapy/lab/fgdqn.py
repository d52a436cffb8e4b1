"""Full-gradient DQN over arms (paper, section 3, Algorithm 1 and Eq. 9)."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tres_scrapy.lab.refresh_policies import Bandit
from tres_scrapy.refresh.page_table import Mask
from tres_scrapy.refresh.rate import Floats

State = NDArray[np.float32]


@dataclass(frozen=True)
class FgDqnOptions:
    """The parameters of the agent; hidden layers, gamma and epsilon are the paper's."""

    hidden: tuple[int, int] = (4000, 8)
    gamma: float = 0.95
    learning_rate: float = 1e-3
    optimiser: str = "adam"  # or sgd, as Eq. 9 is written
    noise: float = 0.0  # Eq. 9 adds xi, uniform on [-1, 1], to the gradient; Adam needs none
    batch_size: int = 32
    replay_capacity: int = 10_000
    first_epsilon: float = 0.7
    epsilon_decay: float = 0.998
    last_epsilon: float = 0.1
    full_gradient: bool = True  # False: no gradient through max Q of the next state, as in DQN


class FgDqnBandit(Bandit):
    """Learns Q of the state and chooses the best arm, or in a share epsilon of the slots any arm.

    The state is ln X and Y of each arm, [2K]. X counts the slots since the arm was chosen, from 1
    in the next slot; Y is 1 if the page fetched then had changed. The reward is the importance of
    the arm if the page had changed. One gradient step a slot.
    """

    def __init__(self, weights: Floats, options: FgDqnOptions, seed: int) -> None:
        self.options, self.learns = options, True
        self._weights, self._random = weights, np.random.default_rng(seed)
        generator = torch.Generator().manual_seed(seed)
        self._noise = generator
        arms = len(weights)
        self.network = _network((2 * arms, *options.hidden, arms), generator)
        parameters = self.network.parameters()
        self._optimiser: torch.optim.Optimizer
        if options.optimiser == "adam":
            self._optimiser = torch.optim.Adam(parameters, options.learning_rate, fused=True)
        else:
            self._optimiser = torch.optim.SGD(parameters, options.learning_rate)
        self._waited = np.ones(arms)  # X
        self._changed = np.zeros(arms)  # Y
        self._out: dict[int, deque[State]] = defaultdict(deque)  # states of open choices
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

    def choose(self, allowed: Mask) -> int:
        """Return the allowed arm with the highest Q, or with probability epsilon any."""
        if self._random.random() < self.epsilon:
            return int(self._random.choice(np.flatnonzero(allowed)))
        with torch.no_grad():
            q = self.network(torch.from_numpy(self.state)).numpy()
        return int(np.argmax(np.where(allowed, q, -np.inf)))

    def begin(self, arm: int) -> None:
        """Keep the state of the choice and count the slot (Eq. 4; X counts from 1)."""
        self._out[arm].append(self.state)
        self._waited += 1
        self._waited[arm] = 1
        self.slots += 1

    def end(self, arm: int, changed: bool | None) -> None:
        """Store the experience and take a gradient step (Eq. 5 and 9)."""
        state = self._out[arm].popleft() if self._out[arm] else None
        if changed is None or state is None:
            return
        self._changed[arm] = changed
        if not self.learns:
            return
        self._replay.add(state, arm, self._weights[arm] * changed, self.state)
        if len(self._replay) >= self.options.batch_size:
            self._learn()

    def loss(self, batch: ArmBatch) -> torch.Tensor:
        """Return half the mean squared Bellman error with the gradient of max Q of the next state.

        DQN treats that maximum as a constant and needs a target network; FG-DQN does not.
        """
        both = self.network(torch.cat([batch.states, batch.following]))  # [2B, K]
        q, following = both.chunk(2)
        best = following.max(dim=1).values
        best = best if self.options.full_gradient else best.detach()
        error = batch.rewards + self.options.gamma * best - q.gather(1, batch.arms[:, None])[:, 0]
        loss: torch.Tensor = 0.5 * (error**2).mean()
        return loss

    def dump(self) -> bytes:
        """Return the slots and the parameters of the network."""
        vector = parameters_to_vector(self.network.parameters()).detach().numpy()
        return self.slots.to_bytes(8, "big") + vector.astype(np.float32).tobytes()

    def restore(self, state: bytes) -> None:
        """Load slots and network; raise ValueError if the network has another size."""
        weights = np.frombuffer(state[8:], np.float32)
        size = sum(parameter.numel() for parameter in self.network.parameters())
        if len(weights) != size or not np.isfinite(weights).all():
            raise ValueError("the network does not fit these arms")
        vector_to_parameters(torch.from_numpy(weights.copy()), self.network.parameters())
        self.slots = int.from_bytes(state[:8], "big")

    def _learn(self) -> None:
        self._optimiser.zero_grad()
        self.loss(self._replay.batch(self.options.batch_size, self._random)).backward()  # type: ignore[no-untyped-call]
        if self.options.noise:
            for parameter in self.network.parameters():
                assert parameter.grad is not None
                xi = torch.rand(parameter.shape, generator=self._noise) * 2 - 1
                parameter.grad += self.options.noise * xi
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
