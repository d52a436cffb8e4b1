import errno
import gzip
import threading
from functools import partial

import pytest

from tres_scrapy.export import warc as module
from tres_scrapy.export.warc import ArchiveWriter, repair

RECORDS = [b"WARC/1.1\r\n" + name + b" page" * 500 + b"\r\n\r\n" for name in (b"one", b"two")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a" / "b.warc.gz"


def write(path, *records):
    writer = ArchiveWriter(path)
    for record in records:
        writer.put(partial(list, [record]), len(record))
    writer.close()
    return writer


def members(path):
    return path.read_bytes().split(path.read_bytes()[:8])[1:]


def test_each_record_is_one_member(path):
    writer = write(path, *RECORDS)
    assert gzip.decompress(path.read_bytes()) == b"".join(RECORDS)
    assert len(members(path)) == 2
    assert writer.size == path.stat().st_size
    assert writer.waiting == 0


def test_existing_file_is_extended(path):
    write(path, RECORDS[0])
    write(path, RECORDS[1])
    assert gzip.decompress(path.read_bytes()) == b"".join(RECORDS)
    assert len(members(path)) == 2, "all members have the same number"


def test_torn_end_is_cut_off(path):
    write(path, *RECORDS)
    whole = path.read_bytes()
    first = len(whole) - 8 - len(members(path)[1])
    for end in range(first + 1, len(whole)):
        path.write_bytes(whole[:end])
        assert repair(path) == end - first
        assert path.read_bytes() == whole[:first]
    write(path, RECORDS[1])
    assert gzip.decompress(path.read_bytes()) == b"".join(RECORDS)


def test_file_torn_at_start_is_rewritten(path):
    write(path, RECORDS[0])
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        repair(path)
        assert path.read_bytes() == b""


def test_whole_file_is_kept(path):
    write(path, *RECORDS)
    assert repair(path) == 0


def test_zeros_at_the_end_are_cut(path):
    write(path, *RECORDS)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(100_000))
    assert repair(path) == 100_000
    assert path.stat().st_size == size


def test_archive_inside_page_is_ignored(path, tmp_path):
    inner = tmp_path / "inner.warc.gz"
    write(inner, RECORDS[0])
    page = RECORDS[0] + inner.read_bytes() + b"more of the page"
    write(path, page)
    assert repair(path) == 0
    assert gzip.decompress(path.read_bytes()) == page


@pytest.mark.parametrize(
    "content",
    [b"thesis", gzip.compress(b"thesis" * 500, mtime=7), b"\x1f\x8b\x08\x00" + b"x" * 999],
)
def test_foreign_file_is_left_alone(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ValueError, match="give another name"):
        ArchiveWriter(path)
    assert path.read_bytes() == content


def test_full_disk_leaves_whole_records(path, monkeypatch):
    writer = ArchiveWriter(path)
    real = writer._file

    class Full:
        """A file on a disk with room for half of the second record."""

        def write(self, data):
            if writer.size == 0:
                return real.write(data)
            real.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        fileno, close = real.fileno, real.close

    monkeypatch.setattr(writer, "_file", Full())
    for record in (*RECORDS, RECORDS[0]):
        writer.put(partial(list, [record]))
    writer.close()
    assert "No space left" in str(writer.error)
    assert gzip.decompress(path.read_bytes()) == RECORDS[0]


def test_bad_record_is_counted(path, caplog):
    writer = ArchiveWriter(path)
    writer.put(partial(int, "no record"))
    writer.put(partial(list, [RECORDS[0]]))
    writer.close()
    assert (writer.left_out, writer.error) == (1, None)
    assert gzip.decompress(path.read_bytes()) == RECORDS[0]
    assert "Could not archive a response: ValueError" in caplog.text


def test_slow_writer_reports_full(path, monkeypatch):
    monkeypatch.setattr(module, "ROOM", 10)
    writer, go = ArchiveWriter(path), threading.Event()
    writer.put(lambda: [RECORDS[0]] if go.wait() else [], 11)
    assert writer.full
    go.set()
    writer.close()
    assert not writer.full
