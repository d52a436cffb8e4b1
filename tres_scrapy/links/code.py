"""What a link says as codes: words of its anchor and place, runs of its URL, hashed by group.

A code is the number of a weight of the link model. Each group has separate codes, so that a word
of an anchor text and the same word of a heading are two things. `Names` keeps the texts of codes,
so that people can read what the model has learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.page.place import Place, tokenise
from tres_scrapy.page.text import Page
from tres_scrapy.url.message import printable

Codes = NDArray[np.uint32]
Name = tuple[int, str]  # a code and its text
BITS: Final = 17
GROUP_SIZE: Final = 1 << BITS  # codes of a group
PARTS: Final = 8  # of P(relevant) of the page
MAX_URL_BYTES: Final = 120  # bytes of a URL that are read: a third of them from its start
RUNS: Final = (3, 4, 5)
ABSENT: Final = -1  # the place of a link without codes
MAX_TEXTS: Final = 20_000  # texts of a group whose codes are kept
MAX_NAME_LENGTH: Final = 80  # characters kept of a text: its end if it is longer
_DIGITS: Final = bytes(ord("0") if chr(byte).isdigit() else byte for byte in range(128)) + bytes(
    range(128, 256)
)
_PRIME: Final = np.uint32(0x01000193)  # of FNV-1, the hash of runs
_MIX: Final = np.uint32(0x9E3779B1)  # spreads its low bits
MAX_NAMES: Final = 40_000  # of a group


class CueGroup(IntEnum):
    """The groups of codes; each can be switched off."""

    URL = 0  # runs of three to five characters
    HOST = 1  # host and folder
    ANCHOR = 2  # words of the anchor text
    AROUND = 3  # words around it
    HEADING = 4  # words of the heading above it
    PATH = 5  # tags from the root to the link: only in files of earlier runs
    PAGE = 6  # title and URL of the page that it stands on
    FACT = 7  # what holds for any topic


class Fact(IntEnum):
    """Facts about a link that mean the same on every web and topic."""

    KEYWORD_AROUND = 0
    KEYWORD_IN_HEADING = 1
    KEYWORD_IN_TITLE = 2  # of the page that it stands on
    NO_TEXT = 3
    IN_MENU = 4  # only in files of earlier runs
    PAGE_PROBABILITY = 8  # and the seven after it: eighths of P(relevant) of that page


CODES: Final = GROUP_SIZE * len(CueGroup)
# Most codes of a link in a group; a link takes four bytes for each.
MAX_CODES: Final = {
    CueGroup.HOST: 2,
    CueGroup.ANCHOR: 10,
    CueGroup.AROUND: 20,
    CueGroup.HEADING: 6,
    CueGroup.PAGE: 10,
}


class RaggedArray(NamedTuple):
    """The codes of links in one array, those of link 0 first; link i has `counts[i]`."""

    codes: Codes
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> RaggedArray:
        """Return lists of codes as one array."""
        codes = [code for each in lists for code in each]
        return cls(np.array(codes, dtype=np.uint32), np.array([*map(len, lists)], dtype=np.int64))

    def take(self, places: Sequence[int]) -> RaggedArray:
        """Return the codes of some links; ABSENT gives one without codes."""
        ends = np.cumsum(self.counts)
        parts = [self.codes[ends[i] - self.counts[i] : ends[i]] for i in places if i >= 0]
        counts = [int(self.counts[i]) if i >= 0 else 0 for i in places]
        codes = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint32)
        return RaggedArray(codes, np.array(counts, dtype=np.int64))


def silent(count: int) -> RaggedArray:
    """Return `count` links of which only URL and anchor text are known."""
    return RaggedArray(np.zeros(0, dtype=np.uint32), np.zeros(count, dtype=np.int64))


class Keywords(Protocol):
    """The keywords of a topic."""

    def in_text(self, text: str) -> bool:
        """Return whether a text contains one."""

    def in_words(self, words: Sequence[str]) -> bool:
        """Return whether the text of these words contains one."""


class Wordbook:
    """The codes of texts, kept so that few are hashed twice.

    `new` holds the texts that were met first on the last page. A group that is full starts again,
    so a text can be new more than once.
    """

    def __init__(self) -> None:
        self.new: list[Name] = []
        self._codes = [dict[str, int]() for _ in CueGroup]
        self._anchors: dict[str, list[int]] = {}

    def coded(self, group: CueGroup, texts: Iterable[str]) -> list[int]:
        """Return the codes of different texts of a group; only the first of many."""
        known = self._codes[group]
        first = list(dict.fromkeys(texts))[: MAX_CODES[group]]
        return [known.get(text) or self._meet(group, text) for text in first]

    def anchor(self, anchor: str) -> list[int]:
        """Return the codes of an anchor text."""
        found = self._anchors.get(anchor)
        if found is None:
            if len(self._anchors) >= MAX_TEXTS:
                self._anchors.clear()
            words = tokenise(anchor)
            found = self._anchors[anchor] = self.coded(CueGroup.ANCHOR, words)
            if not anchor:
                found.append(fact(Fact.NO_TEXT))
        return found

    def _meet(self, group: CueGroup, text: str) -> int:
        known = self._codes[group]
        if len(known) >= MAX_TEXTS:
            known.clear()
        known[text] = code = coded(group, [text])[0]
        short = text if len(text) <= MAX_NAME_LENGTH else f"…{text[1 - MAX_NAME_LENGTH :]}"
        self.new.append((code, short))
        return code


def page_codes(
    page: Page,
    probability: float,
    keywords: Keywords,
    words: Wordbook | None = None,
) -> RaggedArray:
    """Return the codes of a page's links, except those of their URLs; the page has its places.

    `probability` is P(relevant) of the page. `words` learns the texts of the codes.
    """
    words = words or Wordbook()
    words.new.clear()
    address = tokenise(page.url.partition("//")[2])
    title = tokenise(page.title)
    whole = words.coded(CueGroup.PAGE, [*title, *(f"/{word}" for word in address)])
    whole.append(fact(Fact.PAGE_PROBABILITY) + min(PARTS - 1, int(PARTS * probability)))
    if keywords.in_text(page.title):
        whole.append(fact(Fact.KEYWORD_IN_TITLE))
    return RaggedArray.of(
        [
            [*_link_codes(link.anchor, place, keywords, words), *whole]
            for link, place in zip(page.links, page.places, strict=True)
        ]
    )


def _link_codes(anchor: str, place: Place, keywords: Keywords, words: Wordbook) -> list[int]:
    codes = [
        *words.anchor(anchor),
        *words.coded(CueGroup.AROUND, place.around),
        *words.coded(CueGroup.HEADING, place.heading),
        *([fact(Fact.KEYWORD_IN_HEADING)] if keywords.in_words(place.heading) else []),
    ]
    if keywords.in_words(place.around):
        codes.append(fact(Fact.KEYWORD_AROUND))
    return codes


def coded(group: CueGroup, texts: Iterable[str]) -> list[int]:
    """Return the codes of different texts of a group; only the first of many."""
    first = group << BITS
    return [
        first | (crc32(text.encode("utf-8", "surrogatepass")) & (GROUP_SIZE - 1))
        for text in list(dict.fromkeys(texts))[: MAX_CODES[group]]
    ]


def fact(kind: Fact) -> int:
    """Return the code of a fact."""
    return (CueGroup.FACT << BITS) | kind


def url_codes(urls: Sequence[str]) -> tuple[Codes, NDArray[np.int64]]:
    """Return codes of URLs [m] and which URL each belongs to [m]; those of a URL as `url_texts`.

    These are their runs of characters, their hosts and their folders. Digits are folded into one.
    The scheme is not read.
    """
    codes, owners = _runs([read_url(url) for url in urls])
    places = np.array([_place_codes(*url_places(url)) for url in urls], dtype=np.uint32).reshape(-1)
    return np.concatenate([codes, places]), np.concatenate([owners, np.arange(len(places)) // 2])


def url_texts(url: str) -> list[str]:
    """Return the texts of a URL's codes: its runs by length and place, then host and folder."""
    text = read_url(url).translate(_DIGITS).decode("latin-1")
    runs = [text[i : i + length] for length in RUNS for i in range(len(text) - length + 1)]
    return [*runs, *url_places(url)]


