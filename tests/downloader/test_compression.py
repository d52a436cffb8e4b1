import gzip
import zlib
from random import Random

import brotli
import pytest
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils._compression import zstd
from scrapy.utils.test import get_crawler

from tres_scrapy.downloader.compression import MAX_PARTS, BoundedCompression

URL = "http://a.test/"
SIZE = 2**20
NAMED = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\3\0abcname\0comment\0xx"  # all optional fields
PACK = {
    b"gzip": lambda body: gzip.compress(body, mtime=0),
    b"x-gzip": lambda body: gzip.compress(body[:9]) + bytes(5) + gzip.compress(body[9:]),
    b"deflate": zlib.compress,
    b"br": brotli.compress,
    b"zstd": lambda body: zstd.compress(body[:9]) + zstd.compress(body[9:]),
}
EMPTY = gzip.compress(b"", mtime=0)


def bare(body):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def unpacked(body, *encodings, cls=BoundedCompression):
    middleware = cls.from_crawler(get_crawler(Spider, {"DOWNLOAD_MAXSIZE": SIZE}))
    said = Response(URL, headers={"Content-Encoding": b", ".join(encodings)}, body=body)
    return middleware.process_response(Request(URL), said).body


def refused(body, *encodings):
    with pytest.raises(IgnoreRequest) as caught:
        unpacked(body, *encodings)
    assert caught.value.kind == "too_large"
    return str(caught.value)


def bodies():
    draw = Random(1)
    return [b"", b"soup", bytes(SIZE), draw.randbytes(300_000), draw.randbytes(70_000) * 5]


@pytest.mark.parametrize("body", bodies(), ids=len)
@pytest.mark.parametrize("encoding", PACK)
def test_body_is_unpacked_as_by_scrapy(encoding, body):
    packed = PACK[encoding](body)
    assert unpacked(packed, encoding) == body
    assert unpacked(packed, encoding, cls=HttpCompressionMiddleware) == body


@pytest.mark.parametrize("encoding", ["gzip", "none"])
def test_charset_of_packed_body_is_not_guessed(encoding, monkeypatch):
    monkeypatch.setattr(HtmlResponse, "_auto_detect_fun", lambda *_: pytest.fail("guessed"))
    body = gzip.compress(b"caf\xe9")
    said = HtmlResponse(f"{URL}a.html", headers={"Content-Encoding": encoding}, body=body)
    middleware = BoundedCompression.from_crawler(get_crawler(Spider))
    unpacked = middleware.process_response(Request(URL), said)
    assert unpacked.body == (b"caf\xe9" if encoding == "gzip" else body)


def test_every_form_is_read():
    body = bodies()[-1]
    assert unpacked(bare(body), b"deflate") == body
    assert unpacked(NAMED + bare(body), b"gzip") == body
    assert unpacked(gzip.compress(body) + b"end", b"gzip") == body
    assert unpacked(gzip.compress(body)[:-4] + b"dead", b"gzip") == body  # a wrong length


@pytest.mark.parametrize("encoding", PACK)
def test_torn_body_is_read_as_far_as_it_goes(encoding):
    body = bodies()[3] * 3
    packed = PACK[encoding](body)
    read = unpacked(packed[: len(packed) // 2], encoding)
    assert len(read) > 10_000
    assert body.startswith(read)


def test_three_encodings_are_the_most():
    body = gzip.compress(brotli.compress(gzip.compress(b"soup")))
    assert unpacked(body, b"gzip", b"br", b"gzip") == b"soup"
    assert "encodings" in refused(gzip.compress(body), b"gzip", b"br", b"gzip", b"gzip")


def test_layers_share_one_size():
    noise = Random(1).randbytes(SIZE // 2)
    twice = gzip.compress(gzip.compress(noise))
    assert unpacked(gzip.compress(noise), b"gzip") == noise
    assert "DOWNLOAD_MAXSIZE" in refused(twice, b"gzip", b"gzip")


@pytest.mark.parametrize(
    ("part", "encoding"),
    [(EMPTY, b"gzip"), (zstd.compress(b""), b"zstd"), (b"P*M\x18" + bytes(4), b"zstd")],
)
def test_empty_parts_are_counted(part, encoding):
    assert unpacked(part * MAX_PARTS, encoding) == b""
    assert "parts" in refused(part * (MAX_PARTS + 1), encoding)
    assert "parts" in refused(brotli.compress(part * (MAX_PARTS + 1)), encoding, b"br")
