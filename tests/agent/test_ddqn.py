import numpy as np
import pytest

from tres_scrapy.agent.ddqn import DoubleDQN
from tres_scrapy.agent.q_learner import Batch
from tres_scrapy.config.learning import AgentOptions
from tres_scrapy.frontier.feature import FEATURES, LINK

GAMMA = 0.3


def batch_of(counts, rewards, seed=0):
    """Return a batch over rows 0, 1, ... and the features of those rows."""
    random = np.random.default_rng(seed)
    rows = random.random((sum(counts), len(FEATURES))).astype(np.float32)
    x = random.random((len(counts), len(FEATURES))).astype(np.float32)
    batch = Batch(x, np.array(rewards, dtype=np.float32), np.arange(sum(counts)), np.array(counts))
    return batch, lambda wanted: rows[wanted]


def moved_apart(agent):
    """Make the target network differ from the online one."""
    agent.target.parameters[:] = 0.1 - agent.target.parameters
    return agent


def test_target_network_values_online_choice():
    """P 2.4.2: y_t equals the result of a loop over experiences."""
    agent = moved_apart(DoubleDQN(AgentOptions(gamma=GAMMA), seed=1))
    batch, features = batch_of([3, 0, 1, 5], [1, 0, 1, 0])
    x = features(batch.candidates)
    online = agent.q_values(x)
    target = agent.target.q_values(x)
    expected, start = [], 0
    for reward, count in zip(batch.rewards, batch.counts, strict=True):
        best = max(range(start, start + count), key=lambda i: online[i], default=None)
        expected.append(reward + (GAMMA * target[best] if best is not None else 0))
        start += count
    np.testing.assert_allclose(agent.targets(batch, features), expected, rtol=1e-5)


def test_targets_without_candidates_are_rewards():
    agent = DoubleDQN(AgentOptions(), seed=1)
    batch, features = batch_of([0, 0], [1, 0])
    assert agent.targets(batch, features).tolist() == [1, 0]


def test_updates_fit_bandit_rewards():
    """With gamma 0 and reward = feature 1, Q becomes feature 1."""
    agent = DoubleDQN(AgentOptions(gamma=0.0, learning_rate=1e-2), seed=1)
    for step in range(600):
        batch, features = batch_of([1] * 32, [0] * 32, seed=step)
        losses = agent.update(batch._replace(rewards=batch.x[:, 0]), features)
    x = batch_of([1] * 50, [0] * 50, seed=9999)[0].x
    assert losses < 0.01
    np.testing.assert_allclose(agent.q_values(x), x[:, 0], atol=0.25)


def test_target_network_follows_every_period():
    agent = DoubleDQN(AgentOptions(target_period=3, learning_rate_decay=0.5), seed=1)
    before = agent.target.parameters.copy()
    batch, features = batch_of([2, 2], [1, 0])
    for _ in range(3):
        assert (agent.target.parameters == before).all()
        agent.update(batch, features)
    assert agent.updates == 3
    assert (agent.target.parameters == agent.online.parameters).all()
    assert (agent.target.parameters != before).any()
    assert agent.learning_rate == pytest.approx(5e-4)


def test_same_seed_same_network():
    first, second = (DoubleDQN(AgentOptions(), seed=7) for _ in range(2))
    x = np.random.default_rng(0).random((4, len(FEATURES))).astype(np.float32)
    assert first.q_values(x).tolist() == second.q_values(x).tolist()
    assert first.q_values(x).tolist() != DoubleDQN(AgentOptions(), seed=8).q_values(x).tolist()


def test_infinite_gradient_takes_no_step():
    agent = DoubleDQN(AgentOptions(), seed=0)
    before = agent.state()
    batch = Batch(
        np.ones((2, len(FEATURES)), dtype=np.float32),
        np.array([1.0, np.nan], dtype=np.float32),
        np.zeros(0, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    agent.update(batch, lambda rows: np.zeros((len(rows), len(FEATURES)), dtype=np.float32))
    assert (agent.updates, agent.skipped) == (0, 1)
    np.testing.assert_array_equal(agent.state(), before)


def update(agent, seed):
    x = np.random.default_rng(seed).random((4, len(FEATURES)), dtype=np.float32)
    batch = Batch(x, x[:, 0], np.arange(4), np.ones(4, dtype=np.int64))
    agent.update(batch, lambda rows: x[rows])


def test_rate_stops_at_a_quarter():
    options = AgentOptions(target_period=1)
    agent, rates = DoubleDQN(options, seed=0), []
    for _ in range(20):
        update(agent, 0)
        rates.append(agent.learning_rate)
        restored = DoubleDQN(options, seed=1)
        restored.restore(agent.state(), agent.updates)
        assert restored.learning_rate == agent.learning_rate
    assert rates[:2] == pytest.approx([9e-4, 8.1e-4])
    assert rates[12] > rates[13] == rates[-1] == 2.5e-4


def test_rate_without_floor_keeps_falling():
    agent = DoubleDQN(AgentOptions(target_period=1, learning_rate_floor=0.0), seed=0)
    for _ in range(30):
        update(agent, 0)
    assert agent.learning_rate == pytest.approx(1e-3 * 0.9**30)
    restored = DoubleDQN(agent.options, seed=1)
    restored.restore(agent.state(), agent.updates)
    assert restored.learning_rate == agent.learning_rate


def test_restored_agent_continues_learning():
    random = np.random.default_rng(0)
    agent, restored = (
        DoubleDQN(AgentOptions(target_period=5), seed=0),
        DoubleDQN(AgentOptions(target_period=5), seed=1),
    )
    for seed in range(7):
        update(agent, seed)
    restored.restore(agent.state(), agent.updates)
    assert restored.learning_rate == agent.learning_rate
    for seed in range(7, 12):
        update(agent, seed)
        update(restored, seed)
    np.testing.assert_array_equal(restored.state(), agent.state())
    x = random.random((3, len(FEATURES)), dtype=np.float32)
    np.testing.assert_array_equal(restored.q_values(x), agent.q_values(x))


@pytest.mark.parametrize("value", [0.0, np.nan, 1e7, -1.0])
def test_what_is_no_state_is_refused(value):
    agent = DoubleDQN(AgentOptions(target_period=5), seed=0)
    size = len(agent.state())
    for length in [0, 7] if value == 0 else [size]:
        with pytest.raises(ValueError, match="does not fit this agent"):
            agent.restore(np.full(length, value, dtype=np.float32), 1)


def test_prior_is_q_before_learning():
    agent = DoubleDQN(AgentOptions(), 0, lambda x: x[:, LINK])
    x = batch_of([0] * 20, [1] * 20)[0].x
    assert agent.q_values(x).tolist() == x[:, LINK].tolist()
    for seed in range(20):
        update(agent, seed)
    assert agent.q_values(x).tolist() != x[:, LINK].tolist()
