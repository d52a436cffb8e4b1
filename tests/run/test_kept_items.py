"""Items of crawls in a JOBDIR that are killed or whose output fails are not lost."""

import csv
import json

import pytest
from conftest import PROJECT
from soup import FOOD, lines_of
from test_resumed_crawl import arguments_in

KITCHEN = PROJECT / "tests" / "example_project"
PAGES = 9
DIES_IN_PIPELINE = """
import os, runpy, sys
sys.path.insert(0, os.getcwd())
from kitchen.components import Shout
seen = []
def die(self, item):
    seen.append(item)
    if len(seen) == 6:
        os.kill(os.getpid(), 9)
    return item
Shout.process_item = die
runpy.run_module("scrapy", run_name="__main__")
"""
FAILS_IN_PIPELINE = """
import os, runpy, sys
sys.path.insert(0, os.getcwd())
from kitchen.components import Shout
seen = []
def fail(self, item):
    seen.append(item)
    if len(seen) in (2, 3):
        raise ValueError("the database is away")
    return dict(item)
Shout.process_item = fail
runpy.run_module("scrapy", run_name="__main__")
"""
FULL_DISK = """
import resource, runpy, signal
from tres_scrapy.export.csv_table import CsvPipeline
from tres_scrapy.export.output_file import FeedFlush
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
seen = []
def patch(kind, name):
    write = getattr(kind, name)
    def fill(self, *item):
        seen.append(item)
        if len(seen) == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (9, limits[1]))
        result = write(self, *item)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        return result
    setattr(kind, name, fill)
patch({})
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.fixture
def menu(pages):
    """A site of relevant pages, each with a link to the next."""
    for i in range(PAGES):
        text = FOOD.format(f"leek{'abcdefghijk'[i]}")
        pages.add(f"http://inn.test/{i}", f'{text}<a href="/{i + 1}">more soup</a>')
    return pages


@pytest.fixture
def crawl(scrapy, menu, tmp_path, monkeypatch):
    """Crawl the menu by a spider of another project, in a JOBDIR, with two feeds."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    feeds = {str(tmp_path / f"feed.{kind}"): {"format": kind} for kind in ("jsonlines", "csv")}

    def run(*arguments, **options):
        return scrapy(
            *("crawl", "recipes", "-a", "start=http://inn.test/0"),
            *("-s", f"JOBDIR={tmp_path / 'job'}", "-s", f"FEEDS={json.dumps(feeds)}"),
            *("-s", "CONCURRENT_REQUESTS=1", "-s", "DOWNLOAD_DELAY=0", *arguments),
            **{"pages": menu, "project": KITCHEN, **options},
        )

    return run


def urls_in(feed):
    if feed.suffix == ".jsonlines":
        return [item["url"] for item in lines_of(feed)]
    with feed.open(encoding="utf-8") as file:
        return [row["url"] for row in csv.DictReader(file) if row["url"] != "url"]


@pytest.mark.parametrize(("program", "ending"), [(DIES_IN_PIPELINE, -9), (FAILS_IN_PIPELINE, 0)])
def test_own_items_survive(crawl, tmp_path, program, ending):
    first = crawl(program=("-c", program))
    assert first.returncode == ending, first.stderr
    second = crawl()
    assert second.returncode == 0, second.stderr
    for kind in ("jsonlines", "csv"):
        urls = urls_in(tmp_path / f"feed.{kind}")
        assert sorted(set(urls)) == [f"http://inn.test/{i}" for i in range(1, PAGES)]
        assert len(urls) <= PAGES  # one may be there twice


def test_parquet_feed_needs_json_lines(crawl, tmp_path):
    feeds = {str(tmp_path / "feed.parquet"): {"format": "parquet"}}
    process = crawl("-s", f"FEEDS={json.dumps(feeds)}")
    assert process.returncode == 1
    said = process.stderr.splitlines()[-1]
    assert "JOBDIR: items of a Parquet feed wait in memory" in said


def test_unwritable_feed_ends_crawl(crawl, tmp_path):
    program = FULL_DISK.format("FeedFlush, 'item_scraped'")
    first = crawl(program=("-c", program))
    assert "'finish_reason': 'output_failed'" in first.stderr
    assert first.stderr.count("cannot be written") == 1, first.stderr
    second = crawl()
    assert second.returncode == 0, second.stderr
    urls = urls_in(tmp_path / "feed.jsonlines")
    assert set(urls) == {f"http://inn.test/{i}" for i in range(1, PAGES)}


@pytest.mark.long
def test_unwritable_table_ends_crawl(scrapy, menu, tmp_path):
    arguments = [*arguments_in(tmp_path), "-a", "csv=1", "-a", "seed=http://inn.test/0"]
    program = FULL_DISK.format("CsvPipeline, 'process_item'")
    first = scrapy(*arguments, pages=menu, program=("-c", program))
    assert first.returncode == 1, first.stderr
    assert first.stderr.count("items.csv cannot be written") == 1, first.stderr
    assert "Traceback" not in first.stderr
    second = scrapy(*arguments, pages=menu)
    assert second.returncode == 0, second.stderr
    everything = sorted(f"http://inn.test/{i}" for i in range(PAGES))
    assert sorted(item["url"] for item in lines_of(tmp_path / "items.jsonl")) == everything
    assert sorted(urls_in(tmp_path / "items.csv")) == everything
