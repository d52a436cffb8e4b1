"""Crawls that a rule ends."""

import pytest
from soup import FOOD, OTHER, link

PAGES = 60
QUIET = """
import runpy
import tres_scrapy.crawl.outlook as outlook
outlook.QUIET, outlook.EVERY = 10, 5
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.fixture
def arguments(tmp_path, pages):
    """Serve a chain of pages of which the first ten are relevant."""
    for i in range(PAGES):
        word = chr(ord("a") + i // 26) + chr(ord("a") + i % 26)
        html = (FOOD if i < 10 else OTHER).format(f"leek{word} pea{word}") * 2
        pages.add(f"http://h{i}.test/", html + link(f"http://h{i + 1}.test/"))
    return [
        *("crawl", "tres", "-a", "topic=food", "-a", "seed=http://h0.test/"),
        *("-a", f"output={tmp_path / 'a.jsonl'}", "-s", f"JOBDIR={tmp_path / 'job'}"),
        *("-s", "CONCURRENT_REQUESTS=1", "-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0"),
    ]


@pytest.mark.long
@pytest.mark.slow
def test_rule_ends_a_crawl_that_can_be_resumed(scrapy, arguments, pages, tmp_path):
    stopped = scrapy(*arguments, "-a", "stop=yield:0.1", pages=pages, program=("-c", QUIET))
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stats["finish_reason"] == "found_enough"
    assert stopped.stats["tres/relevant_pages"] == 10
    assert 20 <= stopped.stats["tres/pages"] < 25
    assert stopped.stats["tres/relevant_left"] < 5
    assert "Stops by the rule yield:0.1: about" in stopped.stderr
    assert "By the yields of its hosts, about" in stopped.stderr
    report = (tmp_path / "job" / "tres.html").read_text(encoding="utf-8")
    assert "It ended: hardly a relevant page is left." in report
    assert "left in reach (" in report
    more = scrapy(*arguments, "-a", "stop=yield:0.1", pages=pages, program=("-c", QUIET))
    assert more.stats["finish_reason"] == "found_enough"  # it knows the pages before
    assert more.stats["tres/pages"] - stopped.stats["tres/pages"] < 3
    rest = scrapy(*arguments, pages=pages)
    assert rest.stats["finish_reason"] == "frontier_exhausted"
    assert rest.stats["tres/pages"] == PAGES


def test_mistyped_rule_is_refused(scrapy, arguments):
    process = scrapy(*arguments, "-a", "stop=0.9")
    assert process.returncode == 1
    assert "must be coverage:SHARE or yield:SHARE" in process.stderr
