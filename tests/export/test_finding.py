import csv
import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export.csv_table import COLUMNS, DOMAIN_COLUMNS, CsvPipeline
from tres_scrapy.export.known import NewnessPipeline
from tres_scrapy.items import RelevantPage, item_class

ITEM = RelevantPage(
    url="http://www.a.test/old",
    final_url="http://www.a.test/soup",
    title="Soup, or: “leek”",
    text="Simmer.",
    language="en",
    probability=0.98765,
    depth=1,
    path=["http://seed.test/", "http://www.a.test/soup"],
    anchor="soup",
    q_value=0.5,
    leaf=3,
    fetched_at="2026-01-02T03:04:05+00:00",
    status=200,
    domain="a.test",
)
DOMAINS = "food-domains.csv"
SEED = replace(ITEM, url="http://seed.test/", final_url="http://seed.test/", depth=0,
               path=["http://seed.test/"], domain="seed.test", fetched_at="2026-01-01")  # fmt: skip


@pytest.fixture
def write(tmp_path):
    """Write items to the tables of a crawl as one of its processes does."""

    def write_(*items, close=True):
        pipeline = CsvPipeline(tmp_path / "food.jsonl", len)
        pipeline.open()
        for item in items:
            assert pipeline.process_item(item) is item
        if close:
            pipeline.close_spider()
        return pipeline

    return write_


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_second_crawl_adds_its_pages_to_those_of_the_first(write, tmp_path):
    """Without JOBDIR, a crawl knows only the pages that it has fetched itself."""
    write(SEED, ITEM)
    write(replace(ITEM, url="http://a.test/2"))
    pages = {row["domain"]: (row["pages"], row["relevant"]) for row in rows_of(tmp_path / DOMAINS)}
    assert pages == {"seed.test": ("18", "1"), "a.test": ("12", "2")}
    (tmp_path / DOMAINS).write_text("domain,pages\na.test,x\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is another table"):
        write(ITEM)


@pytest.mark.parametrize("job", [None, SimpleNamespace()])
def test_table_begun_late_has_the_pages_of_before(tmp_path, job):
    lines = [json.dumps(asdict(item)) for item in (SEED, ITEM, ITEM)]
    text = "\n".join([*lines, "not a line of ours", "{}", ""])
    (tmp_path / "food.jsonl").write_text(text, encoding="utf-8")
    pipeline = CsvPipeline(tmp_path / "food.jsonl", lambda name: 3, job=job)
    pipeline.open()
    for url in (ITEM.url, "http://a.test/2"):
        pipeline.process_item(replace(ITEM, url=url))
    pipeline.close_spider()
    rows = rows_of(tmp_path / "food.csv")
    assert [row["url"] for row in rows] == [SEED.url, ITEM.url, "http://a.test/2"]
    assert rows[1]["found_on"] == ITEM.path[-2]
    pages = {row["domain"]: (row["pages"], row["relevant"]) for row in rows_of(tmp_path / DOMAINS)}
    before = 0 if job else 1  # without JOBDIR a crawl knows only what it has fetched itself
    assert pages == {"seed.test": (f"{3 + before}", "1"), "a.test": (f"{3 + before}", "2")}


def test_resumed_crawl_knows_all_its_pages(tmp_path):
    for _ in range(2):
        pipeline = CsvPipeline(tmp_path / "food.jsonl", len, job=SimpleNamespace())
        pipeline.open()
        pipeline.process_item(ITEM)
        pipeline.close_spider()
    assert [row["pages"] for row in rows_of(tmp_path / DOMAINS)] == ["6"]


def test_page_is_a_row(write, tmp_path):
    write(SEED, ITEM)
    first, second = rows_of(tmp_path / "food.csv")
    assert first["found_on"] == ""
    assert second == {
        "url": "http://www.a.test/old",
        "final_url": "http://www.a.test/soup",
        "domain": "a.test",
        "new": "true",
        "new_domain": "true",
        "probability": "0.9877",
        "title": "Soup, or: “leek”",
        "language": "en",
        "depth": "1",
        "found_on": "http://seed.test/",
        "anchor": "soup",
        "fetched_at": "2026-01-02T03:04:05+00:00",
    }


def test_domain_is_a_row(write, tmp_path):
    later = replace(ITEM, url="http://a.test/2", fetched_at="2026-01-03", new_domain=True)
    write(SEED, ITEM, later)
    _, row = rows_of(tmp_path / "food-domains.csv")
    assert row == {
        "domain": "a.test",
        "new": "true",
        "pages": "6",
        "relevant": "2",
        "first_seen": ITEM.fetched_at,
        "last_seen": "2026-01-03",
        "first_url": ITEM.final_url,
    }


def test_columns_are_those_that_are_documented(write, tmp_path):
    write()
    assert (tmp_path / "food.csv").read_text() == ",".join(COLUMNS) + "\n"
    assert (tmp_path / "food-domains.csv").read_text() == ",".join(DOMAIN_COLUMNS) + "\n"


@pytest.mark.parametrize("title", ["=cmd()", "+1", "-1", "@a", " =1", "a\r\nb\tc", 'a"b'])
def test_title_cannot_be_a_formula(write, tmp_path, title):
    write(replace(ITEM, title=title), SEED)
    rows = rows_of(tmp_path / "food.csv")
    assert len(rows) == 2
    cell, plain = rows[0]["title"], " ".join(title.split())
    assert cell == (f"'{plain}" if plain[0] in "=+-@" else plain)


