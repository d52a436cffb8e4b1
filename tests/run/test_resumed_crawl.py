"""Crawls in a JOBDIR: interrupted, killed, resumed."""

import json
import re
import sqlite3
from shutil import copytree

import pytest
from conftest import PROJECT, served
from soup import FOOD

from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.whole_file import drop_torn_line

PAGES = 12
NO_LONGER_WRITABLE = """
import runpy
from tres_scrapy.run.journal import Journal
book = Journal.book
def fail(self, *arguments):
    if self.steps == 4:
        self.database.execute("PRAGMA query_only = ON")
    return book(self, *arguments)
Journal.book = fail
runpy.run_module("scrapy", run_name="__main__")
"""
BUG_IN_A_BOOKING = """
import runpy
from tres_scrapy.run import journal
page_row = journal.page_row
def fail(crawl, *arguments):
    if crawl.pages == 4:
        raise TypeError("a bug")
    return page_row(crawl, *arguments)
journal.page_row = fail
runpy.run_module("scrapy", run_name="__main__")
"""
FULL_DISK = """
import resource, runpy, signal
from tres_scrapy.export.output_file import JsonLinesPipeline
process_item = JsonLinesPipeline.process_item
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(self, item):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if self._written == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._file.tell() + 9, limits[1]))
    process_item(self, item)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return item
JsonLinesPipeline.process_item = fill
runpy.run_module("scrapy", run_name="__main__")
"""
KILLED_BEFORE_THE_ITEM = """
import os, runpy
from tres_scrapy.export.output_file import JsonLinesPipeline
process_item = JsonLinesPipeline.process_item
def die(self, item):
    if self._written == 2:
        self._file.write('{"url": "torn')
        self._file.flush()
        os.kill(os.getpid(), 9)
    return process_item(self, item)
JsonLinesPipeline.process_item = die
runpy.run_module("scrapy", run_name="__main__")
"""


def linked(pages):
    """A web of relevant pages, each with a link to the next."""
    for i in range(PAGES):
        link = f'<a href="http://h{i + 1}.test/">more soup</a>'
        pages.add(f"http://h{i}.test/", FOOD.format(f"leek{'abcdefghijklmnop'[i]}") + link)
    return pages


@pytest.fixture
def soups(pages):
    return linked(pages)


def arguments_in(directory):
    """Return the command that crawls the soups in a JOBDIR in `directory`."""
    return [
        *("crawl", "tres", "-a", "topic=food", "-a", "seed=http://h0.test/"),
        *("-s", f"JOBDIR={directory / 'job'}", "-a", f"output={directory / 'items.jsonl'}"),
        *("-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0", "-s", "CONCURRENT_REQUESTS=1"),
    ]


@pytest.fixture
def crawl(scrapy, soups, tmp_path):
    """Crawl the soups in a JOBDIR."""

    def run(*arguments, **options):
        return scrapy(*arguments_in(tmp_path), *arguments, pages=soups, **options)

    return run


@pytest.fixture(scope="module")
def two_pages(scrapy, tmp_path_factory):
    """The directory of a job that has fetched two pages."""
    directory = tmp_path_factory.mktemp("two")
    with served() as web:
        process = scrapy(*arguments_in(directory), "-a", "pages=2", pages=linked(web))
    assert process.returncode == 0, process.stderr
    return directory / "job"


