import pytest

from tres_scrapy.topic.duplicate import fingerprint
from tres_scrapy.topic.text import Page


@pytest.mark.parametrize(
    ("title", "text", "same"),
    [
        ("Bread", "flour and water", True),
        ("bread", "Flour,  and water - 17.", True),
        ("Bread", "flour and wine", False),
        ("Cake", "flour and water", False),
    ],
)
def test_pages_with_the_same_words_share_a_fingerprint(title, text, same):
    first = fingerprint(Page("http://a.test/?sid=1", "Bread", "flour and water", ()))
    assert (fingerprint(Page("http://a.test/?sid=2", title, text, ())) == first) is same
