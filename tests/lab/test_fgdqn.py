"""FG-DQN: the gradient of Eq. 9, the state of Eq. 4 and 5, and that it learns."""

import numpy as np
import pytest
import torch
from refreshing.fgdqn import ArmBatch, ArmReplay, FgDqnBandit, FgDqnOptions
from refreshing.simulation import SINGLE, BanditPolicy, ThompsonBandit, simulate

SMALL = FgDqnOptions(hidden=(16, 8))
WEIGHTS = np.array([5.0, 0.2, 1.0])


def random_batch(size=32):
    generator = torch.Generator().manual_seed(1)
    states, following = torch.randn(2, size, 6, generator=generator)
    arms = torch.randint(3, (size,), generator=generator)
    return ArmBatch(states, arms, torch.rand(size, generator=generator), following)


def bias_gradient():
    """Return the gradient of the loss by the output biases, and its two parts by Eq. 9."""
    agent, batch = FgDqnBandit(WEIGHTS, SMALL, 0), random_batch()
    agent.network.double()
    batch = ArmBatch(
        batch.states.double(), batch.arms, batch.rewards.double(), batch.following.double()
    )
    agent.loss(batch).backward()
    with torch.no_grad():
        q = agent.network(batch.states)[torch.arange(32), batch.arms]
        best = agent.network(batch.following).max(dim=1)
    error = batch.rewards + SMALL.gamma * best.values - q
    own = [-(error * (batch.arms == arm)).mean() for arm in range(3)]
    next_ = [SMALL.gamma * (error * (best.indices == arm)).mean() for arm in range(3)]
    return agent.network[-1].bias.grad, torch.stack(own), torch.stack(next_)


@pytest.mark.long
def test_gradient_is_that_of_equation_9():
    """mean of delta (gamma grad max Q(Z') - grad Q(Z, U)): both terms, and descent, not ascent."""
    gradient, own, following = bias_gradient()
    assert (gradient - own - following).abs().max() < 1e-15


def test_state_remembers_slot_and_result():
    """Eq. 4 and 5, with X the slots elapsed at the next decision."""
    agent = FgDqnBandit(WEIGHTS, SMALL, 0)
    for arm, changed in ((0, True), (1, False), (1, True)):
        agent.learn(arm, changed)
    assert np.exp(agent.state[:3]) == pytest.approx([3, 1, 4])
    assert agent.state[3:].tolist() == [1, 1, 0]


def test_experience_has_both_states():
    agent = FgDqnBandit(WEIGHTS, SMALL, 0)
    before = agent.state.tolist()
    agent.learn(0, True)
    replay = agent._replay
    assert replay._states[0].tolist() == before
    assert replay._following[0].tolist() == agent.state.tolist()
    assert (replay._arms[0], replay._rewards[0]) == (0, 5)


def test_exploration_falls_to_its_floor():
    agent = FgDqnBandit(WEIGHTS, SMALL, 0)
    assert agent.epsilon == 0.7
    agent.slots = 972
    assert agent.epsilon == pytest.approx(0.1, abs=1e-4)
    agent.learns = False
    assert agent.epsilon == 0
    assert len({agent.choose() for _ in range(9)}) == 1


def test_replay_forgets_the_oldest():
    replay = ArmReplay(3, 1)
    for number in range(5):
        replay.add(np.array([number], np.float32), number, 0.0, np.zeros(1, np.float32))
    assert len(replay) == 3
    assert set(replay.batch(50, np.random.default_rng(0)).arms.tolist()) == {2, 3, 4}


@pytest.mark.long
def test_fgdqn_passes_thompson_sampling():
    """P Fig. 1 to 4; the paper's own run is in benchmarks/refresh.py."""
    options = FgDqnOptions(hidden=(256, 8))

    def last(make, seed):
        trace = simulate(SINGLE, lambda p, r: BanditPolicy(p, make(p, r, seed)), 3_000, seed)
        return trace.last(1_500)

    learnt = [
        last(lambda p, r, seed: FgDqnBandit(p.weights, options, seed), seed) for seed in range(2)
    ]
    sampled = [last(lambda p, r, seed: ThompsonBandit(np.ones(4), r), seed) for seed in range(2)]
    assert np.mean(learnt) > np.mean(sampled) + 0.1
