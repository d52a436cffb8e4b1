"""The encoding of a page: one that browsers know, so that no page takes long to decode."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import Final

from charset_normalizer import from_bytes
from w3lib.encoding import (
    html_body_declared_encoding,
    http_content_type_encoding,
    read_bom,
    resolve_encoding,
)

UTF_8: Final = "utf-8"
# Python's names for the encodings of the Encoding Standard of WHATWG. Python has others that take
# quadratic time (punycode) or are no text (base64). UTF-32 is read by its byte order mark only.
ENCODINGS: Final = frozenset(
    re.findall(
        r"\S+",
        """
        utf-8 utf-16 utf-16-be utf-16-le utf-32-be utf-32-le cp866 koi8-r koi8-u mac-roman
        mac-cyrillic iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8
        iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp874 cp1250 cp1251 cp1252 cp1253
        cp1254 cp1255 cp1256 cp1257 cp1258 gb18030 big5hkscs euc_jp iso2022_jp cp932 cp949
        """,
    )
)
SAMPLE: Final = 64 * 1024  # bytes of which the encoding is guessed
CHUNK: Final = 64 * 1024  # bytes decoded at once


def declared_encoding(body: bytes, content_type: str | None = None) -> str | None:
    """Return the encoding of a byte order mark, the HTTP header or a meta element, in this order.

    Names that are not in ENCODINGS are passed over; None if no other is left.
    """
    names = (
        read_bom(body)[0],
        http_content_type_encoding(content_type),
        html_body_declared_encoding(body),
    )
    return next((name for name in names if name is not None and name in ENCODINGS), None)


def encoding_of(body: bytes, content_type: str | None = None) -> str:
    """Return the declared encoding, else UTF-8 if the body may be that, else a guess."""
    if declared := declared_encoding(body, content_type):
        return declared
    if is_utf_8(body):
        return UTF_8
    best = from_bytes(body[:SAMPLE]).best()
    guess = resolve_encoding(best.encoding) if best is not None else None
    return guess if guess is not None and guess in ENCODINGS else "cp1252"


def is_utf_8(body: bytes, *, is_cut: bool = True) -> bool:
    """Return whether a body is UTF-8; one that `is_cut` off may end within a character."""
    try:
        getincrementaldecoder(UTF_8)().decode(body, final=not is_cut)
    except UnicodeDecodeError:
        return False
    return True


def decoded(body: bytes, encoding: str, length: int) -> str:
    """Return the first `length` characters of a body; what is not valid becomes U+FFFD."""
    _, mark = read_bom(body)
    start = len(mark or b"")
    decoder = getincrementaldecoder("utf-16-be" if encoding == "utf-16" else encoding)("replace")
    parts: list[str] = []
    missing = length
    while missing > 0 and start < len(body):
        end = start + CHUNK
        parts.append(decoder.decode(body[start:end], final=end >= len(body))[:missing])
        missing -= len(parts[-1])
        start = end
    return "".join(parts)
