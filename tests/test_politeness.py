"""Waiting, in the real engine."""

import textwrap
from itertools import pairwise
from urllib.parse import urlsplit

DELAY = 0.4  # a gap half as long would not be the scheduling of a busy machine
LINKS = "".join(
    f'<p><a href="http://{host}.test/{i}">x</a></p>' for host in "abc" for i in range(4)
)
# Without its heartbeat the engine comes back only when somebody wakes it: a scheduler that
# forgot to would hang, and the test's own limit would end it.
SCRIPT = """
from scrapy.cmdline import execute
from scrapy.core.engine import ExecutionEngine

ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 1e6
execute(["scrapy", "crawl", "tres", "-a", "topic=food", "-a", "seed=http://a.test/",
         "-a", "output={output}", "-s", "DOWNLOAD_DELAY={delay}"])
"""


def crawl(scrapy, tmp_path, pages, redirect=None, fetched=13):
    """Crawl three hosts with a delay; return the gaps between the fetches of each."""
    pages.add("http://a.test/", LINKS)
    for host in "abc":
        for i in range(4):
            pages.add(f"http://{host}.test/{i}", "<p>text</p>")
    if redirect is not None:
        pages.add(redirect[0], status=302, Location=redirect[1])
        fetched -= 1
    script = tmp_path / "crawl.py"
    script.write_text(textwrap.dedent(SCRIPT.format(delay=DELAY, output=tmp_path / "o.jsonl")))
    process = scrapy(program=(str(script),), pages=pages)
    assert process.returncode == 0, process.stderr
    assert f"'tres/pages': {fetched}" in process.stderr
    times = {}
    for time, url in pages.requests:
        times.setdefault(urlsplit(url).hostname, []).append(time)
    return {
        host: [later - earlier for earlier, later in pairwise(seen)] for host, seen in times.items()
    }


def test_engine_is_woken_and_no_host_is_hit_faster_than_its_delay(scrapy, tmp_path, pages):
    gaps = crawl(scrapy, tmp_path, pages)
    assert min(min(gap) for gap in gaps.values()) > 0.5 * DELAY


def test_crawl_delay_of_robots_txt_is_obeyed(scrapy, tmp_path, pages):
    pages.add("http://b.test/robots.txt", "User-agent: *\nCrawl-delay: 1")
    gaps = crawl(scrapy, tmp_path, pages)
    assert min(gaps["b.test"]) > 0.5


def test_redirect_to_another_host_is_as_polite_as_any_fetch(scrapy, tmp_path, pages):
    pages.add("http://c.test/robots.txt", "User-agent: *\nCrawl-delay: 1")
    gaps = crawl(scrapy, tmp_path, pages, redirect=("http://b.test/0", "http://c.test/0"))
    assert min(gaps["c.test"]) > 0.5


def test_host_that_asks_for_days_is_left_alone(scrapy, tmp_path, pages):
    pages.add("http://b.test/robots.txt", "User-agent: *\nCrawl-delay: 86400")
    gaps = crawl(scrapy, tmp_path, pages, fetched=9)
    assert set(gaps) == {"a.test", "b.test", "c.test"}
    assert gaps["b.test"] == []
