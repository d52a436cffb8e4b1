import asyncio
import errno
import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import docs_script
from judged import judged
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector
from warcio.archiveiterator import ArchiveIterator

from tres_scrapy.agent.policy import NO_FEATURES, Decision, Experience
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.crawl import NO_ROWS, PAGE, Booking
from tres_scrapy.export.archive import Archive, exchange_of
from tres_scrapy.extensions.session import CrawlSession

ANSWER = HtmlResponse(
    "http://a.test/",
    headers={"Content-Encoding": "gzip", "Set-Cookie": ["a=1", "b=2"]},
    body=gzip.compress(b"soup"),
    flags=["dataloss"],
    ip_address="192.0.2.1",
    protocol="HTTP/1.0",
)


class Crawler:
    """The parts of a crawler that an archive uses."""

    def __init__(self, **settings):
        self.settings = Settings({"TRES_TOPIC": "food", "USER_AGENT": "tres", **settings})
        self.stats = MemoryStatsCollector(SimpleNamespace(settings=self.settings))
        crawl = SimpleNamespace(is_leased=lambda row: True)
        output = Path(self.settings.get("TRES_OUTPUT", "output/food.jsonl"))
        self.learner = SimpleNamespace(crawl=crawl, listeners=[], output=output, job=None)
        self.closed = []
        self.engine = SimpleNamespace(close_spider_async=self.close)

    def get_extension(self, cls):
        return self.learner if cls is CrawlSession else None

    async def close(self, reason):
        self.closed.append(reason)


@pytest.fixture
def opened(tmp_path):
    """Open an archive of relevant pages or of all responses."""

    def open_(kind, name="a.warc.gz"):
        output = tmp_path / name.replace(".warc.gz", ".jsonl")
        crawler = Crawler(TRES_WARC=kind, TRES_OUTPUT=str(output))
        archive = Archive(crawler)
        archive.open()
        return archive, crawler

    return open_


def booking(row, kind=PAGE, page=None):
    decision = Decision(row, None, None, url=f"http://a.test/{row}")
    experience = Experience(row, NO_FEATURES, 0.0)
    relevant = page is not None and page.relevant
    return Booking(experience, relevant, kind, NO_ROWS, decision, page)


def fill(archive, crawler):
    """Archive a relevant page, an irrelevant one, a missing one, and robots.txt."""
    for row in (0, 1, 2, None):
        response = ANSWER.replace(url=f"http://a.test/{row}")
        asyncio.run(archive.add(row, exchange_of(Request(response.url), response)))
    archive.booked(booking(0, page=judged(True)._replace(probability=0.75)))
    archive.booked(booking(1, page=judged(False)._replace(probability=0.75)))
    archive.booked(booking(2, "http_404"))
    archive.booked(booking(3, "robots"))
    archive.engine_stopped()


def rows_of(path):
    with path.open("rb") as file:
        return [
            (record.rec_type, (record.rec_headers["WARC-Target-URI"] or "").rpartition("/")[2])
            for record in ArchiveIterator(file)
        ]


def test_full_archive_is_written_at_once(opened, tmp_path):
    archive, crawler = opened("all")
    fill(archive, crawler)
    answers = [(kind, row) for row in ("0", "1", "2", "None") for kind in ("response", "request")]
    notes = [("metadata", row) for row in ("0", "1", "2", "3")]
    assert rows_of(tmp_path / "a.warc.gz") == [("warcinfo", ""), *answers, *notes]
    assert crawler.stats.get_value("tres/warc/responses") == 4
    assert crawler.stats.get_value("tres/warc/bytes") == (tmp_path / "a.warc.gz").stat().st_size


def test_note_fields_are_documented(opened, tmp_path):
    archive, crawler = opened("all")
    fill(archive, crawler)
    with (tmp_path / "a.warc.gz").open("rb") as file:
        notes = [
            r.content_stream().read() for r in ArchiveIterator(file) if r.rec_type == "metadata"
        ]
    names = {line.partition(b":")[0].decode() for note in notes for line in note.splitlines()}
    pytest.importorskip("tres_scrapy.lab", reason="docs/formats.py describes its webs")
    assert {"relevant", "probability", "failure"} <= names <= set(docs_script("formats").VERDICT)


