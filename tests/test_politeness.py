"""Waiting, in the real engine."""

import textwrap
from itertools import pairwise
from urllib.parse import urlsplit

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
         "-a", "output={output}", "-s", "DOWNLOAD_DELAY=0.2", {more}])
"""


def crawl(scrapy, tmp_path, pages, more=""):
    """Crawl three hosts with a delay; return the gaps between the fetches of each."""
    pages.add("http://a.test/", LINKS)
    for host in "abc":
        for i in range(4):
            pages.add(f"http://{host}.test/{i}", "<p>text</p>")
    script = tmp_path / "crawl.py"
    script.write_text(textwrap.dedent(SCRIPT.format(output=tmp_path / "o.jsonl", more=more)))
    process = scrapy(program=(str(script),), pages=pages)
    assert process.returncode == 0, process.stderr
    assert "'tres/pages': 13" in process.stderr
    times = {}
    for time, url in pages.requests:
        times.setdefault(urlsplit(url).hostname, []).append(time)
    return {
        host: [later - earlier for earlier, later in pairwise(seen)] for host, seen in times.items()
    }


def test_engine_is_woken_and_no_host_is_hit_faster_than_its_delay(scrapy, tmp_path, pages):
    gaps = crawl(scrapy, tmp_path, pages)
    assert min(min(gap) for gap in gaps.values()) > 0.19


def test_crawl_delay_of_robots_txt_is_obeyed(scrapy, tmp_path, pages):
    pages.add("http://b.test/robots.txt", "User-agent: *\nCrawl-delay: 0.5")
    gaps = crawl(scrapy, tmp_path, pages)
    assert min(gaps["b.test"]) > 0.49
