import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.frontier.column import HashedFeatures
from tres_scrapy.links.code import RaggedArray

LINKS = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=4), max_size=5)


@given(st.lists(LINKS, max_size=6), st.data())
def test_cues_are_a_list_of_lists(batches, data):
    cues, expected = HashedFeatures(), []
    for batch in batches:
        cues.extend(RaggedArray.of(batch))
        expected += batch
        assert len(cues) == len(expected)
        rows = data.draw(st.lists(st.sampled_from(range(len(expected))))) if expected else []
        taken = cues.take(np.array(rows, dtype=np.int64))
        assert taken.counts.tolist() == [len(expected[row]) for row in rows]
        assert taken.codes.tolist() == [code for row in rows for code in expected[row]]
    first = data.draw(st.integers(0, len(expected)))
    since = cues.since(first)
    assert since.codes.tolist() == [code for codes in expected[first:] for code in codes]
    assert since.counts.tolist() == list(map(len, expected[first:]))
