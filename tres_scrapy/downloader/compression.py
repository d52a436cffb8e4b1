"""Unpacks bodies (Content-Encoding) in bounded time; Scrapy bounds only the size of each layer."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator
from gzip import BadGzipFile
from io import BytesIO
from time import thread_time
from typing import Final

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils._compression import brotli, zstd  # type: ignore[attr-defined]

from tres_scrapy.downloader.refusal import TOO_LARGE, refusing

MAX_ENCODINGS: Final = 3
MAX_PARTS: Final = 1_000  # members of a gzip and frames of a zstd, which may be empty
SECONDS: Final = 0.25  # of the processor, for all layers; 8 MiB take 0.05 s
PIECE: Final = 16 * 1024  # bytes, packed, between two looks at the limits
CHUNK: Final = 64 * 1024  # bytes, unpacked, between them
WINDOW: Final = {int(zstd.DecompressionParameter.window_log_max): 23}  # 8 MiB, as in RFC 9659
GZIP: Final = b"\x1f\x8b\x08"
TRAILER: Final = 8  # bytes after a gzip member: checksum and length, which are not checked
PADDING: Final = re.compile(rb"\0*")


class BoundedCompression(HttpCompressionMiddleware):
    """Scrapy's decompression, with limits for all layers of a body together.

    What exceeds them is refused as TOO_LARGE. A body that ends early is read as far as it goes.
    """

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        with refusing(TOO_LARGE):
            answer: Request | Response = super().process_response(request, response)
        return answer

    def _handle_encoding(
        self, body: bytes, content_encoding: list[bytes], max_size: int
    ) -> tuple[bytes, list[bytes]]:
        encodings, unknown = self._split_encodings(content_encoding)
        if len(encodings) > MAX_ENCODINGS:
            raise IgnoreRequest(f"{len(encodings)} encodings, must be {MAX_ENCODINGS} at most")
        work = _Work(max_size)
        for encoding in encodings:
            body = work.unpack(body, encoding)
        return body, unknown


class _Work:
    """The work that is left to unpack the layers of one body; without a `max_size` of any size."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._size = self._parts = 0
        self._end = thread_time() + SECONDS

    def unpack(self, body: bytes, encoding: bytes) -> bytes:
        """Return a body without one encoding; raise IgnoreRequest over a limit."""
        output = BytesIO()
        try:
            for chunk in READERS[encoding](body):
                self._count(chunk)
                output.write(chunk or b"")
        except BadGzipFile:  # as Scrapy, a torn page is better than none
            if not output.tell():
                raise
        return output.getvalue()

    def _count(self, chunk: bytes | None) -> None:
        self._parts += chunk is None
        self._size += len(chunk or b"")
        if self._max_size and self._size > self._max_size:
            raise IgnoreRequest(f"unpacked, it has more than {self._max_size} bytes in all layers")
        if self._parts > MAX_PARTS:
            raise IgnoreRequest(f"it is packed in more than {MAX_PARTS} parts")
        if thread_time() > self._end:
            raise IgnoreRequest(f"to unpack it takes more than {SECONDS} s")


# Yields what is unpacked, in chunks that may be empty, and None after each part.
Chunks = Generator[bytes | None, None, None]


def _gunzipped(body: bytes) -> Chunks:
    start = 0
    while body.startswith(GZIP, start):
        try:
            end = yield from _inflated(body, _after_header(body, start), -zlib.MAX_WBITS)
        except zlib.error as error:
            raise BadGzipFile(str(error)) from None
        padding = PADDING.match(body, end + TRAILER)
        start = padding.end() if padding is not None else len(body)
        yield None
    if not start:
        raise BadGzipFile("it is not a gzip")


def _after_header(body: bytes, start: int) -> int:
    """Return where the data of a gzip member begin (RFC 1952)."""
    flags, end = body[start + 3] if len(body) > start + 3 else 0, start + 10
    if flags & 4:  # a field of its length
        end += 2 + int.from_bytes(body[end : end + 2], "little")
    for text in (8, 16):  # file name, comment
        if flags & text:
            end = body.find(b"\0", end) + 1 or len(body)
    return end + 2 if flags & 2 else end  # a checksum


def _inflated(body: bytes, start: int, bits: int) -> Generator[bytes, None, int]:
    """Yield the data of one stream of zlib's; return its end, that of the body if it is torn."""
    stream = zlib.decompressobj(bits)
    for at in range(start, len(body), PIECE):
        piece = body[at : at + PIECE]
        rest = piece
        while True:
            yield (chunk := stream.decompress(rest, CHUNK))
            rest = stream.unconsumed_tail
            if stream.eof:
                return at + len(piece) - len(stream.unused_data)
            if not rest and len(chunk) < CHUNK:
                break
    return len(body)


def _inflated_either(body: bytes) -> Chunks:
    """Read zlib's format, or the bare one that some servers send."""
    try:
        zlib.decompressobj().decompress(body[:2], 1)
        bits = zlib.MAX_WBITS
    except zlib.error:
        bits = -zlib.MAX_WBITS
    yield from _inflated(body, 0, bits)


def _unbrotlied(body: bytes) -> Chunks:
    stream = brotli.Decompressor()
    for at in range(0, len(body), PIECE):
        yield stream.process(body[at : at + PIECE], output_buffer_limit=CHUNK)
        while not stream.is_finished():
            yield (chunk := stream.process(b"", output_buffer_limit=CHUNK))
            if not chunk and stream.can_accept_more_data():
                break
        else:
            return


def _unzstd(body: bytes) -> Chunks:
    start = 0
    while start < len(body):
        start = yield from _of_frame(body, start)
        yield None


def _of_frame(body: bytes, start: int) -> Generator[bytes, None, int]:
    """Yield the data of one frame of zstd; return its end, that of the body if it is torn."""
    stream = zstd.ZstdDecompressor(options=WINDOW)
    for at in range(start, len(body), PIECE):
        piece = body[at : at + PIECE]
        yield stream.decompress(piece, CHUNK)
        while not (stream.eof or stream.needs_input):
            yield stream.decompress(b"", CHUNK)
        if stream.eof:
            return at + len(piece) - len(stream.unused_data)
    return len(body)


READERS: Final[dict[bytes, Callable[[bytes], Chunks]]] = {
    b"gzip": _gunzipped,
    b"x-gzip": _gunzipped,
    b"deflate": _inflated_either,
    b"br": _unbrotlied,
    b"zstd": _unzstd,
}
