import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.agent.ranking import CREDIT, LONGEST_REST, MIN_GAIN, Patience


def test_patience_waits_for_a_link_that_is_worth_more():
    patience = Patience(0.0)
    patience.note(0.0, [7], free=1.0)
    assert patience.hosts == [7]
    assert patience.is_worth_waiting(0.5, 0.6 + MIN_GAIN)
    assert not patience.is_worth_waiting(0.5, 0.4 + MIN_GAIN)


def test_hurry_of_one_looks_at_no_busy_host():
    patience = Patience(1.0)
    patience.note(0.0, [7], free=1.0)
    assert not patience.hosts


@given(
    st.floats(0, 1), st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=1, max_size=100)
)
def test_idle_time_is_bounded(hurry, steps):
    patience, now = Patience(hurry), 0.0
    for passed, free in steps:
        now += passed
        patience.note(now, [7], free)
        if patience.hosts:
            patience.is_worth_waiting(0.0, 1.0)
    longest = max(passed for passed, _ in steps)
    assert patience.waited <= (1 - hurry) * (CREDIT + now) + longest + 1e-6


def test_credit_comes_back_with_time():
    patience, now = Patience(0.5), 0.0
    patience.note(now, [7], free=1.0)
    while patience.hosts:
        patience.is_worth_waiting(0.0, 1.0)
        now += 1.0
        patience.note(now, [7], free=1.0)
    assert CREDIT / 2 < now < 3 * CREDIT
    assert patience.waited == now
    patience.note(now + LONGEST_REST, [7], free=1.0)
    assert patience.hosts


def test_pause_is_no_waiting():
    patience = Patience(0.0)
    patience.note(0.0, [7], free=1.0)
    patience.is_worth_waiting(0.0, 1.0)
    patience.note(1000.0, [7], free=1.0)
    assert patience.waited == LONGEST_REST


@pytest.mark.parametrize("free", [0.0, 0.25])
def test_only_idle_slots_count(free):
    patience = Patience(0.0)
    patience.note(0.0, [7], free)
    patience.is_worth_waiting(0.0, 1.0)
    patience.note(4.0, [7], free)
    assert patience.waited == 4 * free
