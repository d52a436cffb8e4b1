"""The encoding of a page and the language of its text (P 3.1).

The encoding is one that browsers know, so that no page takes long to decode. A pack can only judge
pages in its own language.

A text full of the function words of one common language needs no detector, which costs 2 ms. All
languages but English are close to others, so for them the page must declare the same language.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from functools import cache
from typing import Final

import numpy as np
from charset_normalizer import from_bytes
from py3langid.langid import (  # type: ignore[import-untyped]  # no stubs are published
    MODEL_FILE,
    LanguageIdentifier,
)
from w3lib.encoding import (
    html_body_declared_encoding,
    http_content_type_encoding,
    read_bom,
    resolve_encoding,
)

SAMPLE: Final = 300  # characters from the start and from the middle: a menu fills only one of them
MIN_LETTERS: Final = 40  # in UTF-8 bytes: one Chinese character counts as three English letters
MIN_CONFIDENCE: Final = 0.5  # encoded files and tables of numbers have no language
# Function words of a text in one language: at least so many, and this share of all its words
MIN_FUNCTION_WORDS: Final = 8
MIN_SHARE: Final = 0.2
MIN_SHARE_DECLARED: Final = 0.1  # if the page declares this language
MAX_OTHER_SHARE: Final = 0.25  # words of other languages only, as a share of these
UNDECLARED: Final = "en"
FUNCTION_WORDS: Final = {
    "en": """the of and to in is that it for was on with as are be this by at from or have not but
        they which you were their his an we he she has had will its been would there can if when
        who your my our about into than these""",
    "de": """der die und das den von zu mit sich des auf für ist im dem nicht ein eine als auch es
        an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so
        zum war haben nur oder aber vor zur bis mehr durch wir ich ihre""",
    "fr": """de la le et les des en un du une que est pour qui dans sur au pas par plus ne il ce ou
        avec sont cette aux se mais son sa ses vous nous comme tout leur elle être fait été ces""",
    "es": """de la que el en y a los se del las un por con no una su para es al lo como más o pero
        sus le ya este sí porque esta entre cuando muy sin sobre también hasta hay donde fue son""",
    "it": """di e il la che in a per un è del non con sono una le da si i della al nel come più gli
        alla dei ha lo anche o ma delle su questo se dal nella ed sua tra essere degli""",
    "nl": """de van het een en in is dat op te zijn met voor niet aan er om ook als dan maar bij of
        door over uit naar deze tot worden wordt heeft hij ze je wij zich geen kan meer nog wat""",
    "pt": """de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao
        ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso""",
}
_SETS: Final = {code: frozenset(words.split()) for code, words in FUNCTION_WORDS.items()}
_OTHERS: Final = {code: frozenset().union(*_SETS.values()) - own for code, own in _SETS.items()}
_WORD: Final = re.compile(r"[^\W\d_]+")


def detect_language(text: str, declared: str = "") -> str:
    """Return the ISO 639-1 code of a text, "" if it is unknown.

    `declared` is the language that the page declares: used if the text is too short, and trusted if
    the function words of the text agree.
    """
    middle = len(text) // 2
    sample = text if len(text) <= 2 * SAMPLE else text[:SAMPLE] + text[middle : middle + SAMPLE]
    if len("".join(filter(str.isalpha, sample)).encode()) < MIN_LETTERS:
        return _code(declared)
    if language := _plain(sample, _primary(declared)):
        return language
    found = str(_identifier().classify(sample)[0])
    return "" if found == "und" else found


def _plain(sample: str, declared: str) -> str:
    """Return the language of a sample if its function words leave no doubt, else ""."""
    language = declared or UNDECLARED
    own = _SETS.get(language)
    if own is None:
        return ""
    words = _WORD.findall(sample.lower())
    count = sum(map(own.__contains__, words))
    share = MIN_SHARE_DECLARED if declared else MIN_SHARE
    if count < max(MIN_FUNCTION_WORDS, share * len(words)):
        return ""
    others = sum(map(_OTHERS[language].__contains__, words))
    return language if others <= MAX_OTHER_SHARE * count else ""


def _primary(declared: str) -> str:
    return declared.strip().lower().replace("_", "-").partition("-")[0]


def _code(declared: str) -> str:
    code = _primary(declared)
    return code if code in _identifier().labels else ""


@cache
def _identifier() -> LanguageIdentifier:
    """Return the library's own model, without languages that have three-letter codes."""
    identifier = LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True, min_confidence=MIN_CONFIDENCE
    )
    identifier.set_languages([label for label in identifier.labels if len(label) == 2])
    # a text reads some hundred rows of 23 MB, which lie column by column
    identifier.nb_ptc = np.ascontiguousarray(identifier.nb_ptc)
    return identifier


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
GUESSED: Final = 64 * 1024  # bytes of which the encoding is guessed
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
    best = from_bytes(body[:GUESSED]).best()
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