def test_several_topics_have_a_column_each(tmp_path):
    item = item_class(["scores"])(**asdict(ITEM), scores={"food": 0.9, "sports": 0.1})
    for number in range(2):  # the second resumes the table
        pipeline = CsvPipeline(tmp_path / "both.jsonl", len, topics=("food", "sports"))
        pipeline.open()
        pipeline.process_item(replace(item, url=f"http://a.test/{number}"))
        pipeline.close_spider()
    rows = rows_of(tmp_path / "both.csv")
    assert [(row["score_food"], row["score_sports"]) for row in rows] == [("0.9000", "0.1000")] * 2


def test_one_topic_has_no_score_column(tmp_path):
    pipeline = CsvPipeline(tmp_path / "food.jsonl", len, topics=("food",))
    pipeline.open()
    pipeline.close_spider()
    assert (tmp_path / "food.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_resumed_crawl_extends_its_tables(write, tmp_path):
    write(SEED, close=False)._file.close()  # and no more: it was killed
    write(SEED, ITEM)
    assert [row["url"] for row in rows_of(tmp_path / "food.csv")] == [SEED.url, ITEM.url]
    domains = rows_of(tmp_path / "food-domains.csv")
    assert [(row["domain"], row["relevant"]) for row in domains] == [
        ("seed.test", "1"),
        ("a.test", "1"),
    ]


def test_torn_row_is_rewritten(write, tmp_path):
    write(SEED, ITEM)
    path = tmp_path / "food.csv"
    whole = path.read_bytes()
    start = whole.rfind(b"\n", 0, -1) + 1
    assert not whole[start:].isascii()
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        write(ITEM)
        assert path.read_bytes() == whole


def test_foreign_table_is_left_alone(write, tmp_path):
    path = tmp_path / "food.csv"
    path.write_text("my,own\n1,2\n")
    with pytest.raises(ConfigError, match="it holds another table"):
        write(ITEM)
    assert path.read_text() == "my,own\n1,2\n"


def test_domain_table_is_written_regularly(write, tmp_path):
    pipeline = write(SEED, close=False)
    pipeline._due = 0.0
    pipeline.process_item(ITEM)
    assert len(rows_of(tmp_path / "food-domains.csv")) == 2
    assert pipeline._due > 0
    pipeline.close_spider()


def test_other_items_pass(write, tmp_path):
    other = SimpleNamespace(url="x")
    write(other)
    assert not rows_of(tmp_path / "food.csv")
    assert NewnessPipeline(None).process_item(other) is other


@pytest.mark.parametrize(
    ("line", "new", "new_domain"),
    [
        ("http://www.a.test/old", False, False),
        ("http://www.a.test/soup", False, False),
        ("http://a.test/", True, False),
        ("a.test", True, False),
        ("http://b.test/", True, True),
    ],
)
def test_page_is_new_unless_known(tmp_path, line, new, new_domain):
    files = [tmp_path / name for name in "ab"]
    files[0].write_text("http://else.test/\n")
    files[1].write_text(line)
    settings = Settings({"TRES_KNOWN": ", ".join(map(str, files))})
    pipeline = NewnessPipeline.from_crawler(SimpleNamespace(settings=settings))
    item = pipeline.process_item(replace(ITEM))
    assert (item.new, item.new_domain) == (new, new_domain)


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "there is no such file"), ("ftp://a/", "line 1")]
)
def test_unreadable_known_file_is_one_line(tmp_path, content, reason):
    path = tmp_path / "known"
    if content:
        path.write_text(content)
    settings = Settings({"TRES_KNOWN": str(path)})
    with pytest.raises(ConfigError, match=f"TRES_KNOWN .* cannot be read: .*{reason}"):
        NewnessPipeline.from_crawler(SimpleNamespace(settings=settings))


@pytest.fixture
def crawler(tmp_path):
    """The parts of a crawl of food that the pipelines need; it writes to food.jsonl."""
    ledger = SimpleNamespace(pages_of=len)
    crawl = SimpleNamespace(store=SimpleNamespace(ledger=ledger))
    learner = SimpleNamespace(
        output=tmp_path / "food.jsonl", crawl=crawl, job=None, stop=lambda reason: None
    )
    settings = Settings({"TRES_TOPIC": "food"})
    return SimpleNamespace(settings=settings, get_extension=lambda kind: learner)


def test_without_settings_no_tables(crawler):
    for pipeline in (NewnessPipeline, CsvPipeline):
        with pytest.raises(NotConfigured):
            pipeline.from_crawler(crawler)


def test_tables_beside_a_continued_output_go_on(crawler, write, tmp_path, caplog):
    write(SEED)
    with pytest.raises(NotConfigured):  # the output holds no page: these tables are another run's
        CsvPipeline.from_crawler(crawler)
    (tmp_path / "food.jsonl").write_text('{"url": "http://seed.test/"}\n')
    pipeline = CsvPipeline.from_crawler(crawler)
    pipeline.process_item(ITEM)
    pipeline.close_spider()
    assert [row["url"] for row in rows_of(tmp_path / "food.csv")] == [SEED.url, ITEM.url]
    crawler.settings.set("TRES_CSV", "0")
    with pytest.raises(NotConfigured):
        CsvPipeline.from_crawler(crawler)
    assert "food.csv is not continued" in caplog.text


def test_table_of_another_kind_is_left_alone(crawler, tmp_path):
    (tmp_path / "food.jsonl").write_text('{"url": "http://seed.test/"}\n')
    (tmp_path / "food.csv").write_text("shopping,list\n")
    with pytest.raises(NotConfigured):
        CsvPipeline.from_crawler(crawler)


def test_cells_have_no_escape_sequences(write, tmp_path):
    write(replace(ITEM, title="red \x1b[31msoup\x9b"))
    assert rows_of(tmp_path / "food.csv")[0]["title"] == "red [31msoup"
