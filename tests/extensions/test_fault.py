"""Faults around a crawl: it continues, or it stops with a one-line reason and can be resumed."""

import json
import os
import re
import sys
from collections import Counter

import pytest
from conftest import PROJECT
from soup import FOOD

NAMES = ["pea", "leek", "beet", "corn", "kale", "okra", "fennel", "turnip"]
HOSTS = [f"http://{name}.test/" for name in NAMES]
NO_MORE_FILES = """
import atexit, resource, runpy
from tres_scrapy.extensions.step import Steps
book = Steps.book
def exhaust(self, *arguments, **options):
    booked = book(self, *arguments, **options)
    if self._crawl.pages > 1:  # by now all that is loaded when it is first used is there
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        # What torch does at exit may read files: its complaint would not be the crawl's.
        atexit.register(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
    return booked
Steps.book = exhaust
runpy.run_module("scrapy", run_name="__main__")
"""
ONE_BAD_PAGE = """
import os
from tres_scrapy.topic import judge
read_page = judge.read_page
def fail(html, url, *limits, **options):
    if "leek" in url:
        {0}
    return read_page(html, url, *limits, **options)
judge.read_page = fail
"""


@pytest.fixture
def soups(pages):
    """A seed that links to soups on other hosts; each answer ends its connection."""
    links = "".join(f'<a href="{url}">soup</a> ' for url in HOSTS)
    pages.add("http://seed.test/", FOOD.format("rice") + links, Connection="close")
    pages.add("http://seed.test/robots.txt", status=404, Connection="close")
    for name, url in zip(NAMES, HOSTS, strict=True):
        pages.add(url, FOOD.format(f"{name} " * 20), Connection="close")
        pages.add(f"{url}robots.txt", status=404, Connection="close")
    return pages


@pytest.fixture
def crawl(scrapy, soups, tmp_path):
    """Crawl the soups in a JOBDIR; return the process and the URLs of all items so far."""

    def run(*arguments, **options):
        output = tmp_path / "items.jsonl"
        process = scrapy(
            *("crawl", "tres", "-a", "topic=food", "-a", "seed=http://seed.test/"),
            *("-s", f"JOBDIR={tmp_path / 'job'}", "-a", f"output={output}"),
            *("-s", "DOWNLOAD_DELAY=0", "-a", "rest=0.05", "-a", "max_outage=1"),
            *arguments,
            pages=soups,
            **options,
        )
        assert "Traceback" not in process.stderr
        lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
        return process, sorted(json.loads(line)["url"] for line in lines)

    return run


def stopped_for_want_of_a_network(process):
    assert process.returncode == 1
    assert process.stderr.count("No host has answered for") == 1
    assert process.stats["finish_reason"] == "unreachable"


@pytest.mark.long
def test_lost_network_stops_without_loss(crawl, soups):
    soups.lasts = 2  # robots.txt and the seed
    process, items = crawl()
    stopped_for_want_of_a_network(process)
    assert items == ["http://seed.test/"]
    soups.lasts = None
    process, items = crawl()
    assert process.returncode == 0, process.stderr
    assert items == sorted(["http://seed.test/", *HOSTS])


@pytest.mark.long
def test_returning_network_loses_nothing(crawl, soups):
    soups.lasts, soups.back = 2, 12
    process, items = crawl("-a", "max_outage=60")
    assert process.returncode == 0, process.stderr
    assert "The network is back" in process.stderr
    assert process.stats["tres/hosts_given_up"] == 0
    assert items == sorted(["http://seed.test/", *HOSTS])


@pytest.mark.long
def test_dead_hosts_fail_no_restart(crawl, soups):
    for url in HOSTS:
        for path in ("", "robots.txt"):
            soups.answers[url + path] = (503, {}, b"")
    for tries in (4, 5):
        process, items = crawl()
        assert process.returncode == 0, process.stderr
        assert process.stats["finish_reason"] == "frontier_exhausted"
        assert process.stats["tres/hosts_given_up"] == len(HOSTS)
        assert "8 on hosts that kept failing" in process.stderr
        assert items == ["http://seed.test/"]
        asked = Counter(url for _, url in soups.requests if "seed.test" not in url)
        assert asked == {f"{host}robots.txt": tries for host in HOSTS}


@pytest.mark.long
def test_lack_of_files_stops_without_loss(crawl):
    process, items = crawl("-s", "CONCURRENT_REQUESTS=1", program=("-c", NO_MORE_FILES))
    stopped_for_want_of_a_network(process)
    process, items = crawl()
    assert process.returncode == 0, process.stderr
    assert items == sorted(["http://seed.test/", *HOSTS])


@pytest.mark.parametrize("judges", [1, 2])
@pytest.mark.parametrize(
    "fault", ["raise ValueError('a bad page')", "raise MemoryError", "os.kill(os.getpid(), 11)"]
)
@pytest.mark.long
def test_bad_page_fails_alone(crawl, tmp_path, monkeypatch, fault, judges):
    (tmp_path / "sitecustomize.py").write_text(ONE_BAD_PAGE.format(fault), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    process, items = crawl("-a", f"judges={judges}")
    assert process.returncode == 0, process.stderr
    assert process.stats["tres/failures/judge_error"] == 1
    assert items == sorted(["http://seed.test/", *(url for url in HOSTS if "leek" not in url)])


def test_fault_table_names_existing_tests():
    faults = (PROJECT / "docs" / "resume.md").read_text(encoding="utf-8").partition("## Faults")[2]
    rows = [row for row in faults.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        files = re.findall(r"`(test_\w+\.py)`((?:[:,] `[a-z]\w+…?`)*)", row.rpartition(" | ")[2])
        assert files, row
        for file, named in files:
            (path,) = (PROJECT / "tests").rglob(file)
            source = path.read_text(encoding="utf-8")
            for name in re.findall(r"`(\w+)…?`", named):
                assert f"def test_{name}" in source, f"{file}: {name}"
