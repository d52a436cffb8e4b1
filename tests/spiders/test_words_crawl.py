"""Crawls of a new topic, from a file of keywords."""

import csv
import json
import re
import sqlite3
from contextlib import closing

import pytest
from conftest import command as tres
from conftest import served
from soup import FOOD, OTHER, lines_of, link

from tres_scrapy.export.run_export import pages_of
from tres_scrapy.export.topic_view import topic_view
from tres_scrapy.frontier.store import REVISED
from tres_scrapy.report.crawl_report import report_beside
from tres_scrapy.report.record import Record
from tres_scrapy.run.journal import DESCRIBED
from tres_scrapy.run.run_file import NAME

PAGES = 24
KEYWORDS = "food\ncooking\nrecipe\nsoup\nbread\n"
KILLED = """
import os, runpy
from tres_scrapy.run.journal import Journal
book = Journal.book
def die(self, *arguments):
    if self.steps == 13:
        os.kill(os.getpid(), 9)
    return book(self, *arguments)
Journal.book = die
runpy.run_module("scrapy", run_name="__main__")
"""


def add_soups(web):
    """Fill a web with a chain of pages: two in three are relevant."""
    for i in range(PAGES):
        html = OTHER if i % 3 == 2 else FOOD
        word = "abcdefghijklmnopqrstuvwxyz"[i]
        body = html.format(f"leek{word} pea{word}") * 2
        web.add(f"http://h{i}.test/", body + link(f"http://h{i + 1}.test/"))
    return web


@pytest.fixture
def soups(pages):
    return add_soups(pages)


def arguments_in(directory, *more):
    (directory / "soup.txt").write_text(KEYWORDS, encoding="utf-8")
    return [
        *("crawl", "tres", "-a", f"keywords={directory / 'soup.txt'}"),
        *("-a", "seed=http://h0.test/", "-a", f"output={directory / 'items.jsonl'}"),
        *("-s", f"JOBDIR={directory / 'job'}", "-s", "CONCURRENT_REQUESTS=1"),
        *("-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0", "-a", "report=0", *more),
    ]


def found_in(directory):
    return sorted(item["url"] for item in lines_of(directory / "items.jsonl"))


def pack_of(directory):
    place = directory / "job" / "topic" / "pack"
    return {file.name: file.read_bytes() for file in place.iterdir()}


