"""The output of a crawl from keywords, written again by its last model."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from conftest import PROJECT
from judged import told
from recorded_run import META, crawl_of, steps
from test_finding import ITEM, rows_of

from tres_scrapy.export.csv_table import CsvPipeline
from tres_scrapy.export.final_output import Settled, settle
from tres_scrapy.export.late_item import LastVerdicts, late_item
from tres_scrapy.export.output_file import JsonLinesPipeline
from tres_scrapy.items import RelevantPage, item_class
from tres_scrapy.report.record import Record
from tres_scrapy.run.writer import Writer
from tres_scrapy.url.message import TresError

STARTED = "20260101T000000.000000"


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    path, crawl = tmp_path_factory.mktemp("run") / "food.run", crawl_of(pages=20)
    writer = Writer.open(path, crawl, META | {"started": STARTED}, {}, 100.0)
    for number, booking in enumerate(steps(crawl)):
        p = 0.4 if booking.kind == "page" else None
        writer.note(told(booking, f"title {number}", "the soup " * 40, p), 1.8e9 + number)
    writer.close(1.9e9, "page_limit")
    with Record(path) as record:
        yield record


def pages_of(record):
    return list(record.pages(0.0))


def view_of(*relevant):
    """Return a model that finds these pages relevant, with P 0.75."""
    urls = {page.url for page in relevant}
    judge = lambda page, stored, trained: (0.75, True) if page.url in urls else (0.25, False)  # noqa: E731
    return SimpleNamespace(judge=judge)


def write(path, *items):
    pipeline = JsonLinesPipeline(path)
    pipeline.open()
    for item in items:
        pipeline.process_item(item)
    pipeline.close_spider()


def item_of(page):
    return replace(ITEM, url=page.url, final_url=page.final_url or page.url, probability=0.9)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def lists_of(record):
    pages = pages_of(record)
    good = [page for page in pages if page.relevant]
    bad = [page for page in pages if not page.relevant]
    assert len(good) > 2
    assert len(bad) > 2
    return good, bad


def test_log_says_that_pages_are_judged_again(record, monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr("tres_scrapy.export.late_item.PATIENCE", -1.0)
    LastVerdicts(record, view_of())
    count = len(pages_of(record))
    assert caplog.messages[0] == f"Judges {count} pages again by the last model"
    assert caplog.messages[1] == f"1 of {count} pages are judged by the last model"
    assert caplog.messages[-1] == f"All {count} pages are judged by the last model"


def test_output_follows_the_last_model(record, tmp_path):
    good, bad = lists_of(record)
    path = tmp_path / "food.jsonl"
    write(path, *map(item_of, good))
    verdicts = LastVerdicts(record, view_of(*good[1:], bad[0]))
    late = [late_item(record, bad[0], 0.75, ())]
    domains = len({ITEM.domain, late[0].domain})
    rows = dict.fromkeys((page.row for page in (*good[1:], bad[0])), 0.75)
    assert settle(path, verdicts, late) == Settled(rows, domains, 1, 1)
    lines = lines_of(path)
    assert [line["url"] for line in lines] == [*(page.url for page in good[1:]), bad[0].url]
    assert {line["probability"] for line in lines} == {0.75}
    assert settle(path, verdicts, late) == Settled(rows, domains, 0, 0)  # a second time, the same
    assert lines_of(path) == lines


def test_page_taken_out_before_a_resume_comes_back(tmp_path):
    path, crawl = tmp_path / "food.run", crawl_of(pages=20)
    writer = Writer.open(path, crawl, META | {"started": STARTED}, {}, 100.0)
    out = []
    for number, booking in enumerate(steps(crawl)):
        writer.note(told(booking, f"title {number}", "the soup " * 40), 1.8e9 + number)
        out = out or [booking.experience.row] * (booking.relevant == 1)
    writer.finish(1.9e9, "page_limit", final=json.dumps({"rows_out": out}))
    for again in (2e9, 3e9):  # the second start follows a kill
        writer.begin({}, {}, again)
    writer.flush(3e9, last=True)
    with Record(path) as record:
        good, _ = lists_of(record)
        assert "final" not in record.meta()
        verdicts = LastVerdicts(record, view_of(*good))
        assert [item.url for item in verdicts.back] == [p.url for p in good if p.row in out]
        assert verdicts.back


def test_item_dropped_by_a_pipeline_stays_out(record, tmp_path):
    good, _ = lists_of(record)
    path = tmp_path / "food.jsonl"
    write(path, *map(item_of, good[1:]))
    settle(path, LastVerdicts(record, view_of(*good)), [])
    assert [line["url"] for line in lines_of(path)] == [page.url for page in good[1:]]


def test_lines_of_others_stay(record, tmp_path):
    good, _ = lists_of(record)
    path = tmp_path / "food.jsonl"
    before = replace(item_of(good[0]), fetched_at="2025-12-31T23:59:59+00:00")
    write(path, ITEM, before)
    with path.open("a", encoding="utf-8") as file:
        file.write('"shopping list"\n{"url": "')
    settle(path, LastVerdicts(record, view_of()), [])
    assert path.read_text(encoding="utf-8").endswith('"shopping list"\n')  # the torn line is gone
    lines = lines_of(path)[:2]
    assert [line["probability"] for line in lines] == [ITEM.probability, 0.9]


def test_late_item_has_the_fields_of_others(record):
    _, bad = lists_of(record)
    page = next(page for page in bad if page.parent is not None)
    item = late_item(record, page, 0.6, ("html", "language"))
    assert asdict(item).keys() == asdict(ITEM).keys() | {"html"}
    assert item.language == "en"
    assert item.path[-1] == item.final_url
    assert item.depth == len(item.path) - 1 > 0
    assert item.why == record.why(page)
    assert isinstance(item, RelevantPage)


def test_tables_follow(record, tmp_path):
    good, bad = lists_of(record)
    pipeline = CsvPipeline(tmp_path / "food.jsonl", len)
    pipeline.open()
    for page in good:
        pipeline.process_item(item_of(page))
    pipeline.close_spider()
    late = replace(item_of(bad[0]), domain="late.test")
    verdicts = LastVerdicts(record, view_of(*good[2:], bad[0]))
    for _ in range(2):
        pipeline.rewrite(verdicts.of, [late])
        rows = rows_of(tmp_path / "food.csv")
        assert [row["url"] for row in rows] == [*(page.url for page in good[2:]), bad[0].url]
        assert rows[0]["probability"] == "0.7500"
        domains = {row["domain"]: row["relevant"] for row in rows_of(tmp_path / "food-domains.csv")}
        assert domains == {"a.test": str(len(good) - 2), "late.test": "1"}


def test_table_of_several_topics_keeps_its_columns(record, tmp_path):
    good, bad = lists_of(record)
    kind, path = item_class(("scores",)), tmp_path / "food.jsonl"
    pipeline = CsvPipeline(path, len, topics=("food", "sports"))
    pipeline.open()
    for page in good:
        values = {name: getattr(item_of(page), name) for name in RelevantPage.__slots__}
        pipeline.process_item(kind(**values, scores={"food": 0.9, "sports": 0.2}))
    pipeline.close_spider()
    CsvPipeline(path, len).rewrite(
        LastVerdicts(record, view_of(*good, bad[0])).of, [item_of(bad[0])]
    )
    rows = rows_of(tmp_path / "food.csv")
    assert [row["score_sports"] for row in rows] == ["0.2000"] * len(good) + [""]
    pipeline.open()  # it can be continued
    pipeline.close_spider()


def test_file_of_a_running_crawl_is_left_alone(record, tmp_path):
    path = tmp_path / "food.jsonl"
    pipeline = JsonLinesPipeline(path)
    pipeline.open()
    pipeline.process_item(ITEM)
    with pytest.raises(TresError, match="another crawl writes to it"):
        settle(path, LastVerdicts(record, view_of()), [])
    pipeline.close_spider()
    assert len(lines_of(path)) == 1


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["write", "replace"])
def test_kill_leaves_the_old_file(record, tmp_path, moment):
    """A kill while lines are written, and before the new file takes the place of the old one."""
    good, _ = lists_of(record)
    path = tmp_path / "food.jsonl"
    write(path, *map(item_of, good))
    old = path.read_bytes()
    name = "tres_scrapy.export.final_output._line" if moment == "write" else "pathlib.Path.replace"
    code = f"""
import os, sys
from pathlib import Path
from unittest.mock import patch
sys.path[:0] = [{str(PROJECT / "tests")!r}, {str(PROJECT / "tests" / "export")!r}]
from test_final_output import *
with Record(Path({str(record.path)!r})) as record:
    verdicts = LastVerdicts(record, view_of(*lists_of(record)[0][1:]))
with patch({name!r}, lambda *_: os.kill(os.getpid(), 9)):
    settle(Path({str(path)!r}), verdicts, [])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, timeout=60, check=False)
    assert done.returncode == -9
    assert path.read_bytes() == old
    settle(path, LastVerdicts(record, view_of(*good[1:])), [])
    assert len(lines_of(path)) == len(good) - 1
    assert os.listdir(tmp_path) == [path.name]
