import pytest

from tres_scrapy.page.content import content_of_html, content_of_pdf

URL = "http://a.test/soup"
HTML = """<html lang=en><head><title>Soup</title>
<meta property="article:published_time" content="2024-03-05T10:00:00Z"></head>
<body><nav><a href=/a>Home</a><a href=/b>All recipes</a></nav><article><h1>Onion <i>soup</i></h1>
<p>Boil the <b>onions</b> in butter and flour until they are brown, and add the wine of the region
with water.</p><h2>Ingredients</h2><ul><li>4 onions</li><li>butter</li></ul><p>See
<a href=/leek>leek soup</a> for the other one, which is milder and takes less time to cook.</p>
</article><footer><h3></h3>Contact us</footer></body></html>"""
NAMES = ("html", "markdown", "date", "headings")


def test_html_gives_its_fields():
    fields = content_of_html(NAMES, HTML, URL)
    assert (fields["html"], fields["date"]) == (HTML, "2024-03-05")
    assert fields["headings"] == ["Onion soup", "Ingredients"]
    lines = fields["markdown"].splitlines()
    assert lines[0].startswith("# Onion")
    assert {"## Ingredients", "- 4 onions"} <= set(lines)
    assert "[leek soup](http://a.test/leek)" in fields["markdown"]
    assert "All recipes" not in fields["markdown"]
    assert "Contact" not in fields["markdown"]


def test_only_wanted_fields_are_read():
    assert content_of_html(["headings"], HTML, URL).keys() == {"headings"}
    assert content_of_html([], HTML, URL) == {}


@pytest.mark.parametrize("html", ["", "<p>x", "\x00<<", "<table>" * 5_000])
def test_poor_pages_have_empty_fields(html):
    fields = content_of_html(NAMES, html, URL)
    assert (fields["date"], fields["headings"]) == ("", [])
    assert fields["markdown"] in ("", "x")


def test_pdf_gives_paragraphs_and_date():
    said = {"pages": ["One.", "", "Two."], "date": "D:20240305101112Z"}
    fields = content_of_pdf(NAMES, said)
    assert fields == {"html": "", "markdown": "One.\n\nTwo.", "date": "2024-03-05", "headings": []}
    assert content_of_pdf(["date"], {"pages": [], "date": "yesterday"}) == {"date": ""}
