"""The pages of a run, written from its file."""

import csv
import json
from contextlib import closing

import pytest
from click.testing import CliRunner
from judged import told
from recorded_run import META, crawl_of, steps

from tres_scrapy.cli.export import command
from tres_scrapy.config.typed import speak_of
from tres_scrapy.page.text import Link, Page
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import LEVEL, RecordError, StoredText, open_to_write, packed
from tres_scrapy.run.writer import Writer


@pytest.fixture(autouse=True)
def other_tests_speak_as_scrapy():
    yield
    speak_of(None)


def page_of(number):
    links = (Link("http://a.test/", "home"), Link("http://b.test/", "=menu\0"))
    return Page(f"http://p.test/{number}", f"title {number}", "soup " * 500 + str(number), links)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path, crawl = tmp_path_factory.mktemp("run") / "food.run", crawl_of(pages=20)
    writer = Writer.open(path, crawl, META, {}, 100.0)
    for number, booking in enumerate(steps(crawl)):
        page, p = page_of(number), None if booking.kind != "page" else number / 40
        writer.journal._keeps_texts = number % 3 > 0
        writer.note(told(booking, page.title, page.text, p, page.links), 100.0)
    writer.close(200.0, "page_limit")
    return path


def test_text_is_what_the_judge_read():
    page = page_of(1)
    assert StoredText.unpacked(packed(page)) == (page.title, page.text, ("home", "=menu\0"), ())
    assert LEVEL < 9


def test_lone_surrogate_is_replaced():
    page = Page("http://a.test/", "a \ud800", "", ())
    assert StoredText.unpacked(packed(page)).title == "a ?"


@pytest.mark.parametrize("data", [b"", b"no zlib", packed(page_of(1))[:-30]])
def test_damaged_text_is_one_line(run, tmp_path, data):
    copy = tmp_path / "a.run"
    copy.write_bytes(run.read_bytes())
    with closing(open_to_write(copy)) as file:
        file.execute("UPDATE text SET value = ?", (data,))
    with Record(copy) as record, pytest.raises(RecordError, match="cannot be read"):
        [record.text(page) for page in record.pages(0.0)]


def exported(run, tmp_path, ending, *arguments):
    file = tmp_path / f"pages.{ending}"
    result = CliRunner().invoke(command, ["--run", str(run), "-o", str(file), *arguments])
    assert result.exit_code == 0, result.output
    return file


def test_all_pages_are_exported_with_their_texts(run, tmp_path):
    lines = exported(run, tmp_path, "jsonl", "--least", "0").read_text(encoding="utf-8")
    pages = [json.loads(line) for line in lines.splitlines()]
    with Record(run) as record:
        count = record.count()
        assert len(pages) == count["relevant"] + count["irrelevant"] == 20
        assert [page["url"] for page in pages] == [page.url for page in record.pages(0.0)]
    numbers = [int(page["title"].split()[1]) for page in pages]
    assert numbers == sorted(numbers)
    for number, page in zip(numbers, pages, strict=True):
        whole = page_of(number).text
        assert page["text"] == (whole if number % 3 else whole[:300])
        assert page["links"] == ("home\n=menu\0" if number % 3 else "")


def test_pages_below_the_threshold_are_left_out(run, tmp_path):
    relevant = exported(run, tmp_path, "jsonl").read_text().splitlines()
    with Record(run) as record:
        assert len(relevant) == record.count()["relevant"] < 20
    likely = exported(run, tmp_path, "jsonl", "--least", "0.25").read_text().splitlines()
    assert all(json.loads(line)["probability"] >= 0.25 for line in likely)
    assert 0 < len(likely) < 20


def test_table_has_no_formula(run, tmp_path):
    with exported(run, tmp_path, "csv", "--least", "0").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert {row["relevant"] for row in rows} == {"true", "false"}
    assert not any(cell.startswith("=") for row in rows for cell in row.values())


def test_parquet_has_the_same_pages(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    table = parquet.read_table(exported(run, tmp_path, "parquet", "--least", "0"))
    assert table.num_rows == 20
    assert table.column("relevant").to_pylist().count(True) > 0


def test_markdown_has_a_heading_for_each_page(run, tmp_path):
    text = exported(run, tmp_path, "md", "--least", "0").read_text(encoding="utf-8")
    assert text.count("# title ") == 20


def test_unknown_ending_is_refused(run, tmp_path):
    result = CliRunner().invoke(command, ["--run", str(run), "-o", str(tmp_path / "pages.xls")])
    assert "must end with .jsonl, .csv, .parquet, .md" in str(result.exception)
