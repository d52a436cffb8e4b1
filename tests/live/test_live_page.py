"""The live page in a real browser: clicks take effect, and the page shows it."""

import re

import pytest
from live import browser_page, live_crawl

from tres_scrapy.frontier import feature

pytestmark = pytest.mark.slow


@pytest.fixture
def page():
    with browser_page() as page:
        yield page


def number(page, name):
    return int(page.locator(f'[data-name="{name}"] .value').inner_text().replace(",", ""))


def has(page, selector, text):
    page.locator(selector, has_text=re.compile(text)).first.wait_for()


def ask(page, form, value):
    page.locator(f"#{form} input").fill(value)
    page.locator(f"#{form} button").click()


def check_narrow(page):
    """On a telephone, rows have their domain and the boxes of the tree their labels."""
    page.set_viewport_size({"width": 420, "height": 900})
    page.locator("#recent .domain", has_text=".test").first.wait_for()
    page.locator('[data-figure="tree"] .slicetext').first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.set_viewport_size({"width": 1300, "height": 900})


def check_max(page):
    """A wrong MAX gets an answer, which goes when the field changes."""
    ask(page, "max", "2_5")
    has(page, "#said.error", "^MAX '2_5' must not rise: write 5_2$")
    page.locator("#max input").fill("0")
    assert page.locator("#said").inner_text() == "", "an old error does not stay"
    page.locator("#max button").click()
    has(page, "#said.error", "^MAX '0' must be at least 1: write none for no limit$")


def check_answers(page, live):
    """A relevant page is found by its words, and yes and no are written, the last one to count."""
    page.locator("#tab-relevant").click()
    page.locator("#relevant .text", has_text="A recipe for soup").first.wait_for()
    page.locator("#sought").fill("soup leek 0")
    page.locator("#find button").click()
    page.locator("#relevant > li").nth(1).wait_for(state="detached")
    assert page.locator("#relevant img").count() == 0
    page.locator("#relevant .head").click()
    for word in ("yes", "no"):
        page.locator("#relevant .answer button", has_text=word).click()
        page.locator(f"#relevant .answer button[aria-pressed=true] >> text={word}").wait_for()
    has(page, "#answered", r"^The topic learns it with the next pages; .*topic.answers\.txt\.$")
    (file,) = live.directory.rglob("answers.txt")
    assert file.read_text(encoding="utf-8") == "yes http://h0.test/\nno http://h0.test/\n"
    page.locator("#tab-recent").click()


def test_page_shows_and_steers(page, tmp_path):
    with live_crawl(tmp_path) as live:
        live.directory = tmp_path
        assert page.goto(live.page).status == 403
        has(page, "body", "^Open the address in the crawl's log")
        page.goto(live.url, wait_until="commit")
        has(page, "#status", "^running$")
        page.evaluate("sessionStorage.clear()")  # as in another tab, which has only the cookie
        page.reload(wait_until="commit")
        has(page, "#notice", "^This tab has no token")
        assert page.locator("#pause").is_disabled()
        page.goto(live.url, wait_until="commit")
        has(page, "#status", "^running$")
        assert page.url == live.page, "the token has left the address"
        assert live.token not in page.content()
        has(page, '[data-figure="harvest"]', "Harvest rate")
        page.locator('[data-figure="harvest"] svg .trace').first.wait_for(state="attached")

        check_narrow(page)

        page.locator("#pause").click()
        has(page, "#status", "^paused$")
        has(page, '[data-name="Pages per second"] .more', "^0 under way$")
        pages, asked = number(page, "Pages"), len(live.web.requests)

        page.locator("#recent .head").first.click()
        has(page, ".detail h3", "Features of the link when it was chosen")
        has(page, ".detail p", "Leaf: ")
        has(page, "#recent .why", r"^Q \d\.\d\d · ")
        assert page.locator(".detail meter").count() == len(feature.FEATURES)
        assert "<img src=x onerror=" in page.locator("#recent .title").first.inner_text()
        assert page.locator("#recent img").count() == 0
        page.locator("#recent .head").first.click()

        check_answers(page, live)
        ask(page, "seed", "javascript:alert(1)")
        has(page, "#said.error", r"^A seed must hold http\(s\) URLs")
        ask(page, "seed", "http://h2999.test/x, http://localhost/")
        has(page, "#said:not(.error)", "^Next: http://h2999.test/x. Not added: localhost is not on")
        check_max(page)
        ask(page, "max", "2")
        has(page, '[data-name="Relevant domains"] .more', "^MAX: 2$")
        assert (number(page, "Pages"), len(live.web.requests)) == (pages, asked)

        page.locator("#pause", has_text="Resume").click()
        has(page, "#status", "^running$")
        live.until(lambda: number(page, "Pages") > pages + 5, "the page does not go on")
        live.until_asked_for("http://h2999.test/", asked)

        page.locator("#stop").click()
        page.locator("#stop", has_text="sure").click()
        has(page, "#status", "^(ending|ended)$")
        assert live.ended() == 0, live.text
        has(page, "#status", "^ended$")
        has(
            page,
            "#notice",
            r"^The crawl has ended: it was stopped\. .* It wrote .*\.jsonl, .*\.run\.",
        )
        assert not page.errors
        assert all(url.startswith((live.page, "data:,")) for url in page.asked)
