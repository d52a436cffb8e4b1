"""The record that a crawl leaves, run as a user runs it."""

import sqlite3
import subprocess
import time
from functools import partial
from types import SimpleNamespace

import pytest
from conftest import running
from recorded_run import crawl_of
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler
from soup import FOOD

from tres_scrapy.config.config import Config
from tres_scrapy.config.output import WatchOptions
from tres_scrapy.crawl.share import Holder
from tres_scrapy.extensions.recorder import Recorder, settings_of
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.run.writer import Writer

NAMES = ("leek", "pea", "bean", "beet", "kale", "corn", "chard", "cress")


@pytest.fixture
def soups(pages):
    """A web of relevant pages, each with a link to the next."""
    for i, name in enumerate(NAMES):
        link = f'<a href="http://h{i + 1}.test/">more soup {i}</a>'
        pages.add(f"http://h{i}.test/", FOOD.format(name) + link)
    return pages


def command(tmp_path, *arguments):
    return (
        *("crawl", "tres", "-a", "topic=food", "-a", f"output={tmp_path / 'pages.jsonl'}"),
        *("-a", "seed=http://h0.test/", "-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0"),
        *arguments,
    )


def record_of(folder):
    (path,) = folder.glob("*.run")
    return path


@pytest.mark.long
def test_record_lies_beside_output(scrapy, tmp_path, soups):
    process = scrapy(*command(tmp_path, "-a", "max_per_domain=5"), pages=soups)
    assert process.returncode == 0, process.stderr
    path = record_of(tmp_path)
    assert path.name == "pages.run"
    assert "8 of 8 pages" in (tmp_path / "pages.html").read_text(encoding="utf-8")
    with Record(path) as read:
        meta, found = read.meta(), read.last(100)[::-1]
        assert (meta["topic"], meta["policy"]) == ("food", "tres")
        assert meta["output"] == str((tmp_path / "pages.jsonl").resolve())
        assert meta["reason"] == "frontier_exhausted"
        assert read.settings()["TRES_MAX_PER_DOMAIN"] == "5"
        assert [page.url for page in found] == [f"http://h{i}.test/" for i in range(9)]
        assert [page.outcome for page in found] == ["relevant"] * 8 + ["http_404"]
        assert [page.title for page in found[:2]] == ["leek soup recipe", "pea soup recipe"]
        assert found[1].anchor == "more soup 0"
        assert found[0].probability > 0.5
        assert [hop.url for hop in read.trail(found[3])] == [page.url for page in found[:4]]


@pytest.mark.long
def test_killed_record_is_readable_and_resumed(scrapy, tmp_path):
    command = (
        *("crawl", "tres", "-a", "topic=food", "-a", f"output={tmp_path / 'pages.jsonl'}"),
        *("-a", "web=synthetic", "-s", f"JOBDIR={tmp_path / 'job'}", "-a"),
    )
    path = tmp_path / "job" / "tres.run"
    with running(*command, "pages=10000", stderr=subprocess.DEVNULL) as killed:
        while len(seen(path)) < 20:
            assert killed.poll() is None
            time.sleep(0.2)
    before = seen(path)
    again = scrapy(*command, f"pages={len(before) + 20}")
    assert again.returncode == 0, again.stderr
    after = seen(path)
    assert after[: len(before)] == before
    assert len(before) < len(after) == len(set(after))
    with Record(path) as read:
        assert read.curve()[-1].pages == sum(page.kind == "page" for page in read.last(1000)[::-1])
    assert path.with_suffix(".html").exists()


def seen(path):
    try:
        with Record(path) as read:
            return [page.url for page in read.last(1000)[::-1]]
    except RecordError:  # the record is being created
        return []


def crawler_of(**settings):
    return SimpleNamespace(settings=Settings({"TRES_TOPIC": "food", **settings}))


def test_no_record_without_the_setting():
    with pytest.raises(NotConfigured):
        Recorder.from_crawler(crawler_of(TRES_RECORD="0"))


def test_unwritable_record_does_not_stop_crawl(caplog, tmp_path):
    recorder = Recorder(crawler_of(), Config(topic="food"))
    writer = Writer.open(tmp_path / "a.run", crawl_of(), {}, {}, 1.0)
    writer.journal.database.execute("PRAGMA query_only = ON")
    writer.flush = partial(writer.flush, last=True)
    recorder._writer = writer
    recorder.flush()
    recorder.booked(None)
    recorder.flush()
    recorder.engine_stopped()
    assert caplog.text.count("attempt to write a readonly database") == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        writer.journal.steps  # noqa: B018


def test_record_that_fails_at_the_end_is_one_line(caplog, tmp_path):
    crawler = crawler_of()
    crawler.stats = MemoryStatsCollector(get_crawler())
    recorder = Recorder(crawler, Config(topic="food"))
    recorder._writer = writer = Writer.open(tmp_path / "a.run", crawl_of(), {}, {}, 1.0)
    writer.journal.database.execute("PRAGMA query_only = ON")
    recorder.engine_stopped()
    assert caplog.text.count("attempt to write a readonly database") == 1


def test_end_warns_of_the_site_that_gave_most(caplog, monkeypatch):
    """A short crawl ends before the first snapshot that is due, at its last one."""
    crawler = crawler_of()
    crawler.stats = MemoryStatsCollector(get_crawler())
    recorder = Recorder(crawler, Config(topic="food", watch=WatchOptions(report=False)))
    holder = Holder("a.test", sites=1, pages=80, of=100, linkers=2)
    nothing, journal = (lambda *_, **__: None), SimpleNamespace(steps=100)
    recorder._writer = SimpleNamespace(
        holder=holder, journal=journal, close=nothing, note_health=nothing
    )
    session = SimpleNamespace(crawl=SimpleNamespace(pages=100), follows_all=False)
    monkeypatch.setattr(CrawlSession, "of", lambda _: session)
    recorder.engine_stopped()
    (said,) = caplog.messages
    assert said.startswith("a.test gave 80% of the last 100 pages; 2 other sites link to a.test")


def test_used_settings_are_recorded():
    settings = Settings({"TRES_SEED": "http://a.test/,http://b.test/", "TRES_DASHBOARD": "1"})
    told = settings_of(Config.of(settings), settings)
    assert told["TRES_SEED"] == "http://a.test/, http://b.test/"
    assert told["TRES_DASHBOARD"] == "1"
    assert told["DOWNLOAD_DELAY"] == "0"
    assert "TRES_PAGES" not in told
