"""The licences that a page names."""

import pytest

from tres_scrapy.page.text import read_page

BY = "https://creativecommons.org/licenses/by/4.0/"


def named(markup: str) -> list[tuple[str, str]]:
    page = read_page(f"<html><body>{markup}<p>Text</p></body></html>", "https://a.test/dir/page")
    return [(each.value, each.where) for each in page.rights if each.signal == "license"]


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ('<a rel="nofollow License" href="/terms">terms</a>', [("https://a.test/terms", "link")]),
        (f'<link rel="license" href="{BY}">', [(BY, "link")]),
        (f'<a href="{BY}">CC</a>', [(BY, "link")]),
        (f'<a rel="license" href="{BY}">a</a><a href="{BY}">b</a>', [(BY, "link")]),
        (f'<meta itemprop="license" content="{BY}">', [(BY, "microdata")]),
        (
            '<span itemprop="license">All rights reserved</span>',
            [("All rights reserved", "microdata")],
        ),
        ("<a href='https://a.test/other'>license</a>", []),
    ],
)
def test_marked_links_are_licences(markup, found):
    assert named(markup) == found


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (f'{{"license": "{BY}"}}', [BY]),
        (f'[{{"@graph": [{{"image": {{"license": {{"@id": "{BY}"}}}}}}]}}]', [BY]),
        ('{"license": ["/a", {"url": "/b"}, 5, null]}', ["https://a.test/a", "https://a.test/b"]),
        ('{"license": ', []),
        ('{"license":' + "[" * 50_000, []),
    ],
)
def test_json_ld_names_licences(data, values):
    markup = f'<script type="application/ld+json">{data}</script>'
    assert named(markup) == [(value, "JSON-LD") for value in values]


def test_meta_and_licence_stand_together():
    page = read_page(
        '<meta name="robots" content="noai"><meta name="tdm-reservation" content="1">'
        '<a rel=license href="/l">l</a>',
        "https://a.test/",
    )
    assert [(each.signal, each.where) for each in page.rights] == [
        ("noai", "meta robots"),
        ("tdm-reservation", "meta tdm-reservation"),
        ("license", "link"),
    ]
