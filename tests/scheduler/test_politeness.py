"""Waiting, in the real engine."""

import textwrap
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

DELAY = 1.0  # a busy machine cannot explain a gap half as long
LINKS = "".join(
    f'<p><a href="http://{host}.test/{i}">x</a></p>' for host in "abc" for i in range(4)
)
# Without its heartbeat the engine only continues when the scheduler wakes it: a scheduler that
# forgets to would hang until the test's time limit.
SCRIPT = """
from scrapy.cmdline import execute
from scrapy.core.engine import ExecutionEngine

ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 1e6
execute(["scrapy", "crawl", "tres", "-a", "topic=food", "-a", "seed=http://a.test/",
         "-a", "output={output}", "-s", "DOWNLOAD_DELAY={delay}", {settings}])
"""


# A request sent long after it left its queue must not let the next follow too soon.
SENT_LATE = """
import asyncio
from scrapy.core.downloader import Downloader
download = Downloader._download
async def late(self, slot, request):
    if request.url.endswith("/1"):
        await asyncio.sleep(0.75)
    return await download(self, slot, request)
Downloader._download = late
"""
CLOCK_IS_SET = """
import time
real, set_by = time.time, [0]
time.time = lambda: real() + set_by[0]
from tres_scrapy.extensions.step import Steps
book = Steps.book
def set_clock(self, *arguments, **options):
    set_by[0] += {days} * 86400
    return book(self, *arguments, **options)
Steps.book = set_clock
"""


def crawl(scrapy, tmp_path, pages, *, redirect=None, fetched=13, before="", settings=""):
    """Crawl three hosts with a delay; return the gaps between the fetches of each."""
    pages.add("http://a.test/", LINKS)
    for host in "abc":
        for i in range(4):
            pages.add(f"http://{host}.test/{i}", "<p>text</p>")
    if redirect is not None:
        pages.add(redirect[0], status=302, Location=redirect[1])
        fetched -= 1
    script = tmp_path / "crawl.py"
    output = tmp_path / "o.jsonl"
    command = SCRIPT.format(delay=DELAY, output=output, settings=settings)
    script.write_text(before + textwrap.dedent(command))
    process = scrapy(program=(str(script),), pages=pages)
    assert process.returncode == 0, process.stderr
    assert process.stats["tres/pages"] == fetched
    times = {}
    for time, url in pages.requests:
        times.setdefault(urlsplit(url).hostname, []).append(time)
    return {
        host: [later - earlier for earlier, later in pairwise(seen)] for host, seen in times.items()
    }


def test_delay_holds_and_engine_wakes(scrapy, tmp_path, pages):
    gaps = crawl(scrapy, tmp_path, pages, before=SENT_LATE)
    assert min(min(gap) for gap in gaps.values()) > 0.5 * DELAY


@pytest.mark.long
@pytest.mark.parametrize("settings", ["", '"-s", "AUTOTHROTTLE_ENABLED=1"'])
def test_robots_crawl_delay_is_obeyed(scrapy, tmp_path, pages, settings):
    pages.add("http://b.test/robots.txt", "User-agent: *\nCrawl-delay: 2")
    start = '"-s", "AUTOTHROTTLE_START_DELAY=0.1"'
    gaps = crawl(scrapy, tmp_path, pages, settings=f"{settings}, {start}" if settings else "")
    assert min(gaps["b.test"]) > 1.5


@pytest.mark.long
def test_redirect_keeps_the_delay(scrapy, tmp_path, pages):
    pages.add("http://c.test/robots.txt", "User-agent: *\nCrawl-delay: 2")
    gaps = crawl(scrapy, tmp_path, pages, redirect=("http://b.test/0", "http://c.test/0"))
    assert min(gaps["c.test"]) > 1.5


@pytest.mark.long  # some transfers time out twelve times
@pytest.mark.parametrize("days", [-1, 1])
def test_clock_change_delays_nothing(scrapy, tmp_path, pages, days):
    """Twisted waits by the time of day: a hanging transfer would time out a day late."""
    pages.silent |= {f"http://{host}.test/{i}" for host in "abc" for i in (0, 3)}
    gaps = crawl(
        scrapy,
        tmp_path,
        pages,
        fetched=7,
        before=CLOCK_IS_SET.format(days=days),
        settings='"-s", "DOWNLOAD_TIMEOUT=2", "-a", "rest=0.1"',
    )
    assert min(min(gap) for gap in gaps.values()) > 0.5 * DELAY


@pytest.mark.long
def test_days_of_delay_close_host(scrapy, tmp_path, pages):
    pages.add("http://b.test/robots.txt", "User-agent: *\nCrawl-delay: 86400")
    gaps = crawl(scrapy, tmp_path, pages, fetched=9)
    assert set(gaps) == {"a.test", "b.test", "c.test"}
    assert gaps["b.test"] == []
