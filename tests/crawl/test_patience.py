import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.crawl.patience import CREDIT, Patience
from tres_scrapy.crawl.slot import LONGEST_REST


def test_hurry_of_one_never_waits():
    assert not Patience(1.0).has_credit(0.0, 1.0, waits=False)


@given(
    st.floats(0, 1), st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=1, max_size=100)
)
def test_idle_time_is_bounded(hurry, steps):
    patience, now, waits = Patience(hurry), 0.0, False
    for passed, free in steps:
        now += passed
        waits = patience.has_credit(now, free, waits=waits)
    longest = max(passed for passed, _ in steps)
    assert patience.waited <= (1 - hurry) * (CREDIT + now) + longest + 1e-6


def test_credit_comes_back_with_time():
    patience, now = Patience(0.5), 0.0
    assert patience.has_credit(now, 1.0, waits=False)
    while patience.has_credit(now, 1.0, waits=True):
        now += 1.0
    assert CREDIT / 2 < now < 3 * CREDIT
    assert patience.waited == now
    assert patience.has_credit(now + LONGEST_REST, 1.0, waits=False)


def test_pause_is_no_waiting():
    patience = Patience(0.0)
    patience.has_credit(0.0, 1.0, waits=False)
    patience.has_credit(1000.0, 1.0, waits=True)
    assert patience.waited == LONGEST_REST


@pytest.mark.parametrize("free", [0.0, 0.25])
def test_only_idle_slots_count(free):
    patience = Patience(0.0)
    patience.has_credit(0.0, free, waits=False)
    patience.has_credit(4.0, free, waits=True)
    assert patience.waited == 4 * free
