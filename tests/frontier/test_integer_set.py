"""The set of integers, compared with Python's own."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.frontier import column
from tres_scrapy.frontier.column import IntegerSet

PARTS = np.random.default_rng(0).integers(2**62, size=(8_000, 25))
NUMBERS = st.integers(0, 60) | st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("newest", [(0, 0), (3, 1 / 16), column._NEWEST])
@given(parts=st.lists(st.lists(NUMBERS, max_size=12), max_size=12))
def test_is_a_set(newest, parts):
    numbers, slow = IntegerSet(), set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column, "_NEWEST", newest)
        for part in parts:
            new = numbers.add(np.array(part, dtype=np.int64)).tolist()
            assert sorted(new) == sorted(set(part) - slow)
            slow |= set(part)
            assert len(numbers) == len(slow)
            assert sorted(numbers.values().tolist()) == sorted(slow)
            asked = [*part, *range(60), -1]
            found = numbers.has(np.array(asked, dtype=np.int64)).tolist()
            assert found == [number in slow for number in asked]


def test_integer_set_saves_memory():
    used = []
    for kind, add in (
        (IntegerSet, IntegerSet.add),
        (set, lambda those, part: those.update(part.tolist())),
    ):
        tracemalloc.start()
        numbers = kind()
        for part in PARTS:
            add(numbers, part)
        used.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(numbers) == PARTS.size
    assert 4 * used[0] < used[1]