@pytest.mark.long
def test_killed_crawl_learns_the_same_topic(scrapy, tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    with served() as web:
        whole = scrapy(*arguments_in(tmp_path / "whole"), pages=add_soups(web))
    assert whole.returncode == 0, whole.stderr
    expected = [f"http://h{i}.test/" for i in range(PAGES) if i % 3 != 2]
    assert found_in(tmp_path / "whole") == sorted(expected)
    assert "Topic: learned from 11 pages and 0 answers" in whole.stderr
    command = arguments_in(tmp_path / "killed")
    with served() as web:
        killed = scrapy(*command, pages=add_soups(web), program=("-c", KILLED))
        assert killed.returncode == -9, killed.stderr
        resumed = scrapy(*command, pages=web)
    assert "Resuming after 13 pages" in resumed.stderr
    assert found_in(tmp_path / "killed") == found_in(tmp_path / "whole")
    assert pack_of(tmp_path / "killed") == pack_of(tmp_path / "whole")


@pytest.mark.long
def test_waiting_links_are_described_again(scrapy, soups, tmp_path):
    body = FOOD.format("leek pea") + "".join(link(f"http://h{i}.test/") for i in range(1, PAGES))
    soups.add("http://h0.test/", body)
    process = scrapy(*arguments_in(tmp_path, "-a", "pages=14"), pages=soups)
    assert process.returncode == 0, process.stderr
    with closing(sqlite3.connect(tmp_path / "job" / NAME)) as job:
        query = "SELECT length(value) FROM state WHERE name LIKE ?"
        found = [size for (size,) in job.execute(query, [f"{DESCRIBED} %"])]
    assert len(found) == 2  # after the models of 1 page and of 11
    assert sum(found) > PAGES * REVISED.itemsize


@pytest.mark.long
def test_answers_are_read_during_the_crawl(scrapy, soups, tmp_path):
    words = " ".join(f"harbour{c} anchor{c} mast{c}" for c in "abcdefghijkl")
    unlike = f"<title>ships</title><p>{words}</p>"  # the others are like answered pages
    soups.add("http://h9.test/", unlike + link("http://h10.test/"))
    answers = tmp_path / "answers.txt"
    lines = [f"{'no' if i % 3 == 2 else 'yes'} http://h{i}.test/" for i in range(8)]
    answers.write_text("\n".join(lines), encoding="utf-8")
    process = scrapy(*arguments_in(tmp_path, "-a", f"answers={answers}"), pages=soups)
    assert process.returncode == 0, process.stderr
    said = [line for line in process.stderr.splitlines() if "Topic: " in line]
    assert any("11 pages and 8 answers; by the answers" in line for line in said), said
    questions = (tmp_path / "job" / "topic" / "questions.jsonl").read_text(encoding="utf-8")
    asked = {json.loads(line)["url"] for line in questions.splitlines()}
    assert asked == {"http://h9.test/"}


COUNTING = """
import runpy, sys
from tres_scrapy.export import late_item
view_pages = late_item.view_pages
def counted(*arguments):
    print("judged again", file=sys.stderr)
    return view_pages(*arguments)
late_item.view_pages = counted
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.mark.long
def test_pages_are_judged_again_once(scrapy, soups, tmp_path):
    answers = tmp_path / "job" / "topic" / "answers.txt"
    answers.parent.mkdir(parents=True)
    answers.write_text("yes http://h2.test/\nperhaps\n", encoding="utf-8")
    process = scrapy(*arguments_in(tmp_path), pages=soups, program=("-c", COUNTING))
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("judged again\n") == 1
    assert "Topic: answers 'answers.txt', line 2: 'perhaps' must be `yes URL`" in process.stderr
    assert "http://h2.test/" in found_in(tmp_path)


def test_output_is_what_the_last_model_finds_relevant(scrapy, soups, tmp_path, capsys):
    answers = tmp_path / "answers.txt"
    answers.write_text("yes http://h2.test/\nno http://h3.test/\n", encoding="utf-8")
    feed = tmp_path / "feed.jsonl"
    more = ("-a", f"answers={answers}", "-a", "csv=1", "-a", "retract=1", "-o", str(feed))
    command = arguments_in(tmp_path, *more)
    output = tmp_path / "items.jsonl"
    for number in ("[1-9]", "0"):  # the second time, nothing is left to fetch or to change
        process = scrapy(*command, pages=soups)
        assert process.returncode == 0, process.stderr
        with Record(tmp_path / "job" / NAME) as record:
            view = topic_view(record, print)
            expected = sorted(page["url"] for page in pages_of(record, view=view))
        assert found_in(tmp_path) == expected
        said = rf"\({number} of them found relevant at the end, {number} taken out\)"
        assert re.search(f"Wrote {len(expected)} relevant pages to {output} {said}", process.stderr)
        assert "http://h2.test/" in expected
        assert "http://h3.test/" not in expected
        with output.with_suffix(".csv").open(encoding="utf-8") as lines:
            assert sorted(row["url"] for row in csv.DictReader(lines)) == expected
        items = [(item["url"], "retracted" in item) for item in lines_of(feed)]
        assert len(set(items)) == len(items)
        retracted = {url for url, is_retracted in items if is_retracted}
        assert "http://h3.test/" in retracted
        assert {url for url, _ in items} - retracted == {*expected}
    again = expected[0]
    report = report_beside(tmp_path / "job" / NAME)
    with pytest.raises(SystemExit):
        tres("answer", tmp_path / "job", "--no", again)
    assert f"{output} has " in capsys.readouterr().out
    assert again not in found_in(tmp_path)
    with Record(tmp_path / "job" / NAME) as record:
        now = sorted(page["url"] for page in pages_of(record, view=topic_view(record)))
        assert len(json.loads(record.meta()["final"])["rows"]) == len(now)
    assert f"{len(now)} of {PAGES} pages" in report.read_text(encoding="utf-8")
    assert found_in(tmp_path) == now
    with output.with_suffix(".csv").open(encoding="utf-8") as lines:
        assert sorted(row["url"] for row in csv.DictReader(lines)) == now


DROPPING = """
import runpy
from scrapy.exceptions import DropItem
from tres_scrapy.export.known import NewnessPipeline
from tres_scrapy.export import late_item
from tres_scrapy import addon
class Dropping(NewnessPipeline):
    @classmethod
    def from_crawler(cls, crawler):
        return cls(None)
    def process_item(self, item):
        if item.url == "http://h2.test/":
            raise DropItem("unwanted")
        return item
addon.CRAWLING["ITEM_PIPELINES"][Dropping] = 100
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.mark.long
def test_late_page_that_a_pipeline_drops_stays_out(scrapy, soups, tmp_path):
    answers = tmp_path / "answers.txt"
    answers.write_text("yes http://h2.test/\n", encoding="utf-8")
    command = arguments_in(tmp_path, "-a", f"answers={answers}")
    process = scrapy(*command, pages=soups, program=("-c", DROPPING))
    assert process.returncode == 0, process.stderr
    with Record(tmp_path / "job" / NAME) as record:
        expected = {page["url"] for page in pages_of(record, view=topic_view(record, print))}
    assert "http://h2.test/" in expected
    assert found_in(tmp_path) == sorted(expected - {"http://h2.test/"})


@pytest.mark.long
def test_late_pages_leave_without_a_jobdir(scrapy, soups, tmp_path):
    answers, feed = tmp_path / "answers.txt", tmp_path / "feed.jsonl"
    answers.write_text("yes http://h2.test/\n", encoding="utf-8")
    command = arguments_in(tmp_path, "-a", f"answers={answers}", "-o", str(feed))
    command.remove(f"JOBDIR={tmp_path / 'job'}")
    command.remove("-s")
    process = scrapy(*command, pages=soups)
    assert process.returncode == 0, process.stderr
    for file in (tmp_path / "items.jsonl", feed):
        assert [item["url"] for item in lines_of(file)].count("http://h2.test/") == 1
    with Record(tmp_path / "items.run") as record:
        rows = json.loads(record.meta()["late items"])
        assert record.find("http://h2.test/").row in rows


STOPPED = KILLED.replace("os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 15)")


@pytest.mark.long
def test_stopped_crawl_writes_its_output_again(scrapy, soups, tmp_path):
    answers = tmp_path / "answers.txt"
    answers.write_text("yes http://h2.test/\nno http://h3.test/\n", encoding="utf-8")
    command = arguments_in(tmp_path, "-a", f"answers={answers}")
    process = scrapy(*command, pages=soups, program=("-c", STOPPED))
    assert "Stopped after " in process.stderr
    with Record(tmp_path / "job" / NAME) as record:
        expected = sorted(page["url"] for page in pages_of(record, view=topic_view(record)))
    assert found_in(tmp_path) == expected
    assert "http://h2.test/" in expected


SENDING = """
import os, runpy
from tres_scrapy.export.output_file import JsonLinesPipeline
hold, process = JsonLinesPipeline.hold, JsonLinesPipeline.process_item
def held(self, urls):
    self.late = set(urls)
    hold(self, urls)
def processed(self, item):
    if item.url in getattr(self, "late", ()):
        os.kill(os.getpid(), 9)
    return process(self, item)
JsonLinesPipeline.hold, JsonLinesPipeline.process_item = held, processed
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.mark.long
def test_kill_while_late_pages_leave_loses_none(scrapy, soups, tmp_path):
    answers, feed = tmp_path / "answers.txt", tmp_path / "feed.jsonl"
    answers.write_text("yes http://h2.test/\n", encoding="utf-8")
    command = arguments_in(tmp_path, "-a", f"answers={answers}", "-o", str(feed))
    killed = scrapy(*command, pages=soups, program=("-c", SENDING))
    assert killed.returncode == -9, killed.stderr
    assert "http://h2.test/" not in found_in(tmp_path)
    resumed = scrapy(*command, pages=soups)
    assert resumed.returncode == 0, resumed.stderr
    for file in (tmp_path / "items.jsonl", feed):
        assert [item["url"] for item in lines_of(file)].count("http://h2.test/") == 1


@pytest.mark.long
def test_output_without_a_record_stays(scrapy, soups, tmp_path):
    answers = tmp_path / "answers.txt"
    answers.write_text("no http://h3.test/\n", encoding="utf-8")
    process = scrapy(
        *arguments_in(tmp_path, "-a", f"answers={answers}", "-a", "texts=0"), pages=soups
    )
    assert "by the model of the moment: without texts in a record" in process.stderr
    assert "http://h3.test/" in found_in(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("# none\n", "no keywords: write one word or phrase per line"),
        ("123\n", "keyword '123' must hold letters"),
        (None, "cannot be read"),
    ],
)
def test_bad_keywords_are_one_line(scrapy, tmp_path, lines, said):
    command = arguments_in(tmp_path)
    if lines is None:
        (tmp_path / "soup.txt").unlink()
    else:
        (tmp_path / "soup.txt").write_text(lines, encoding="utf-8")
    process = scrapy(*command)
    assert process.returncode == 1
    assert said in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "said"), [("anwsers.txt", "does not exist: check the path"), (".", "cannot be read")]
)
def test_mistyped_file_of_answers_is_refused(scrapy, tmp_path, name, said):
    process = scrapy(*arguments_in(tmp_path, "-a", f"answers={tmp_path / name}"))
    assert process.returncode == 1
    assert f"answers {str(tmp_path / name)!r} {said}" in process.stderr
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "job").exists()
