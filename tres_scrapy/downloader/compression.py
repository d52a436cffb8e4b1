"""Scrapy's decompression of bodies (Content-Encoding), with limits for all layers together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest

from tres_scrapy.downloader.refusal import TOO_LARGE, WithKind

MAX_ENCODINGS: Final = 3
MAX_PARTS: Final = 1_000  # members of a gzip and frames of a zstd, which may be empty
# What each part of a body begins with. By chance it stands once in 16 MiB.
_PARTS: Final[Mapping[bytes, re.Pattern[bytes]]] = {
    b"gzip": re.compile(rb"\x1f\x8b\x08"),
    b"x-gzip": re.compile(rb"\x1f\x8b\x08"),
    b"zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}


class BoundedCompression(WithKind, HttpCompressionMiddleware):
    """Scrapy bounds the size of each layer; many empty parts in a small body would take minutes.

    What exceeds a limit is refused as TOO_LARGE. A body that ends early is read as far as it goes.
    """

    kind = TOO_LARGE

    def _handle_encoding(
        self, body: bytes, content_encoding: list[bytes], max_size: int
    ) -> tuple[bytes, list[bytes]]:
        encodings, unknown = self._split_encodings(content_encoding)
        if len(encodings) > MAX_ENCODINGS:
            raise IgnoreRequest(f"{len(encodings)} encodings, must be {MAX_ENCODINGS} at most")
        left = max_size
        for encoding in encodings:
            parts = _PARTS.get(encoding)
            if parts is not None and len(parts.findall(body)) > MAX_PARTS:
                raise IgnoreRequest(f"it is packed in more than {MAX_PARTS} parts")
            body = self._decode(body, encoding, left)
            left = max(1, left - len(body)) if max_size else 0
        return body, unknown
