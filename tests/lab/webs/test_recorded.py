import gzip
import json
import tracemalloc
from io import BytesIO

import pytest
from archived import HTML, SOUP, answered, record
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tres_scrapy.export.warc import exchange_records, info_record, note_record
from tres_scrapy.lab.webs import recorded as module
from tres_scrapy.lab.webs.recorded import RecordedWeb
from tres_scrapy.lab.webs.web import Count


def verdict(url, **fields):
    return note_record(url, {name: str(value).lower() for name, value in fields.items()})


def relevant(url):
    return verdict(url, relevant=True)


def of(*records, path):
    path.write_bytes(b"".join(gzip.compress(each) for part in records for each in part))
    return RecordedWeb(path)


def test_domains_are_registrable(path):
    hosts = ("www.leek.co.uk", "www.soup.co.uk", "kitchen.soup.co.uk", "10.0.0.1", "10.2.0.1")
    urls = [f"http://{host}/" for host in hosts]
    records = [part for url in urls for part in (exchange_records(answered(url)), relevant(url))]
    web, count = of(*records, path=path), Count()
    for url in urls:
        count.add(url, web.answer(url))
    assert sorted(count.domains) == ["10.0.0.1", "10.2.0.1", "leek.co.uk", "soup.co.uk"]


def test_web_without_a_label_says_so(path):
    page = exchange_records(answered("http://a.test/"))
    assert not of(page, path=path).labelled
    assert of(page, relevant("http://a.test/"), path=path).labelled


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.warc.gz"


@pytest.fixture
def web(path):
    """A crawl of a soup, of the pages that link to it, and of every kind of failure."""
    return of(
        info_record("a.warc.gz", {"seeds": "http://a.test/old"}),
        exchange_records(answered("http://a.test/robots.txt", b"User-agent: *", headers=[])),
        exchange_records(answered("http://a.test/old", b"", 302, [("Location", "/soup")])),
        exchange_records(answered("http://a.test/soup")),
        verdict("http://a.test/soup", relevant=True),
        exchange_records(answered("https://b.test/tax")),
        verdict("https://b.test/tax", relevant=False),
        exchange_records(answered("http://a.test/gone", b"gone", 404)),
        exchange_records(answered("http://a.test/none")),
        verdict("http://a.test/none", failure="soft_404"),
        exchange_records(
            answered("http://a.test/x.pdf", b"%PDF", headers=[("Content-Type", "x/y")])
        ),
        verdict("http://dead.test/", failure="DownloadTimeoutError"),
        verdict("http://a.test/private", failure="robots"),
        path=path,
    )


@pytest.mark.parametrize(
    ("url", "status", "kind", "relevant"),
    [
        ("http://a.test/robots.txt", 200, "robots", False),
        ("http://a.test/old", 302, "redirect", False),
        ("http://a.test/soup", 200, "page", True),
        ("http://A.test:80/soup#top", 200, "page", True),
        ("https://b.test/tax", 200, "page", False),
        ("http://b.test/tax", 404, "unrecorded", False),
        ("http://a.test/gone", 404, "missing", False),
        ("http://a.test/none", 200, "soft404", False),
        ("http://a.test/x.pdf", 200, "other", False),
        ("http://dead.test/", 502, "error", False),
        ("http://a.test/private", 404, "unrecorded", False),
        ("http://elsewhere.test/", 404, "unrecorded", False),
    ],
)
def test_each_url_brings_what_it_brought(web, url, status, kind, relevant):
    answer = web.answer(url)
    assert (answer.status, answer.kind, answer.relevant) == (status, kind, relevant)


def test_answer_is_that_which_was_recorded(web):
    assert web.answer("http://a.test/soup").body == SOUP
    assert web.answer("http://a.test/soup").headers == tuple(HTML)
    assert web.answer("http://a.test/old").headers == (("Location", "/soup"),)


def test_labels_follow_redirects(web):
    urls = ["http://a.test/old", "http://a.test/soup", "https://b.test/tax", "http://c.test/"]
    assert web.labels(urls) == [True, True, False, False]


def test_circle_of_redirects_is_not_relevant(path):
    moved = [answered("http://a.test/", b"", 301, [("Location", "http://a.test/")])]
    assert of(*map(exchange_records, moved), path=path).labels(["http://a.test/"]) == [False]


def test_crawl_begins_at_recorded_seed(web, path):
    assert web.seeds == ("http://a.test/old",)
    robots = exchange_records(answered("http://a.test/robots.txt"))
    assert of(robots, exchange_records(answered("http://b.test/")), path=path).seeds == (
        "http://b.test/",
    )


