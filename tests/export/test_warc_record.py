import base64
import hashlib
from datetime import UTC, datetime
from io import BytesIO

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from tres_scrapy.export.warc import (
    Exchange,
    exchange_records,
    info_record,
    note_record,
)

BODY = b"\x1f\x8b packed \xff page"


def exchange(**fields):
    plain = {
        "url": "http://a.test/soup?b=1&a=2",
        "method": "GET",
        "asked": [("User-Agent", "tres")],
        "sent": b"",
        "status": 200,
        "headers": [("Content-Type", "text/html"), ("Content-Encoding", "gzip")],
        "body": BODY,
        "ip": "192.0.2.1",
    }
    return Exchange(**(plain | fields))


def read(records):
    stream = BytesIO(b"".join(records))
    iterator = ArchiveIterator(stream, check_digests="raise")
    return [(record, record.raw_stream.read()) for record in iterator]


def test_response_is_kept_unchanged():
    cookies = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=\xfc\xa0  c")]
    one = exchange(status=404, headers=[("Content-Encoding", "gzip"), *cookies])
    block = exchange_records(one)[0].split(b"\r\n\r\n", 1)[1]
    assert block == (
        b"HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\nSet-Cookie: a=1\r\n"
        b"Set-Cookie: b=\xfc\xa0  c\r\n\r\n" + BODY + b"\r\n\r\n"
    )


def test_records_refer_to_one_another():
    date = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    one = exchange(date=date)
    (response, _), (request, _) = read(exchange_records(one))
    head, asked = response.rec_headers, request.rec_headers
    assert asked["WARC-Concurrent-To"] == head["WARC-Record-ID"] == one.id
    assert head["WARC-Date"] == asked["WARC-Date"] == "2026-01-02T03:04:05.000006Z"
    assert head["WARC-IP-Address"] == "192.0.2.1"
    digest = base64.b32encode(hashlib.sha1(BODY, usedforsecurity=False).digest()).decode()
    assert head["WARC-Payload-Digest"] == f"sha1:{digest}"
    assert head["WARC-Target-URI"] == asked["WARC-Target-URI"] == one.url


def test_request_is_written_as_sent():
    request, body = read(exchange_records(exchange(method="POST", sent=b"q=soup")))[1]
    assert request.http_headers.protocol + " " + request.http_headers.statusline == (
        "POST /soup?b=1&a=2 HTTP/1.1"
    )
    assert request.http_headers.headers == [("Host", "a.test"), ("User-Agent", "tres")]
    assert body == b"q=soup"


def test_credentials_are_not_archived():
    secrets = [("Authorization", "Basic x"), ("Proxy-Authorization", "y"), ("COOKIE", "z")]
    request, _ = read(exchange_records(exchange(asked=[*secrets, ("Accept", "*/*")])))[1]
    assert [name for name, _ in request.http_headers.headers] == ["Host", "Accept"]


def test_removed_chunks_are_not_announced():
    response, _ = read(exchange_records(exchange(headers=[("Transfer-Encoding", "chunked")])))[0]
    assert response.http_headers.headers == [("X-Archive-Orig-Transfer-Encoding", "chunked")]


@pytest.mark.parametrize("truncated", ["", "disconnect"])
def test_truncated_body_is_marked(truncated):
    response, _ = read(exchange_records(exchange(truncated=truncated)))[0]
    assert response.rec_headers["WARC-Truncated"] == (truncated or None)


@pytest.mark.parametrize("status", [200, 299, 999])
def test_any_status_has_a_status_line(status):
    response, _ = read(exchange_records(exchange(status=status)))[0]
    assert response.http_headers.get_statuscode() == str(status)


def test_no_header_begins_another_record():
    evil = [("X", "a\r\nY: b\r\n\r\nWARC/1.1")]
    records = read(exchange_records(exchange(headers=evil, asked=evil)))
    assert [len(record.http_headers.headers) for record, _ in records] == [1, 2]


def test_note_describes_a_response():
    note = note_record("http://a.test/", {"relevant": "true", "via": "a\nb"}, "<urn:uuid:1>")
    record, block = read(note)[0]
    assert record.content_type == "application/warc-fields"
    assert record.rec_headers["WARC-Refers-To"] == "<urn:uuid:1>"
    assert block == b"relevant: true\r\nvia: a b\r\n"


def test_note_may_be_about_no_response():
    record, _ = read(note_record("http://a.test/", {"failure": "DownloadTimeoutError"}))[0]
    assert record.rec_headers["WARC-Refers-To"] is None


def test_first_record_describes_the_file():
    record, block = read(info_record("a.warc.gz", {"software": "tres", "seeds": ""}))[0]
    assert record.rec_type == "warcinfo"
    assert record.rec_headers["WARC-Filename"] == "a.warc.gz"
    assert block == b"software: tres\r\n"


def test_records_satisfy_another_checker(tmp_path, capsys):
    path = tmp_path / "a.warc"
    note = note_record("http://a.test/", {"relevant": "true"})
    path.write_bytes(b"".join(exchange_records(exchange()) + note))
    assert (
        Checker(type("Options", (), {"inputs": [str(path)], "verbose": False})).process_all() == 0
    )
    assert "fail" not in capsys.readouterr().out
