import json

from scrapy.utils.test import get_crawler

from tres_scrapy.refresh.collection import lines_of
from tres_scrapy.refresh.spider import RefreshPipeline
from tres_scrapy.refresh.visit import VisitItem


def report(number, **facts):
    return VisitItem(f"http://a.test/{number}", "changed", number, fetched_at=f"t{number}", **facts)


def run(path, found, *items):
    pipeline = RefreshPipeline(path, found)
    pipeline.open()
    passed = [pipeline.process_item(item) for item in items]
    pipeline.close_spider()
    return passed


def test_visits_and_links_are_appended(tmp_path):
    path, found = tmp_path / "out" / "o.jsonl", tmp_path / "found.txt"
    other = {"not": "ours"}
    assert run(path, found, report(1), other) == [report(1), other]
    run(path, found, report(2, found=["http://b.test/1", "http://b.test/2"]))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["visit"] for row in rows] == [1, 2]
    assert found.read_text() == "http://b.test/1\nhttp://b.test/2\n"


def test_torn_refresh_line_is_cut(tmp_path):
    path = tmp_path / "o.jsonl"
    run(path, None, report(1))
    with path.open("a") as file:
        file.write('{"url": "http://a.t')
    run(path, None, report(2))
    assert [row["fetched_at"] for row in lines_of(path)] == ["t1", "t2"]


def test_foreign_lines_are_skipped(tmp_path):
    path = tmp_path / "o.jsonl"
    path.write_text('{"url": "x"}\n{"url": 1}\n[]\nnothing\n')
    assert list(lines_of(path)) == [{"url": "x"}]
    assert list(lines_of(tmp_path / "no")) == []


def test_files_lie_beside_collection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"TRES_REFRESH_COLLECTION": "some/c.jsonl", "TRES_REFRESH_FOUND": "f.txt"}
    pipeline = RefreshPipeline.from_crawler(get_crawler(settings_dict=settings))
    pipeline.close_spider()
    assert str(pipeline._path) == "some/c.refresh.jsonl"
    assert str(pipeline._found_path) == "f.txt"
