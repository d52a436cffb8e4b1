import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.cluster.outbox import DELIVERED, NEWS, SendSchedule


def calls(rhythm, arrivals, step=0.25):
    """Deliver what is due at each step; return the time and the batches of each delivery."""
    found, known, new = [], 0, 0
    for number, some in enumerate(arrivals):
        new += some
        if rhythm.take_turn(1, new, known, number * step):
            found.append((number * step, new))
            known, new = known + new, 0
    return found


def test_first_batches_go_at_once():
    assert calls(SendSchedule(), [1] * 8) == [(0.25 * number, 1) for number in range(8)]


def test_later_batches_wait_for_others():
    found = calls(SendSchedule(1.0), [20] + [1] * 12)
    assert found == [(0.0, 20), (0.75, 3), (1.5, 3), (2.25, 3), (3.0, 3)]
    assert [now for now, _ in calls(SendSchedule(1.0), [100] + [1] * 12)] == [0.0, 1.0, 2.0, 3.0]


def test_shards_do_not_wait_for_each_other():
    rhythm = SendSchedule()
    assert rhythm.take_turn(1, 1, 100, 0.0)
    assert rhythm.take_turn(2, 1, 100, 0.1)
    assert not rhythm.take_turn(1, 1, 101, 0.1)


@pytest.mark.parametrize("now", [0.0, 5.0])
def test_nothing_new_is_never_due(now):
    assert not SendSchedule().take_turn(1, 0, 0, now)


@given(st.lists(st.integers(0, 300), max_size=60))
def test_no_batch_waits_long(arrivals):
    """At each moment little is new to a shard, or it got something within the last second."""
    rhythm = SendSchedule(1.0)
    known, new, last = 0, 0, 0.0
    for number, some in enumerate(arrivals):
        new, now = new + some, number * 0.25
        if rhythm.take_turn(1, new, known, now):
            known, new, last = known + new, 0, now
        assert not new or (now - last < 1 and new < DELIVERED and new <= NEWS * known)
