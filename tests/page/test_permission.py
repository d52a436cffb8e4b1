import pytest

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.robots import Permission, permission_of
from tres_scrapy.page.text import read_page

URL = "http://a.test/"
LINKS = "<a href=/1>one</a><a href=/2 rel='ugc NoFollow'>two</a><a href=/3 rel=noopener>three</a>"


def targets(page):
    return [link.url.removeprefix(URL) for link in page.links]


@pytest.mark.parametrize(
    ("meta", "headers", "permission"),
    [
        ([], [], Permission()),
        ([("ROBOTS", "NOINDEX, follow")], [], Permission(keep=False)),
        ([("robots", "none")], [], Permission(keep=False, follow=False)),
        ([("googlebot", "noindex"), ("tres-scrapy", "nofollow")], [], Permission(follow=False)),
        ([("description", "noindex")], ["all"], Permission()),
        ([], ["noarchive", "nofollow"], Permission(follow=False)),
        ([], ["otherbot: noindex, nofollow"], Permission()),
        ([], ["tres-scrapy: noindex"], Permission(keep=False)),
        ([], ["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], Permission(keep=False)),
        ([("robots", "max-snippet:-1, noindex")], [], Permission(keep=False)),
    ],
)
def test_strictest_word_to_us_counts(meta, headers, permission):
    assert permission_of(meta, headers) == permission


def test_nofollow_links_are_not_read():
    assert targets(read_page(LINKS, URL)) == ["1", "3"]
    assert targets(read_page(LINKS + "<a href=/2>again</a>", URL)) == ["1", "3", "2"]


@pytest.mark.parametrize("header", [[], ["nofollow, noindex"]])
def test_page_may_hide_all_its_links(header):
    meta = "" if header else "<meta name=robots content='noindex,nofollow'>"
    page = read_page(meta + LINKS, URL, robots=header, contexts=True, places=True)
    assert (targets(page), page.may_be_kept, page.places) == ([], False, ())


def test_a_setting_ignores_all_of_it():
    html = f"<meta name=robots content=none>{LINKS}"
    page = read_page(html, URL, ReadingLimits(obey=False), robots=["none"])
    assert (targets(page), page.may_be_kept) == (["1", "2", "3"], True)


def test_pages_may_use_the_name_of_the_user_agent():
    meta, headers = [("my-bot", "nofollow")], ["my-bot: noindex"]
    assert permission_of(meta, headers, "my-bot") == Permission(keep=False, follow=False)
    assert permission_of(meta, headers) == Permission()
