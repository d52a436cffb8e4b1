from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import brotli
import pytest
from fastwarc.warc import WarcRecord, WarcRecordType
from fpdf import FPDF

from tres_scrapy.page.document_file import Unreadable, read_pages
from tres_scrapy.page.text import Page


def write_warc(path: Path, *answers: tuple[str, str, bytes]) -> Path:
    with path.open("wb") as file:
        for number, (status, headers, body) in enumerate(answers):
            http = f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + body
            record = WarcRecord()
            record.init_headers(WarcRecordType.response, content_length=len(http))
            record.headers["WARC-Target-URI"] = f"https://a.org/{number}"
            record.headers["Content-Type"] = "application/http; msgtype=response"
            record.set_bytes_content(http)
            record.write(file)
    return path


def texts(source: Path | bytes) -> list[str]:
    return [each.text if isinstance(each, Page) else "fault" for each in read_pages(source)]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_cut_file_gives_its_start(tmp_path: Path, suffix: str, pack: Any) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    lines = b"".join(b'{"text": "milk %d"}\n' % n for n in range(20_000))
    path.write_bytes(pack(lines)[:-100])
    *found, last = read_pages(path)
    assert len(found) > 1
    assert isinstance(last, Unreadable)
    path.write_bytes(pack(lines))
    assert len(texts(path)) == 20_000


@pytest.mark.parametrize("packed", [True, False])
def test_warc_pages_are_read(tmp_path: Path, packed: bool) -> None:
    page = "Content-Type: text/html; charset=iso-8859-1"
    path = write_warc(
        tmp_path / "a.warc",
        ("200 OK", page, b"caf\xe9"),
        ("404 Not Found", page, b"no such page"),
        ("200 OK", "Content-Type: application/pdf", b"%PDF"),
        ("200 OK", f"{page}\r\nContent-Encoding: br", brotli.compress(b"<p>milk")),
        ("200 OK", f"{page}\r\nContent-Encoding: gzip", b"no gzip"),
        ("200 OK", f"{page}\r\nTransfer-Encoding: chunked", b"4\r\nwine\r\n0\r\n\r\n"),
    )
    if packed:
        data, path = path.read_bytes(), tmp_path / "a.warc.gz"
        path.write_bytes(gzip.compress(data))
    found = list(read_pages(path))
    assert [(d.text, d.url) if isinstance(d, Page) else d.place for d in found] == [
        ("caf\u00e9", "https://a.org/0"),
        ("milk", "https://a.org/3"),
        f"{path.name}, https://a.org/4",
        ("wine", "https://a.org/5"),
    ]


@pytest.mark.parametrize(
    "charset", ["hex", "rot13", "zip", "base64", "undefined", "punycode", "idna", "no-such"]
)
def test_bad_charset_is_skipped(tmp_path: Path, charset: str) -> None:
    assert texts(f"<meta charset={charset}><p>café".encode()) == ["café"]
    page = ("200 OK", f"Content-Type: text/html; charset={charset}", b"<p>caf\xe9")
    assert texts(write_warc(tmp_path / "a.warc", page)) == ["café"]


def test_broken_warc_is_a_fault(tmp_path: Path) -> None:
    page = ("200 OK", "Content-Type: text/html", b"milk " * 100)
    path = write_warc(tmp_path / "a.warc", page, page)
    path.write_bytes(path.read_bytes()[:-100])
    assert texts(path)[1:] == ["fault"]
    path.write_bytes(b"no archive\n" * 20)
    assert texts(path) == ["fault"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"text": "milk"}\n{"html": "<p>wine"}\n{', ["milk", "wine", "fault"]),
        (b"\xef\xbb\xbf <!DOCTYPE html><title>t</title><p>milk", ["milk"]),
        (b"Milk < wine", ["Milk < wine"]),
        (b"caf\xe9", ["caf\u00e9"]),
        (b"\0", ["fault"]),
        (b"", [""]),
    ],
)
def test_nameless_bytes_are_recognised(data: bytes, found: list[str]) -> None:
    assert texts(data) == found


def test_documents_are_given_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("milk")
    (tmp_path / "b.html").write_text("wine")
    documents = read_pages(tmp_path)
    next(documents)
    (tmp_path / "b.html").write_text("tea")
    assert [each.text for each in documents if isinstance(each, Page)] == ["tea"]


@pytest.mark.slow
def test_pdfs_are_read_like_pages(tmp_path: Path) -> None:
    made = FPDF()
    made.set_title("Leek soup")
    made.set_font("helvetica", size=12)
    made.add_page()
    made.multi_cell(0, 8, "Boil the leeks in butter.")
    data = bytes(made.output())
    (tmp_path / "soups").mkdir()
    (tmp_path / "soups" / "leek.pdf").write_bytes(data)
    (tmp_path / "soups" / "broken.pdf").write_bytes(data[:99])
    (tmp_path / "unnamed").write_bytes(data)
    warc = write_warc(tmp_path / "a.warc", ("200 OK", "Content-Type: application/pdf", data))
    for source in (tmp_path / "soups" / "leek.pdf", tmp_path / "unnamed", data, warc):
        (page,) = read_pages(source)
        assert isinstance(page, Page)
        assert (page.title, page.text) == ("Leek soup", "Boil the leeks in butter.")
    assert texts(tmp_path / "soups") == ["fault", "Boil the leeks in butter."]
