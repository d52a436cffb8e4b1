"""The Q-network and its steps in NumPy equal those of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters

from tres_scrapy.agent.ddqn import LEAK, MAX_LOG, Batch, DoubleDQN, QNetwork
from tres_scrapy.config.learning import AgentOptions
from tres_scrapy.frontier.feature import FEATURES, LINK

HIDDEN = AgentOptions.hidden


def link(x):
    return x[:, LINK]


PRIORS = {False: None, True: link}
BOTH_FORMS = pytest.mark.parametrize("prior", [False, True])


class Reference(nn.Module):
    """The Q-network in PyTorch; its parameters have the same order."""

    def __init__(self, parameters: np.ndarray, *, prior: bool) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(1)) if prior else None
        first, second = HIDDEN
        self.mlp = nn.Sequential(
            *(nn.Linear(len(FEATURES), first), nn.LeakyReLU(LEAK)),
            *(nn.Linear(first, second), nn.LeakyReLU(LEAK), nn.Linear(second, 1)),
        )
        self.double()
        vector_to_parameters(torch.from_numpy(parameters).double(), self.parameters())

    def forward(self, x: np.ndarray) -> torch.Tensor:
        inputs = torch.from_numpy(x).double()
        m = self.mlp(inputs)[:, 0]
        if self.value is None:
            return m
        return self.value + inputs[:, LINK] * torch.exp(m.clamp(-MAX_LOG, MAX_LOG))


def vector(parameters):
    return parameters_to_vector(parameters).detach().numpy()


def network_of(seed, prior, scale):
    """Return a network all of whose parameters are random, in float64 for an exact comparison."""
    random = np.random.default_rng(seed)
    parameters = QNetwork.seeded(HIDDEN, seed, PRIORS[prior]).parameters
    noise = random.normal(scale=scale, size=len(parameters))
    return QNetwork(parameters + noise, HIDDEN, PRIORS[prior])


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 2100),
    scale=st.sampled_from([0.05, 0.3, 1.0]),
    prior=st.booleans(),
)
def test_q_values_equal_pytorch(seed, count, scale, prior):
    network = network_of(seed, prior, scale)
    x = np.random.default_rng(seed).random((count, len(FEATURES)), dtype=np.float32)
    with torch.no_grad():
        expected = Reference(network.parameters, prior=prior)(x).numpy()
    np.testing.assert_allclose(network.q_values(x), expected, rtol=1e-9, atol=1e-9)


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 70),
    scale=st.sampled_from([0.05, 0.3, 1.0]),
    prior=st.booleans(),
)
def test_every_gradient_equals_pytorch(seed, count, scale, prior):
    network = network_of(seed, prior, scale)
    x, y = np.split(np.random.default_rng(seed).random((count, len(FEATURES) + 1)), [-1], axis=1)
    reference = Reference(network.parameters, prior=prior)
    expected = nn.functional.mse_loss(reference(x), torch.from_numpy(y[:, 0]))
    expected.backward()
    loss, gradient = network.loss(x, y[:, 0])
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    wanted = vector([parameter.grad for parameter in reference.parameters()])
    np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-11)


class ReferenceAgent:
    """Double DQN by automatic differentiation."""

    def __init__(self, agent: DoubleDQN, *, prior: bool) -> None:
        self.options = agent.options
        self.online, self.target = (
            Reference(agent.online.parameters, prior=prior) for _ in range(2)
        )
        self.optimizer = torch.optim.Adam(self.online.parameters(), self.options.learning_rate)
        self.clipped = self.updates = 0

    def update(self, batch: Batch, features) -> float:
        options, counts = self.options, batch.counts.tolist()
        y = torch.from_numpy(batch.rewards).double()
        with torch.no_grad():
            x = features(batch.candidates)
            each = zip(self.online(x).split(counts), self.target(x).split(counts), strict=True)
            for i, (online, target) in enumerate(each):
                if counts[i]:
                    y[i] += options.gamma * target[online.argmax()]
        loss = nn.functional.mse_loss(self.online(batch.x), y)
        self.optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(self.online.parameters(), options.gradient_clip)
        self.clipped += bool(norm > options.gradient_clip)
        self.optimizer.step()
        self.updates += 1
        if self.updates % options.target_period == 0:
            self.target.load_state_dict(self.online.state_dict())
            self.optimizer.param_groups[0]["lr"] *= options.learning_rate_decay
        return loss.item()


@BOTH_FORMS
def test_fifty_steps_equal_pytorch(prior):
    """Targets, loss, clipping, Adam, the target network and the learning rate."""
    options = AgentOptions(target_period=8)
    agent = DoubleDQN(options, 3, PRIORS[prior])
    reference = ReferenceAgent(agent, prior=prior)
    random = np.random.default_rng(0)
    store = random.random((400, len(FEATURES)), dtype=np.float32)
    for _ in range(50):
        counts = random.integers(0, 9, size=32)
        candidates = random.integers(len(store), size=counts.sum())
        x = store[random.integers(len(store), size=32)]
        rewards = (random.random(32) < x[:, 5]) * random.choice([0.25, 4])
        batch = Batch(x, rewards.astype(np.float32), candidates, counts)
        expected = reference.update(batch, store.__getitem__)
        assert agent.update(batch, store.__getitem__) == pytest.approx(expected, rel=1e-5)
    assert 0 < reference.clipped < 50
    for network, other in ((agent.online, reference.online), (agent.target, reference.target)):
        np.testing.assert_allclose(network.parameters, vector(other.parameters()), atol=2e-6)
    state = reference.optimizer.state
    for name, found in zip(("exp_avg", "exp_avg_sq"), np.split(agent.state(), 4)[2:], strict=True):
        expected = vector([state[parameter][name] for parameter in reference.online.parameters()])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


@BOTH_FORMS
@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**40 + 3])
def test_first_weights_are_those_of_pytorch(seed, prior):
    """A crawl begins with the network that its seed had in earlier versions."""
    generator = torch.Generator().manual_seed(seed)
    network = QNetwork.seeded(HIDDEN, seed, PRIORS[prior])
    reference = Reference(np.zeros_like(network.parameters), prior=prior).float()
    for layer in reference.mlp[::2][: 2 if prior else 3]:
        nn.init.kaiming_uniform_(layer.weight, a=LEAK, generator=generator)
    np.testing.assert_array_equal(network.parameters, vector(reference.parameters()))
