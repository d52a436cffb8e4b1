"""A long crawl of the real web names a contact."""

import pytest
from scrapy.settings import Settings

from tres_scrapy.addon import TresAddon
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.downloader.contact import has_contact, named_agent
from tres_scrapy.settings import USER_AGENT


@pytest.mark.parametrize(
    ("agent", "found"),
    [
        (USER_AGENT, False),
        ("", False),
        ("mine/1.0 (focused crawler)", False),
        ("Scrapy/2.13.4 (+https://scrapy.org)", False),
        ("mine (+https://mine.org/crawl)", True),
        ("mine; me@mine.org", True),
        ("Mozilla/5.0 (compatible; mine/1.0; +http://mine.org/bot.html)", True),
    ],
)
def test_contact_is_mail_or_url(agent, found):
    assert has_contact(agent) == found


@pytest.mark.parametrize(
    ("agent", "named"),
    [
        (USER_AGENT, "tres-scrapy (focused crawler; +me@mine.org)"),
        ("mine/1.0", "mine/1.0 (+me@mine.org)"),
        ("mine (me@mine.org)", "mine (me@mine.org)"),
    ],
)
def test_contact_stands_in_user_agent(agent, named):
    assert named_agent(agent, "me@mine.org") == named
    assert has_contact(named)
    assert named_agent(agent, None) == agent


@pytest.mark.parametrize("text", ["me", "me@mine", "@a.org", "ftp://a.org/", "a@b.org\nX: y", ""])
def test_other_texts_are_no_contact(text):
    parse = Config.declared()["TRES_CONTACT"].parse
    with pytest.raises(ValueError, match=r"^must be a mail address or an http\(s\) URL$"):
        parse(text)


def started(url, **settings):
    """The settings of a crawl from a URL, with those of the add-on."""
    found = Settings({"TRES_TOPIC": "food", **settings})
    TresAddon(start_urls=[url]).update_settings(found)
    return found


@pytest.mark.parametrize("pages", [{}, {"TRES_PAGES": "1001"}])
def test_long_crawl_without_contact_is_refused(pages):
    with pytest.raises(ConfigError) as refused:
        started("https://real.org/", **pages)
    assert str(refused.value) == (
        f"USER_AGENT {USER_AGENT!r}: a crawl of more than 1,000 pages must have a contact: add "
        "-s TRES_CONTACT=you@example.org (a mail address or a URL)"
    )


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("https://real.org/", {"TRES_PAGES": "1000"}),
        ("https://real.org/", {"TRES_CONTACT": "me@mine.org"}),
        ("https://real.org/", {"USER_AGENT": "mine (+https://mine.org)"}),
        ("http://a.test/", {}),
        ("http://127.0.0.1:8000/", {}),
        ("http://[::1]/", {}),
        ("http://10.0.0.8/", {}),
        ("https://real.org/", {"TRES_WEB": "synthetic"}),
    ],
)
def test_other_crawls_start(url, settings):
    agent = started(url, **settings)["USER_AGENT"]
    assert ("me@mine.org" in agent) == ("TRES_CONTACT" in settings)


def test_project_agent_keeps_its_words():
    settings = started("https://real.org/", TRES_CONTACT="me@mine.org", USER_AGENT="mine/2")
    assert settings["USER_AGENT"] == "mine/2 (+me@mine.org)"
