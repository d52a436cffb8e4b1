"""The folder of a trained topic that answers correct."""

from judged import told
from recorded_run import META, crawl_of, steps

from tres_scrapy.export.corrected_topic import topic_to_answer
from tres_scrapy.report.record import Record
from tres_scrapy.run.writer import Writer


def run_to(folder, name, host):
    """Write the record of a crawl to `food.jsonl` that has fetched pages of a host."""
    path, crawl = folder / name, crawl_of(pages=20)
    meta = META | {"topic": "food", "output": str(folder / "food.jsonl")}
    writer = Writer.open(path, crawl, meta, {"TRES_TEXTS": "True"}, 100.0)
    for number, booking in enumerate(steps(crawl)):
        writer.note(told(booking, f"title {number}", "the soup " * 40), 1.8e9 + number)
    database = writer.journal.database
    for column in ("url", "final_url"):
        database.execute(f"UPDATE page SET {column} = 'http://{host}/' || row")  # noqa: S608
    writer.close(1.9e9, "page_limit")
    return path


def urls_in(folder):
    return {page.url for *_, page in folder.read_pages()}


def test_pages_of_an_earlier_crawl_to_the_output_stay(tmp_path):
    with Record(run_to(tmp_path, "food.run", "a.test")) as record:
        first = urls_in(topic_to_answer(record))
    with Record(run_to(tmp_path, "food-2.run", "b.test")) as record:
        for _ in range(2):  # a second time, nothing is there twice
            folder = topic_to_answer(record)
            pages = [page.url for *_, page in folder.read_pages()]
            assert len(pages) == len(set(pages))
    assert folder.path == tmp_path / "food.topic"
    assert len(first) > 2
    assert first < urls_in(folder)
    assert {url.split("/")[2] for url in urls_in(folder)} == {"a.test", "b.test"}
