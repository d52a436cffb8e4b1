import pytest

from tres_scrapy.page.kind import (
    FEW_LINKS,
    FEW_WORDS,
    FEW_WORDS_AROUND,
    Content,
    content_of,
    look_at,
)

SCRIPT = '<script src="/app.js"></script>'
LINKS = "".join(f'<a href="/{i}">x</a>' for i in range(FEW_LINKS))
ENOUGH = f"<p>{'soup ' * FEW_WORDS_AROUND}</p>{LINKS}"
NAVIGATION = "".join(
    f'<a href="/{word}">{word}</a>' for word in ("recipes", "wine", "tags", "about", "contact")
)


def looks_empty(html):
    return look_at(html).is_empty


@pytest.mark.parametrize(
    "html",
    [
        f'<div id="root"></div>{SCRIPT}',
        f"<p>Loading</p>{LINKS}{SCRIPT}",
        f"<p>soup</p>{SCRIPT}",
        f"<header>{LINKS}</header><main><div></div></main><footer>About us</footer>{SCRIPT}",
        f'{ENOUGH}<div id="app"><div class="spinner"></div></div>{SCRIPT}',
        f"{ENOUGH}<noscript>Please enable JavaScript.</noscript><script>start()</script>",
        f"{ENOUGH}<app-root></app-root><script type='module' src='/main.js'></script>",
        f"<p>Loading</p>{LINKS}<script type='text/javascript'>start()</script>",
        "<script>" + "word " * 500 + "</script>" + LINKS,
    ],
    ids=[
        *(
            "root",
            "placeholder",
            "words",
            "main",
            "root in a page",
            "notice",
            "module",
            "type",
            "words of scripts",
        ),
    ],
)
def test_page_awaiting_scripts_looks_empty(html):
    assert looks_empty(html)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>Loading</p>",
        f"{ENOUGH}{SCRIPT}",
        f"{ENOUGH}<div id='root'><p>soup</p></div>{SCRIPT}",
        f"{ENOUGH}<noscript><img src='/count.gif'></noscript>{SCRIPT}",
        f"{ENOUGH * 3}<noscript>Please enable JavaScript.</noscript>{SCRIPT}",
        f"{ENOUGH}<noscript>Enable JavaScript to view the comments.</noscript>{SCRIPT}",
        f"{ENOUGH}<noscript>Enable JavaScript to complete this form.</noscript>{SCRIPT}",
        f"<p>{'soup ' * FEW_WORDS}</p>{SCRIPT}",
        f"{NAVIGATION}<h1>Leek</h1><p>Leek soup, 2021</p>{SCRIPT * 9}",
        f"{NAVIGATION}<main><img src=/soup.jpg></main>{SCRIPT}",
        "<p>Loading</p><script type='application/ld+json'>{}</script>",
        "<p>Loading</p><script type='text/template'><p>x</script>",
    ],
    ids=[
        *("nothing", "no script", "page", "full root", "pixel", "long page", "comments", "form"),
        *("no links", "list", "picture", "data", "template"),
    ],
)
def test_page_that_is_there_does_not(html):
    assert not looks_empty(html)


def test_content_is_what_a_reader_sees():
    links = "<a href=1>a</a><a href=1>of</a>"
    html = f"<title>no</title><style>no</style><p>soup of leek</p>{SCRIPT}{links}"
    assert content_of(html) == Content(words=4, links=1)
    assert look_at(html).content == content_of(html)


@pytest.mark.parametrize(
    ("before", "after", "helped"),
    [
        (Content(0, 0), Content(30, 0), True),
        (Content(0, 0), Content(29, 2), False),
        (Content(0, 0), Content(0, 3), True),
        (Content(400, 20), Content(500, 25), False),
        (Content(400, 20), Content(600, 20), True),
        (Content(400, 20), Content(10, 40), True),
        (Content(400, 20), Content(10, 2), False),
    ],
)
def test_rendering_helps_if_it_adds(before, after, helped):
    assert after.is_much_more_than(before) == helped


def test_hostile_nesting_is_read_in_time():
    assert looks_empty("<div>" * 100_000 + SCRIPT) is False  # beyond the last tag that is read
    assert look_at(SCRIPT + "<a href='/" + "x" * 100_000 + "'>" * 10_000).content.links == 1