def items_of(tmp_path):
    lines = (tmp_path / "items.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["url"] for line in lines]


def all_soups(count=PAGES):
    return [f"http://h{i}.test/" for i in range(count)]


def test_crawl_goes_on_where_it_ended(crawl, soups, tmp_path):
    first = crawl("-a", "pages=4")
    assert first.returncode == 0, first.stderr
    assert items_of(tmp_path) == all_soups(4)
    second = crawl()
    assert second.returncode == 0, second.stderr
    assert "Resuming after 4 pages" in second.stderr
    assert items_of(tmp_path) == all_soups()
    assert soups.fetched() == [*all_soups(), f"http://h{PAGES}.test/"]
    assert "Traceback" not in first.stderr + second.stderr


def test_crawl_that_is_done_says_so(crawl, two_pages, soups, tmp_path):
    copytree(two_pages, tmp_path / "job")
    process = crawl("-a", "pages=2")
    assert process.returncode == 0, process.stderr
    assert "All 2 pages were fetched before: raise -a pages= to go on" in process.stderr
    assert process.stats["tres/relevant_pages"] == 2
    assert soups.fetched() == []


def test_default_output_is_one_per_job(crawl, tmp_path):
    for limit in ("pages=2", "pages=3"):
        output = tmp_path / "output"
        process = crawl("-a", limit, "-a", "output=")
        assert process.returncode == 0, process.stderr
    (name,) = re.findall(r"Wrote 1 relevant page to (\S+), which has 3 now", process.stderr)
    output = PROJECT / name
    assert len(output.read_text(encoding="utf-8").splitlines()) == 3
    output.unlink()


@pytest.mark.long
def test_unwritten_item_is_written_later(crawl, soups, tmp_path):
    killed = crawl(program=("-c", KILLED_BEFORE_THE_ITEM))
    assert killed.returncode == -9
    assert items_after_repair(tmp_path) == all_soups(2)
    process = crawl()
    assert process.returncode == 0, process.stderr
    assert items_of(tmp_path) == all_soups()
    assert soups.fetched() == [*all_soups(), f"http://h{PAGES}.test/"]


def items_after_repair(tmp_path):
    text = (tmp_path / "items.jsonl").read_text(encoding="utf-8")
    assert text.endswith('{"url": "torn')
    return [json.loads(line)["url"] for line in text.splitlines()[:-1]]


@pytest.mark.long
def test_written_item_is_not_repeated(crawl, tmp_path):
    crawl("-a", "pages=3")
    with sqlite3.connect(tmp_path / "job" / NAME) as connection:  # as if it were not exported
        line = (tmp_path / "items.jsonl").read_text(encoding="utf-8").splitlines()[1]
        (row,) = connection.execute("SELECT row FROM page WHERE step = 2").fetchone()
        text = json.dumps(["tres_scrapy.items:RelevantPage", json.loads(line)])
        connection.execute("INSERT INTO item VALUES (?, 0, ?)", (row, text))
    connection.close()
    process = crawl("-a", "pages=4")
    assert process.returncode == 0, process.stderr
    assert items_of(tmp_path) == all_soups(4)
    with sqlite3.connect(tmp_path / "job" / NAME) as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (0,)
    connection.close()


@pytest.mark.long
def test_bug_in_a_booking_stops_the_crawl(crawl, soups, tmp_path):
    failed = crawl(program=("-c", BUG_IN_A_BOOKING))
    assert failed.returncode == 1
    assert "TypeError: a bug" in failed.stderr
    assert soups.fetched() == all_soups(4)
    process = crawl()
    assert process.returncode == 0, process.stderr
    assert items_of(tmp_path) == all_soups()


def test_unwritable_job_resumes_later(crawl, soups, tmp_path):
    failed = crawl(program=("-c", NO_LONGER_WRITABLE))
    assert failed.returncode == 1, failed.stderr
    assert failed.stderr.count("JOBDIR cannot be written") == 1, failed.stderr
    assert "'finish_reason': 'job_failed'" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert items_of(tmp_path) == all_soups(4)
    process = crawl()
    assert process.returncode == 0, process.stderr
    assert items_of(tmp_path) == all_soups()


def test_unwritable_items_come_later(crawl, tmp_path):
    failed = crawl(program=("-c", FULL_DISK))
    assert failed.returncode == 1, failed.stderr
    assert failed.stderr.count("items.jsonl cannot be written") == 1, failed.stderr
    assert "'finish_reason': 'output_failed'" in failed.stderr
    assert "Traceback" not in failed.stderr
    process = crawl()
    assert process.returncode == 0, process.stderr
    assert items_of(tmp_path) == all_soups()


@pytest.fixture
def rivals(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "benchmarks"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-a", "topic=sports"), "a crawl with topic 'food', not 'sports'"),
        (("-a", "policy=rivals:RANDOM"), "a crawl with policy 'tres', not 'rivals:RANDOM'"),
    ],
)
@pytest.mark.usefixtures("rivals")
def test_different_crawl_is_refused(crawl, two_pages, tmp_path, arguments, reason):
    copytree(two_pages, tmp_path / "job")
    process = crawl(*arguments, "-s", "LOG_ENABLED=False")
    assert process.returncode == 1
    assert reason in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.usefixtures("rivals")
def test_unresumable_policy_says_so(crawl, tmp_path):
    process = crawl("-a", "policy=rivals:BREADTH_FIRST", "-s", "LOG_ENABLED=False")
    assert process.returncode == 1
    assert "the policy 'rivals:BREADTH_FIRST' cannot be resumed" in process.stderr
    assert process.stderr.count("\n") == 1
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE page SET mark = x'00'",
        "INSERT INTO item VALUES (1, 0, '{\"url\": 1}')",
        "INSERT INTO item VALUES (1, 0, '[')",
        'INSERT INTO item VALUES (1, 0, \'["builtins:dict", {"url": "\\ud800"}]\')',
        "INSERT INTO request VALUES (1, '{}')",
        "UPDATE page SET host = 77",
    ],
)
def test_damaged_job_is_one_line(crawl, two_pages, tmp_path, statement):
    copytree(two_pages, tmp_path / "job")
    with sqlite3.connect(tmp_path / "job" / NAME) as connection:
        connection.execute(statement)
    connection.close()
    process = crawl("-s", "LOG_ENABLED=False")
    assert process.returncode == 1
    assert "the crawl in JOBDIR is damaged" in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("", ""),
        ('{"url": 1}\n', '{"url": 1}\n'),
        ('{"url": 1}\n{"url": 2', '{"url": 1}\n'),
        ('{"url": 2', ""),
        ('{"url": 1}\n{"u', '{"url": 1}\n'),
        ('{"uri": 1}', '{"uri": 1}'),
        ("not ours", "not ours"),
    ],
)
def test_torn_last_line_is_cut(tmp_path, text, repaired):
    path = tmp_path / "items.jsonl"
    path.write_text(text)
    drop_torn_line(path)
    assert path.read_text() == repaired
