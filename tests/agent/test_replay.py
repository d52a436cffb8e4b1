import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.agent.q_learner import Replay
from tres_scrapy.frontier.feature import FEATURES


def vector(value):
    return np.full(len(FEATURES), value, dtype=np.float32)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_replay_equals_a_list(pages, capacity):
    """Compare the replay with a list of every candidate of every experience."""
    replay = Replay(capacity, np.random.default_rng(0))
    kept = []
    row = 100
    for number, (outlinks, sampled) in enumerate(pages):
        rows = np.arange(row, row + outlinks)
        row += outlinks
        ticket = replay.add(vector(number), float(number % 2), rows)
        candidates = rows.tolist()
        if sampled:
            replay.note_sampled(ticket, number)
            candidates.append(number)
        kept = [*kept, (number, number % 2, candidates)][-capacity:]
    assert len(replay) == len(kept)
    batch = replay.batch(40)
    ends = np.cumsum(batch.counts)
    for i in range(40):
        number = int(batch.x[i, 0])
        candidates = batch.candidates[ends[i] - batch.counts[i] : ends[i]].tolist()
        assert (number, int(batch.rewards[i]), candidates) in kept


def test_overwritten_experience_ignores_late_sample():
    replay = Replay(1, np.random.default_rng(0))
    ticket = replay.add(vector(0), 1.0, np.arange(2))
    replay.add(vector(1), 0.0, np.arange(2, 3))
    replay.note_sampled(ticket, 9)
    assert replay.batch(1).candidates.tolist() == [2]


def test_every_experience_is_drawn():
    replay = Replay(10, np.random.default_rng(0))
    for number in range(10):
        replay.add(vector(number), 0.0, np.zeros(0, dtype=np.int64))
    assert set(replay.batch(500).x[:, 0]) == set(range(10))
