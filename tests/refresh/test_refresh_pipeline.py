import json

from scrapy.utils.test import get_crawler

from tres_scrapy.refresh.pipeline import RefreshPipeline
from tres_scrapy.refresh.visit_item import VisitItem, written


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
    assert written(path) == {("http://a.test/1", "t1"), ("http://a.test/2", "t2")}


def test_lines_of_others_are_no_visits(tmp_path):
    path = tmp_path / "o.jsonl"
    path.write_text('{"url": "x"}\n[]\nnothing\n')
    assert written(path) == set()
    assert written(tmp_path / "no") == set()


def test_files_lie_beside_collection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"TRES_REFRESH_COLLECTION": "some/c.jsonl", "TRES_REFRESH_FOUND": "f.txt"}
    pipeline = RefreshPipeline.from_crawler(get_crawler(settings_dict=settings))
    pipeline.close_spider()
    assert str(pipeline._path) == "some/c.refresh.jsonl"
    assert str(pipeline._found_path) == "f.txt"
