import io
import re
from datetime import UTC, datetime

import pytest
from pyarrow import parquet
from scrapy.settings import Settings

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export import parquet as ours
from tres_scrapy.export.parquet import ParquetItemExporter, check_parquet
from tres_scrapy.items import RelevantPage, item_class


def exported(*items, **options):
    file = io.BytesIO()
    exporter = ParquetItemExporter(file, **options)
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    return parquet.read_table(io.BytesIO(file.getvalue()))


def page(number, kind=RelevantPage, **fields):
    url = f"http://a.test/{number}"
    values = {"title": "Suppe", "text": "Löffel", "language": "de", "probability": 0.9, "depth": 1}
    values |= {"path": [url], "anchor": "", "q_value": None, "leaf": None, "fetched_at": "now"}
    return kind(url=url, final_url=url, status=200, **values | fields)


def test_pages_come_back_as_they_were():
    pages = [page(0), page(1, leaf=7, q_value=0.5, path=["a", "b"])]
    table = exported(*pages)
    assert [RelevantPage(**row) for row in table.to_pylist()] == pages


def test_declared_types_need_no_value(monkeypatch):
    monkeypatch.setattr(ours, "ROWS", 2)
    table = exported(*(page(number) for number in range(4)), page(4, leaf=7, q_value=0.5))
    assert [str(table.schema.field(name).type) for name in ("leaf", "q_value", "path", "new")] == [
        *("int64", "double", "list<element: string>", "bool")
    ]
    assert table.column("leaf").to_pylist() == [None] * 4 + [7]


def test_chosen_fields_are_columns():
    kind = item_class(("headings", "html"))
    table = exported(page(0, kind, headings=["Soup"], html="<p>"))
    assert table.schema.names[-2:] == ["html", "headings"]
    assert table.column("headings").to_pylist() == [["Soup"]]


def test_items_of_any_spider_are_rows():
    then = datetime(2026, 5, 31, tzinfo=UTC)
    table = exported({"name": "pea", "at": then, "none": None}, {"name": "leek", "price": 1.5})
    assert table.to_pylist() == [
        {"name": "pea", "at": then, "none": None, "price": None},
        {"name": "leek", "at": None, "none": None, "price": 1.5},
    ]


def test_chosen_columns_only():
    assert exported(page(0), fields_to_export=["url", "title"]).schema.names == ["url", "title"]


def test_odd_value_loses_no_other(monkeypatch, caplog):
    monkeypatch.setattr(ours, "ROWS", 2)
    odd = [{"price": "n/a", "name": "leek"}, {"price": 2**80, "name": "\ud800"}]
    rows = [{"price": 3, "name": "pea"}, {"price": 4, "name": "bean"}, *odd]
    table = exported(*rows, {"price": 5, "name": 7})
    assert table.column("price").to_pylist() == [3, 4, None, None, 5]
    assert table.column("name").to_pylist() == ["pea", "bean", "leek", None, "7"]
    assert [record.args[0] for record in caplog.records] == ["price", "name"]


def test_mixed_first_values_are_text():
    table = exported({"price": 3, "more": {}}, {"price": "n/a", "more": None}, {"price": [1]})
    assert table.column("price").to_pylist() == ["3", "n/a", "[1]"]
    assert table.column("more").to_pylist() == ["{}", None, None]


def test_large_pages_do_not_wait(monkeypatch):
    monkeypatch.setattr(ours, "CHARACTERS", 100)
    exporter = ParquetItemExporter(io.BytesIO())
    exporter.export_item(page(0, text="x" * 200))
    assert not exporter._rows


def feeds(path, **options):
    return Settings({"FEEDS": {str(path): {"format": "parquet", **options}}})


def test_existing_file_is_not_added_to(tmp_path):
    path = tmp_path / "a.parquet"
    check_parquet(feeds(path))
    path.write_bytes(b"PAR1")
    check_parquet(feeds(path, overwrite=True))
    with pytest.raises(ConfigError, match=re.escape(f"FEEDS '{path}': nothing can be added")):
        check_parquet(feeds(path))


def test_missing_library_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"needs pyarrow: .*pip install .*\[parquet\]'$"):
        check_parquet(feeds(tmp_path / "a.parquet"))
    check_parquet(Settings({"FEEDS": {"a.jsonl": {"format": "jsonlines"}}}))
