import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from w3lib.encoding import html_to_unicode

from tres_scrapy.page.language import (
    CHUNK,
    ENCODINGS,
    declared_encoding,
    decoded,
    encoding_of,
    is_utf_8,
)

GREEK = "καλημέρα σούπα"


@pytest.mark.parametrize(
    ("header", "page", "encoding"),
    [
        ("text/html; charset=iso-8859-7", b"", "iso8859-7"),
        ("text/html; charset=latin1", b"", "cp1252"),
        ("text/html", b"<meta charset=gbk>", "gb18030"),
        ("text/html; charset=koi8-r", b"\xef\xbb\xbf", "utf-8"),
        ("text/html; charset=punycode", b"", None),
        ("text/html; charset=base64", b"<meta charset=koi8-r>", "koi8-r"),
        ("text/html; charset=koi8-r", b"<meta charset=punycode>", "koi8-r"),
        (None, b"<meta charset=unicode_escape>", None),
    ],
)
def test_only_browser_encodings_are_believed(header, page, encoding):
    assert declared_encoding(page, header) == encoding


def test_undeclared_encoding_is_guessed():
    assert encoding_of(GREEK.encode()) == "utf-8"
    assert encoding_of((GREEK * 20).encode("iso8859-7"), "charset=punycode") in {
        "iso8859-7",
        "cp1253",
    }
    assert is_utf_8(GREEK.encode()[:-1])


@given(st.binary(max_size=200), st.sampled_from(sorted(ENCODINGS)), st.integers(0, 50))
def test_start_agrees_with_whole_text(body, encoding, length):
    whole = html_to_unicode(f"charset={encoding}", body)[1]
    marked = body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE))
    if not marked and encoding != "gb18030":  # w3lib reads 0x80 as a euro sign
        assert decoded(body, encoding, length) == whole[:length]


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "iso2022_jp", "utf-16-le"])
def test_chunks_do_not_split_characters(encoding):
    text = "a" + "日本" * CHUNK
    assert decoded(text.encode(encoding), encoding, len(text)) == text


def test_no_charset_takes_long():
    body = b"abcdefghij" * 20_000

    def seconds(charset):
        start = time.process_time()
        decoded(body, encoding_of(body, f"text/html; charset={charset}"), len(body))
        return time.process_time() - start

    plain = seconds("koi8-r") + seconds("utf-8")
    assert seconds("punycode") < 50 * plain  # Python's decoder takes 5,000 times as long
