import pytest

from tres_scrapy.config.typed import (
    crawl_of,
    named,
    speak_of,
    typed,
    typed_setting,
)


@pytest.fixture(autouse=True)
def scrapy():
    """Leave no words of `tres` behind."""
    yield
    speak_of(None)


SAID = {  # in the words of scrapy, of tres crawl, of tres classify
    "value": (
        lambda: typed("seed", "URL"),
        ("-a seed=URL", "--seed URL", "-s TRES_SEED=URL"),
    ),
    "bare": (lambda: typed("pages"), ("-a pages=", "--pages", "-s TRES_PAGES=")),
    "on": (lambda: typed("browser_sandbox", True), ("-a browser_sandbox=1", "--browser-sandbox")),
    "off": (
        lambda: typed("browser_sandbox", False),
        ("-a browser_sandbox=0", "--no-browser-sandbox", "-s TRES_BROWSER_SANDBOX=0"),
    ),
    "of any spider": (
        lambda: typed_setting("private_addresses", True),
        (
            "-s TRES_PRIVATE_ADDRESSES=1",
            "--private-addresses",
            "-s TRES_PRIVATE_ADDRESSES=1",
        ),
    ),
    "name": (
        lambda: named("TRES_MAX_DEPTH"),
        ("TRES_MAX_DEPTH (-a max_depth=)", "--max-depth", "TRES_MAX_DEPTH"),
    ),
    "refresh": (lambda: named("TRES_REFRESH_STORE"), ("TRES_REFRESH_STORE (-a store=)", "--store")),
    "spider": (lambda: crawl_of("tres"), ("scrapy crawl tres", "tres crawl", "scrapy crawl tres")),
    "other spider": (lambda: crawl_of("refresh"), ("scrapy crawl refresh", "tres refresh")),
}
OPTIONS = {"seed", "pages", "browser_sandbox", "private_addresses", "max_depth", "store"}


@pytest.mark.parametrize("what", SAID)
def test_messages_use_the_words_of_the_user(what):
    say, expected = SAID[what]
    found = [say()]
    for options in (OPTIONS, ())[: len(expected) - 1]:
        speak_of(options)
        found.append(say())
    assert tuple(found) == expected