@lru_cache(MAX_TEXTS)
def _place_codes(host: str, folder: str) -> list[int]:
    return coded(CueGroup.HOST, [host, folder])


def url_places(url: str) -> tuple[str, str]:
    """Return the host and the folder of a URL."""
    address = url.partition("//")[2].partition("?")[0]
    folder = address.rpartition("/")[0]
    return address.partition("/")[0], f"{folder}/"


def read_url(url: str) -> bytes:
    """Return what is read of a URL, between marks of its start and end."""
    text = url.partition("//")[2].lower().encode("utf-8", "surrogatepass")
    if len(text) > MAX_URL_BYTES:
        text = text[: MAX_URL_BYTES // 3] + text[MAX_URL_BYTES // 3 - MAX_URL_BYTES :]
    return b"/" + text + b"$"


def _runs(texts: Sequence[bytes]) -> tuple[Codes, NDArray[np.int64]]:
    """Return hashes of all runs of RUNS bytes within each text, and the text of each."""
    flat = np.frombuffer(b"".join(texts).translate(_DIGITS), dtype=np.uint8).astype(np.uint32)
    owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    found, owners, hashes = [], [], flat
    for length in range(2, RUNS[-1] + 1):
        hashes = hashes[:-1] * _PRIME + flat[length - 1 :]
        if length in RUNS:
            inside = owner[: len(hashes)] == owner[length - 1 :]
            found.append((hashes[inside] * _MIX) >> np.uint32(32 - BITS))
            owners.append(owner[: len(hashes)][inside])
    return np.concatenate(found), np.concatenate(owners)


class Names:
    """The first texts of each group; of two texts with the same code, the first is kept."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._counts = [0] * len(CueGroup)

    def __len__(self) -> int:
        return len(self._texts)

    def learn(self, names: Iterable[Name]) -> None:
        """Keep the texts of new codes."""
        for code, text in names:
            if code not in self._texts and self._counts[code >> BITS] < MAX_NAMES:
                self._texts[code] = printable(text[:MAX_NAME_LENGTH])
                self._counts[code >> BITS] += 1

    def text(self, code: int) -> str | None:
        """Return the text of a code, None if it is not known."""
        return self._texts.get(code)

    def since(self, count: int) -> list[Name]:
        """Return all but the first `count` names, newest first."""
        return list(islice(reversed(self._texts.items()), len(self._texts) - count))
