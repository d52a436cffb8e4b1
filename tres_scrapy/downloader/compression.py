"""Scrapy's decompression of bodies (Content-Encoding), with limits for all layers together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse

from tres_scrapy.downloader.refusal import TOO_LARGE, WithKind

MAX_ENCODINGS: Final = 3
MAX_PARTS: Final = 1_000  # members of a gzip and frames of a zstd, which may be empty
# What each part of a body begins with, or has near its start. By chance it stands once in 16 MiB.
_GZIP: Final = (b"\x1f\x8b\x08",)
_PARTS: Final[Mapping[bytes, tuple[bytes, ...]]] = {
    b"gzip": _GZIP,
    b"x-gzip": _GZIP,
    b"zstd": (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"),
}


def with_encoding(response: TextResponse, encoding: str) -> TextResponse:
    """Return the response with this encoding.

    `replace` would first ask the response for its own, whose guess holds up the event loop.
    """
    known = {name: getattr(response, name) for name in Response.attributes}
    return type(response)(**known, encoding=encoding)


class BoundedCompression(WithKind, HttpCompressionMiddleware):
    """Scrapy bounds the size of each layer; many empty parts in a small body would take minutes.

    What exceeds a limit is refused as TOO_LARGE. A body that ends early is read as far as it goes.
    """

    kind = TOO_LARGE

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        packed = response
        if isinstance(response, TextResponse) and "Content-Encoding" in response.headers:
            packed = with_encoding(response, "latin-1")  # else guessed from the packed bytes
        answer = super().process_response(request, packed, spider)
        return response if answer is packed else answer

    def _handle_encoding(
        self, body: bytes, content_encoding: list[bytes], max_size: int
    ) -> tuple[bytes, list[bytes]]:
        encodings, unknown = self._split_encodings(content_encoding)
        if len(encodings) > MAX_ENCODINGS:
            raise IgnoreRequest(f"{len(encodings)} encodings, must be {MAX_ENCODINGS} at most")
        left = max_size
        for encoding in encodings:
            # counted, as a pattern with alternatives holds up the event loop
            if sum(map(body.count, _PARTS.get(encoding, ()))) > MAX_PARTS:
                raise IgnoreRequest(f"it is packed in more than {MAX_PARTS} parts")
            body = self._decode(body, encoding, left)
            left = max(1, left - len(body)) if max_size else 0
        return body, unknown