def test_relevant_archive_waits_for_verdict(opened, tmp_path):
    archive, crawler = opened("relevant")
    fill(archive, crawler)
    kinds = ["response", "request", "metadata"]
    assert rows_of(tmp_path / "a.warc.gz") == [("warcinfo", ""), *((kind, "0") for kind in kinds)]


def test_exchange_is_what_was_received():
    request = Request("http://a.test/", headers={"Accept": "*/*"}, body=b"q")
    one = exchange_of(request, ANSWER)
    assert (one.body, one.protocol, one.truncated) == (ANSWER.body, "HTTP/1.0", "disconnect")
    assert one.headers == [
        ("Content-Encoding", "gzip"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
    ]
    assert (one.asked, one.sent, one.ip) == ([("Accept", "*/*")], b"q", "192.0.2.1")


def test_proxy_address_is_not_recorded():
    assert exchange_of(Request("http://a.test/", meta={"proxy": "http://p"}), ANSWER).ip is None


def test_failed_archive_stops_the_crawl(opened, monkeypatch, caplog):
    archive, crawler = opened("all")
    archive.writer.error = OSError(errno.ENOSPC, "No space left on device")

    async def crawl():
        fill_ = [archive.add(row, exchange_of(Request(ANSWER.url), ANSWER)) for row in range(3)]
        await asyncio.gather(*fill_)

    monkeypatch.setattr("tres_scrapy.export.archive.deferred_from_coro", asyncio.ensure_future)
    asyncio.run(crawl())
    archive.engine_stopped()
    assert crawler.closed == ["archive_failed"]
    assert caplog.text.count("cannot be written (no space left on device)") == 1


def test_crawl_waits_for_slow_writer(opened, monkeypatch):
    archive, _ = opened("all")
    looks = iter([True, True, False])
    monkeypatch.setattr(type(archive.writer), "full", property(lambda _: next(looks)))
    asyncio.run(archive.add(1, exchange_of(Request(ANSWER.url), ANSWER)))
    archive.writer.close()
    assert next(looks, "asked three times") == "asked three times"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("thesis.warc.gz", "it is not a WARC"), ("x/y.warc.gz", "a file is where a folder")],
)
def test_unwritable_archive_is_one_line(opened, tmp_path, name, reason):
    (tmp_path / "thesis.warc.gz").write_bytes(b"thesis")
    (tmp_path / "x").touch()
    with pytest.raises(ConfigError, match=f"TRES_WARC .* '.*{name}' cannot be written: .*{reason}"):
        opened("all", name)
    assert (tmp_path / "thesis.warc.gz").read_bytes() == b"thesis"


def test_archive_lies_beside_items(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for settings, path in (
        ({}, "output/food.warc.gz"),
        ({"TRES_OUTPUT": "soups.jsonl"}, "soups.warc.gz"),
        ({"TRES_OUTPUT": "soups"}, "soups.warc.gz"),
    ):
        archive = Archive(Crawler(TRES_WARC="all", **settings))
        archive.open()
        archive.writer.close()
        assert (tmp_path / path).stat().st_size


def test_answer_of_a_row_set_back_is_forgotten(opened):
    """A host that is given up answers no more: its answers would stay in memory."""
    archive, crawler = opened("relevant")
    leased = {0, 1}
    crawler.learner.crawl.is_leased = leased.__contains__
    for row in (0, 1, 2):
        if row == 1:
            leased.discard(0)  # its answer was 503
        leased.add(row)
        asyncio.run(archive.add(row, exchange_of(Request(ANSWER.url), ANSWER)))
    assert sorted(archive._exchanges) == [1, 2]
    archive.engine_stopped()
