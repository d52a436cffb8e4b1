import json
import lzma
from collections import Counter

import pytest
from conftest import DATA
from walls import TEMPLATES, walls

from tres_scrapy.page.kind import WALLS, is_soft_404, wall_of
from tres_scrapy.page.text import read_page

URL = "http://a.test/"
MOST_FALSE_ALARMS = 0.001
REAL = ["pages.jsonl.xz", "university.jsonl.xz"]
LINKS = "".join(f"<li><a href=/{i}>Recipe {i}</a>" for i in range(30))
STORY = "We baked bread and ate it with cheese by the sea. " * 40


def kind_of(html, url=URL):
    page = read_page(html, url, language=False)
    return "soft_404" if is_soft_404(page) else wall_of(html, page)


@pytest.mark.parametrize("kind", TEMPLATES)
def test_walls_are_recognised(kind):
    assert Counter(map(kind_of, walls(kind, kept=False))) == {kind: 60}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_walls_of_unseen_templates_are_recognised(kind):
    found = Counter(map(kind_of, walls(kind, kept=True)))
    assert found[kind] >= 45  # one template of four may be missed
    assert found.keys() <= {kind, ""}


@pytest.mark.parametrize(
    "html",
    [
        "",
        f"<title>Log in to the kitchen</title><p>{STORY}",
        f"<title>Soup</title><ul>{LINKS}</ul><form>Log in <input type=password></form>",
        f"<title>How cookies and consent work</title><p>{'Cookies store data. ' * 200}",
        f"<title>Robots</title><p>Are you a robot? Ten films.<ul>{LINKS}</ul>",
        f"<title>Soup</title><p>Enable JavaScript for comments.</p><ul>{LINKS}</ul>",
        "<title>Cookies</title><p>Bake the cookies. Accept no other cookies. 12 cookies a tray.",
        "<title>Soup</title><p>Leek soup for four.<noscript><img src=/count.gif></noscript>",
    ],
    ids=["nothing", "story", "box", "policy", "list", "comments", "biscuits", "pixel"],
)
def test_pages_of_a_site_are_not_walls(html):
    assert kind_of(html) == ""


def test_every_wall_is_explained():
    assert WALLS.keys() == TEMPLATES.keys() - {"soft_404"}


def real_pages(path):
    with lzma.open(path) as file:
        for row in map(json.loads, file):
            yield row["url"] or URL, row["html"]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.long
def test_real_pages_are_rarely_walls(name):
    if not (DATA / name).exists():
        pytest.skip(f"needs {name}, which may not be published")
    found = Counter(
        wall_of(html, read_page(html, url, language=False)) for url, html in real_pages(DATA / name)
    )
    assert found.total() - found[""] <= MOST_FALSE_ALARMS * found.total()
