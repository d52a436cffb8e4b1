import pytest

from tres_scrapy.url.message import plural


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "page", "pages"),
        (1, "page", "page"),
        (1.0, "relevant domain", "relevant domain"),
        (2, "relevant domain", "relevant domains"),
        (1, "leaf", "leaf"),
        (3, "leaf", "leaves"),
    ],
)
def test_noun_agrees_with_count(count, noun, said):
    assert plural(count, noun) == said
