import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.frontier.column import Anchors

TEXTS = st.lists(st.text(st.characters(exclude_categories=[]), max_size=5), max_size=8)


@given(st.lists(TEXTS), st.integers(0, 8))
def test_anchors_are_a_list_of_strings(batches, first):
    anchors, reference = Anchors(), []
    for batch in batches:
        anchors.extend(batch)
        reference.extend(batch)
    assert len(anchors) == len(reference)
    assert list(anchors) == reference
    assert anchors.since(first) == reference[first:]
    assert [anchors[-i] for i in range(1, len(anchors) + 1)] == reference[::-1]


def test_place_outside_is_an_index_error():
    anchors = Anchors()
    anchors.extend(["soup"])
    for place in (1, -2):
        with pytest.raises(IndexError):
            anchors[place]