def test_last_answer_of_a_url_counts(path):
    first = answered("http://a.test/", b"", 302, [("Location", "http://b.test/")])
    last = answered("http://a.test/")
    web = of(*map(exchange_records, (first, last)), path=path)
    assert web.answer("http://a.test/").body == SOUP
    assert web.labels(["http://a.test/"]) == [False]
    assert web.targets == {}


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("Content-Encoding: gzip", gzip.compress(SOUP, mtime=0)),
        ("Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(SOUP), SOUP)),
    ],
)
def test_body_is_served_without_its_coding(path, coding, body):
    head = f"HTTP/1.1 200 OK\r\n{coding}\r\nContent-Type: text/html\r\n\r\n".encode()
    path.write_bytes(gzip.compress(record("http://a.test/", body, head=head)))
    answer = RecordedWeb(path).answer("http://a.test/")
    assert answer.body == SOUP
    assert answer.headers == (("Content-Type", "text/html"),)


@pytest.mark.parametrize("packed", [True, False])
def test_files_of_other_programs_are_served(tmp_path, packed):
    """Files of warcio, with a revisit, and of wget, with URLs in angle brackets."""
    stream = BytesIO()
    writer = WARCWriter(stream, gzip=packed)
    head = StatusAndHeaders("200 OK", [*HTML, ("Content-Length", str(len(SOUP)))], "HTTP/1.1")
    page = writer.create_warc_record(
        "http://a.test", "response", BytesIO(SOUP), len(SOUP), http_headers=head
    )
    writer.write_record(page)
    again = writer.create_revisit_record("http://a.test", "sha1:x", "http://a.test", "2026", head)
    writer.write_record(again)
    (tmp_path / "1.warc").write_bytes(stream.getvalue())
    (tmp_path / "2.warc").write_bytes(record("<http://wget.test/é>", SOUP))
    (tmp_path / "notes.txt").write_text("no archive")
    web = RecordedWeb(tmp_path)
    assert web.answer("http://a.test/").body == SOUP
    assert web.answer("http://wget.test/%C3%A9").body == SOUP
    assert web.notes[0] == "2 recorded URLs, 2 pages of 2 hosts; skipped: revisit record (1)"
    assert "No page has a label" in web.notes[1]


@pytest.mark.parametrize(
    "line",
    ["http://a.test/soup", '{"url": "http://a.test/old", "final_url": "http://a.test/soup"}',
     '{"url": "http://a.test/soup", "relevant": true}'],
)  # fmt: skip
def test_labels_may_come_from_a_file(path, tmp_path, line):
    of(exchange_records(answered("http://a.test/soup")), path=path)
    labels = tmp_path / "labels"
    labels.write_text(f"{line}\n\nhttp://unknown.test/\n")
    web = RecordedWeb(path, labels)
    assert web.answer("http://a.test/soup").relevant
    assert len(web.notes) == 1


def test_label_file_overrides_crawl(web, path, tmp_path):
    labels = tmp_path / "labels.jsonl"
    labels.write_text(json.dumps({"url": "http://a.test/soup", "relevant": False}))
    assert not RecordedWeb(path, labels).answer("http://a.test/soup").relevant


def test_bad_label_line_is_named(web, path, tmp_path):
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"address": 1}\n')
    with pytest.raises(ValueError, match=r"labels\.jsonl line 1: no label in"):
        RecordedWeb(path, labels)


def test_empty_recording_is_one_line(tmp_path):
    (tmp_path / "a.warc.gz").write_bytes(b"thesis")
    (tmp_path / "none").mkdir()
    for data, reason in (
        (tmp_path / "a.warc.gz", "has no response.*Invalid WARC header"),
        (tmp_path / "none", "no WARC file at"),
        (tmp_path / "nowhere", "no WARC file at"),
    ):
        with pytest.raises(ValueError, match=reason):
            RecordedWeb(data)


def test_gzipped_recording_names_remedy(path):
    path.write_bytes(gzip.compress(record("http://a.test/") + record("http://b.test/")))
    assert "unpack the whole file" in RecordedWeb(path).notes[0]


def test_large_record_and_bomb_are_skipped(path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 1_000_000)
    packed = [*HTML, ("Content-Encoding", "gzip")]
    web = of(
        exchange_records(answered("http://large.test/", bytes(1_100_000))),
        exchange_records(
            answered("http://bomb.test/", gzip.compress(bytes(50_000_000)), 200, packed)
        ),
        path=path,
    )
    assert web.answer("http://large.test/").kind == "unrecorded"
    assert "skipped: over 1000000 bytes (1)" in web.notes[0]
    tracemalloc.start()
    answer = web.answer("http://bomb.test/")
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert (answer.status, answer.body) == (502, b"over 1000000 bytes, decompressed\n")


@pytest.mark.parametrize(
    "head", [b"", b"hello\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: y"]
)
def test_foreign_protocol_is_skipped(path, head):
    path.write_bytes(gzip.compress(record("http://a.test/", b"", head=head)) + gzip.compress(
        record("http://b.test/")
    ))  # fmt: skip
    web = RecordedWeb(path)
    assert list(web.slots) == ["http://b.test/"]
    assert web.skipped == {"no HTTP response": 1}


def test_changed_file_is_an_error(web, path):
    path.write_bytes(b"something else")
    assert web.answer("http://a.test/soup").status == 502
    path.unlink()
    assert web.answer("http://a.test/soup").status == 502
