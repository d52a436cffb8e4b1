"""Inputs of the fuzzer: hostile URLs, hosts, pages and JSON, and damaged copies of good data.

One random generator draws everything, so a number identifies an input.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

SCHEMES: Final = ["http:", "https:", "HTTP:", "", "file:", "javascript:", "data:", "ftp:", "x:"]
HOSTS: Final = [
    "example.org",
    "EXAMPLE.org.",
    "caf\u00e9.fr",
    "xn--caf-dma.fr",
    "xn--",
    "xn--a.xn--\u00df",
    "a_b.test",
    "-a.test",
    "\u3002test",
    "a\u3002b.test",
    "\uff21.test",
    "a\u00adb.test",
    "stra\u00dfe.de",
    "\u0130.tr",
    "a\u200db.test",
    "co.uk",
    "a..b",
    ".",
    "localhost",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.01",
    "1.2.3.4.",
    "169.254.169.254",
    "8.8.8.8",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::a00:1]",
    "[fe80::1%25eth0]",
    "[v1.a]",
    "[]",
    "[a",
    *(
        "\u0661\u0662\u0667.1",
        "127\u30020.0.1",
        "\u2460.\u2461.\u2462.\u2463",
        "a" * 64,
        "a." * 130,
    ),
]
URL_PARTS: Final = [
    "//",
    "/",
    "\\",
    "/./",
    "/../",
    "?",
    "?a=1&b",
    "&utm_source=a",
    "#",
    "#!",
    ";jsessionid=1",
    *(
        "@",
        "me:secret@",
        ":",
        ":80",
        ":443",
        ":0",
        ":99999",
        ":8\u0660",
        ":-1",
        "[",
        "]",
        "|",
        "{}",
    ),
    "%",
    "%2",
    "%00",
    "%2f",
    "%zz",
    "%ff",
    "%F0%9F%8D%95",
    " ",
    "\t",
    "\n",
    "\r",
    "\0",
    "\x7f",
    "\u2028",
    "\xa0",
    "\ufeff",
    "\ud800",
    "\udfff",
    "\U0001f355",
    "\u202e",
    "a",
    "index.html",
    *(
        "\u2100",
        "\uff0f",
        "\uff1a",
        "\uff20",
        "\uff05",
        "'",
        '"',
        "<",
        ">",
        "^",
        "`",
        "=",
        "+",
        "~",
    ),
]
HOST_PARTS: Final = [*HOSTS, *"0123456789abcdefx.:%[]-_", "0x", "\u3002", "\0", " ", "\ud800"]
TAGS: Final = [
    "a",
    "a",
    "a",
    "a",
    "area",
    "map",
    "base",
    "link",
    "title",
    "html",
    "head",
    "body",
    "p",
    "div",
    "div",
    "section",
    "ul",
    "li",
    "ol",
    "dl",
    "table",
    "tr",
    "td",
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "math",
    "mtext",
    "iframe",
    "object",
    "nav",
    "header",
    "footer",
    "aside",
    "dialog",
    "form",
    "button",
    "select",
    "option",
    "textarea",
    "frameset",
    "frame",
    "plaintext",
    "xmp",
    "image",
    "img",
    "br",
    "b",
    "i",
    "font",
    "h1",
    "meta",
    "x:y",
    "a\0b",
    "a\u00e9",
    "template",
    "annotation-xml",
    "foreignObject",
]
ATTRIBUTES: Final = [
    "href",
    "href",
    "href",
    "src",
    "alt",
    "title",
    "lang",
    "hidden",
    "rel=canonical",
    "role=navigation",
    "class",
    "id",
    "style",
    "onclick",
    "content",
    "charset",
    "http-equiv",
    "xml:lang",
    "\0",
    "=",
    "'",
    "\u00e9",
    "x:href",
]
TEXTS: Final = [
    "Cheese and wine.",
    "caf\u00e9 \u30c1\u30fc\u30ba \u0421\u044b\u0440",
    "\0",
    "\ud800",
    "<",
    "&amp;",
    "&#0;",
    "&#xD800;",
    "&#x110000;",
    "&notit;",
    "&",
    "&#99999999999;",
    "<!--",
    "-->",
    "<!-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE html>",
    "<?xml?>",
    "</",
    "<//>",
    "</p\0>",
    "\x1b[2J",
    *(
        "word " * 40,
        "\u0130" * 3,
        "\U0001f355",
        "\u202e",
        "\r\n",
        "\x0c",
        "404 not found",
        "'",
        '"',
    ),
]
CHARSETS: Final = [
    "utf-8",
    "utf-8",
    "latin-1",
    "windows-1252",
    "utf-16",
    "utf-16-le",
    "utf-7",
    "shift_jis",
    "gb18030",
    "big5",
    "euc-kr",
    "koi8-r",
    "ascii",
    "utf-32",
    "iso-2022-jp",
    "x-user-defined",
    "none",
    "",
    "\u00e9",
    "hz",
    "idna",
    "rot13",
    "base64",
    "undefined",
    "unicode_escape",
]
NUMBERS: Final = [0, 1, -1, 2, 7, 255, 2**31 - 1, -(2**31), 2**32, 2**63 - 1, -(2**63)]
REALS: Final = [0.5, -0.0, 1e300, -1e300, 5e-324, float("inf"), float("nan")]


def url(random: Random) -> str:
    """Return a possible URL of a link."""
    if random.random() < 0.1:
        return changed(random, "https://shop.example.org/c/a%20b?b=2,3&a=1#part", URL_PARTS)
    host = random.choice(["", "//", "//", "//me:pw@"]) + random.choice(HOSTS)
    tail = "".join(random.choices(URL_PARTS, k=random.randrange(8)))
    text = random.choice(SCHEMES) + host + tail
    return changed(random, text, URL_PARTS) if random.random() < 0.3 else text


def host(random: Random) -> str:
    """Return a possible host name or address."""
    kind = random.randrange(4)
    if kind == 0:
        bases = ["{}", "0{:o}", "0x{:x}"]
        parts = (random.choice(bases).format(random.choice(NUMBERS)) for _ in range(4))
        return ".".join(list(parts)[: random.randint(1, 4)])
    if kind == 1:
        groups = [f"{random.getrandbits(16):x}", "0", "ffff", "", "1.2.3.4", "127.0.0.1"]
        return ":".join(random.choices(groups, k=random.randint(2, 9)))
    return changed(random, random.choice(HOSTS).strip("[]"), HOST_PARTS)


def page(random: Random, pages: list[str]) -> str:
    """Return HTML: tags in any order, or one of `pages` that has been changed."""
    if random.random() < 0.15:
        return changed(random, random.choice(pages), [*TEXTS, "<a href=/>", "<div>", "</div>"])
    pieces = [_piece(random) for _ in range(random.randrange(30))]
    if random.random() < 0.01:  # one page is endless
        pieces.append(_piece(random) * random.randrange(3_000))
    random.shuffle(pieces)
    return "".join(pieces)


def changed(random: Random, text: str, parts: list[str]) -> str:
    """Return a text with pieces of it cut out, doubled or replaced by `parts`."""
    for _ in range(random.randint(1, 4)):
        start = random.randint(0, len(text))
        end = min(len(text), start + int(random.expovariate(0.3)))
        cut = text[start:end] * random.choice([0, 0, 1, 2])
        text = text[:start] + cut + random.choice(["", random.choice(parts)]) + text[end:]
    return text


def changed_bytes(random: Random, data: bytes) -> bytes:
    """Return bytes with some of them cut out, doubled, moved, flipped or made extreme."""
    for _ in range(random.choice([1, 1, 2, 5])):
        start = random.randint(0, len(data))
        end = min(len(data), start + random.choice([1, 1, 2, 4, 8, 64, 1_000]))
        old = data[start:end]
        new = random.choice(
            [
                *(b"", old + old, old[::-1], bytes(len(old)), b"\xff" * len(old)),
                bytes([byte ^ 1 << random.randrange(8) for byte in old]),
                random.randbytes(8),
                b"\x7f" + old[1:],
                data[: random.randrange(64)],
            ]
        )
        data = data[:start] + new + data[end:]
    return data


def scalar(random: Random) -> Any:
    """Return a JSON value of an unexpected kind or size."""
    kinds: list[Any] = [
        random.choice(NUMBERS),
        random.choice(REALS),
        random.choice(TEXTS),
        random.choice(HOSTS),
        *(None, True, 10**400, "", [], {}, [[]], {"a": {}}, "x" * 5_000, "http://a.test/"),
    ]
    return random.choice(kinds)


def changed_json(random: Random, value: Any) -> Any:
    """Return a JSON value with one thing in it replaced, left out or doubled."""
    if not isinstance(value, (list, dict)) or not value or random.random() < 0.1:
        return scalar(random)
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    place, copy = random.choice(places), value.copy()
    if random.random() < 0.2:
        del copy[place]
    elif random.random() < 0.1:
        copy[random.choice(places)] = value[place]
    else:
        copy[place] = changed_json(random, value[place])
    return copy


def json_text(random: Random, value: Any) -> str:
    """Return a changed JSON value as text, which may be invalid JSON."""
    kind = random.randrange(12)
    if kind == 0:
        return changed(random, json.dumps(value), ["[", "{", '"', "\\ud800", "\0", "1e999", ","])
    if kind == 1:
        return random.choice(["[", '{"a":', "["]) * random.choice([1, 100, 100_000])
    return json.dumps(changed_json(random, value))


def _piece(random: Random) -> str:
    kind = random.randrange(8)
    if kind < 3:
        return f"<{random.choice(TAGS)}{_attributes(random)}{random.choice(['>', '>', '/>', ''])}"
    if kind < 5:
        return f"</{random.choice(TAGS)}>"
    return random.choice(TEXTS)


def _attributes(random: Random) -> str:
    found = ""
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        value = random.choice(["", url(random), random.choice(TEXTS)])
        value = value * 5_000 if random.random() < 0.0005 else value
        quote = random.choice(["'", '"', ""])
        found += f" {random.choice(ATTRIBUTES)}={quote}{value}{quote}"
    return found
