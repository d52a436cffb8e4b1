import gzip
import tracemalloc
import zlib

import pytest
from archived import record

from tres_scrapy.lab.webs import warc_file as module
from tres_scrapy.lab.webs.warc_file import NOT_ALONE, TORN, Skip, StoredRecord, read_block, scan

A, B, C = (record(f"http://{host}.test/") for host in "abc")


@pytest.fixture(params=["plain", "packed"])
def written(request, tmp_path):
    """Write records to a file, plain or as one gzip member each."""

    def write(*records):
        path = tmp_path / "a.warc"
        packed = map(gzip.compress, records) if request.param == "packed" else records
        path.write_bytes(b"".join(packed))
        return path

    return write


def urls(path):
    return [
        found.fields["warc-target-uri"] for found in scan(path) if isinstance(found, StoredRecord)
    ]


def faults(path):
    return [found.reason for found in scan(path) if isinstance(found, Skip)]


def test_records_are_found_where_they_lie(written):
    path = written(A, B, C)
    found = list(scan(path))
    assert urls(path) == ["http://a.test/", "http://b.test/", "http://c.test/"]
    assert [read_block(path, each.offset, 10**6) for each in found] == [
        each.start for each in found
    ]
    assert all(each.start.endswith(b"<p>soup</p>") for each in found)


def test_block_reading_is_bounded(written):
    path = written(A)
    assert read_block(path, 0, 8) == b"HTTP/1.1"


def test_long_block_is_read_whole(written):
    body = bytes(range(256)) * 2000
    path = written(A, record("http://b.test/", body), C)
    found = list(scan(path))
    assert len(found[1].start) == module.HEAD < len(body)
    assert read_block(path, found[1].offset, 10**6).endswith(body)


@pytest.mark.parametrize("cut", [30, 50])
def test_torn_record_is_left_out(written, cut):
    path = written(A, B)
    path.write_bytes(path.read_bytes()[:-cut])
    assert (urls(path), faults(path)) == (["http://a.test/"], [TORN])


@pytest.mark.parametrize("length", [-5, 3, 100, 10**6, "z"])
def test_lying_length_is_told(written, length):
    path = written(A, record("http://liar.test/", b"x" * 40, length=length), C)
    assert urls(path)[0] == "http://a.test/"
    assert len(faults(path)) == 1


def test_record_inside_page_is_ignored(written):
    path = written(A, record("http://b.test/", b"x\r\n\r\n" + C), C)
    assert urls(path) == ["http://a.test/", "http://b.test/", "http://c.test/"]


def test_records_before_damage_are_read(tmp_path):
    path = tmp_path / "a.warc.gz"
    middle = bytearray(gzip.compress(B))
    middle[20:40] = bytes(20)
    path.write_bytes(gzip.compress(A) + middle)
    assert urls(path) == ["http://a.test/"]
    assert faults(path)[0].startswith("the rest of the file is damaged: ")


def test_shared_gzip_member_is_told(tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(A + B))
    assert faults(path) == [NOT_ALONE]


@pytest.mark.parametrize("content", [b"", b"thesis" * 99, b"\x1f\x8b\x08\x00" * 99, bytes(10**6)])
def test_foreign_file_has_no_record(tmp_path, content):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(content)
    assert urls(path) == []


def test_endless_header_ends_the_reading(written):
    path = written(A, record("http://b.test/", extra=f"X: {'y' * 10**6}\r\n"))
    assert urls(path) == ["http://a.test/"]


def test_bomb_stays_within_memory(tmp_path):
    head = record("http://bomb.test/", b"", length=10**9)[:-4]
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(head) + b"".join(packer.compress(bytes(10**6)) for _ in range(60))
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(A) + bomb + packer.flush())
    tracemalloc.start()
    assert urls(path) == ["http://a.test/"]
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
