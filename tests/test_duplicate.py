import pytest

from tres_scrapy.topic.duplicate import SeenTexts
from tres_scrapy.topic.text import Page


@pytest.mark.parametrize(
    ("title", "text", "is_new"),
    [
        ("Bread", "flour and water", False),
        ("bread", "Flour,  and water - 17.", False),
        ("Bread", "flour and wine", True),
        ("Cake", "flour and water", True),
    ],
)
def test_same_words_under_another_url_are_no_new_text(title, text, is_new):
    texts = SeenTexts()
    assert texts.add(Page("http://a.test/?sid=1", "Bread", "flour and water", ()))
    assert texts.add(Page("http://a.test/?sid=2", title, text, ())) is is_new
