import pytest

from tres_scrapy.page.kind import is_soft_404
from tres_scrapy.page.text import Page


@pytest.mark.parametrize(
    ("title", "text", "missing"),
    [
        ("404", "", True),
        ("Page not found", "Sorry, try the search.", True),
        ("Our shop", "The page you asked for does not exist.", True),
        ("Our shop", "This recipe is no longer available.", True),
        ("Our shop", "The file doesn't exist any more.", True),
        ("Our shop", "It doesn\u2019t exist.", True),
        ("Oops", "Error 404", True),
        ("Bread", "404 kcal per portion.", False),
        ("Bread", "Flour, water and salt.", False),
        ("The 4040 processor", "Four bits.", False),
        ("Why the treasure was not found", "word " * 200, False),
    ],
)
def test_soft_404(title, text, missing):
    assert is_soft_404(Page("http://a.test/", title, text, ())) is missing
