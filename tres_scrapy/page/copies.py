"""Copies and echoes: pages that say again what pages fetched before have said.

A copy repeats a text under another URL: session ids, print views, mirrors. A page is a sketch of
its word shingles by b-bit minwise hashing with b = 1 (Li and König, 2010): in each of 256 lanes,
the lowest bit of the smallest hash. Two sketches differ in about 128 (1 - J) lanes, where J is the
share of shingles that the two pages have in common (Jaccard).

An echo is put together from phrases of other sites, as farms of generated pages are. A stale page
has hardly a phrase that is new. Samples of the phrases and words of a page, the same for the same
phrases (Broder, 1997), show which site said them first, and which words have spread to a second
site: who invents words says many for the first time, but none for the second.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import Page

LANES: Final = 256
WORDS: Final = 1 + LANES // 64  # of a sketch: the address, then the lanes
SKETCH: Final = 8 * WORDS  # bytes; the words and the phrases of a fingerprint follow
SHINGLE: Final = 3  # words
MAX_SHINGLES: Final = 1_024  # those of smallest hash: a copy keeps the same
# Most lanes in which copies differ: J is above 0.9. Among 7,960 pairs of real pages of one host,
# these are copies; pages of one template with other content differ in 26 or more.
MAX_DIFFERENCE: Final = 12
# The same at one canonical URL: comments and sidebars change up to 39 lanes. Wrong canonical URLs,
# such as page 19 of a blog with the address of page 1, differ in 94 or more.
MAX_DIFFERENCE_AT_ADDRESS: Final = 64

SAMPLED: Final = 2**29  # one phrase in eight: those with a smaller hash
PHRASES: Final = 48  # sampled of a page, at most
FEWEST: Final = 10  # phrases: fewer say nothing
SLOTS: Final = 2**21
NOBODY: Final = -1
# Share of phrases that other sites said first. Of 2,281 real pages 26 have more (news and recipes
# that several sites have); pages put together from pieces of eight words have 0.6 and more.
ECHO: Final = 0.5
STALE: Final = 0.6  # share of phrases that any site, also its own, said before
VOCABULARY: Final = 96  # words sampled of a page, at most
SEVERAL: Final = -2  # sites

_FACTORS: Final = np.random.default_rng(0).integers(0, 2**31, LANES, dtype=np.uint32) * 2 + 1


class Duplicates:
    """The sketches of the distinct pages so far, 40 bytes each."""

    def __init__(self) -> None:
        self._marks = np.empty((WORDS, 1_024), dtype=np.uint64)
        self._size = 0

    def add(self, mark: bytes) -> bool:
        """Store a fingerprint and return True, or return False if a similar one is stored.

        A call takes 0.1 ms with 100,000 stored fingerprints.
        """
        words = np.frombuffer(mark[:SKETCH], dtype=np.uint64)
        known = self._marks[:, : self._size]
        # Similar sketches have similar first words, so this test excludes most other pages.
        texts = np.flatnonzero(np.bitwise_count(known[1] ^ words[1]) <= MAX_DIFFERENCE)
        at_address = np.flatnonzero(known[0] == words[0])
        for pages, limit in ((texts, MAX_DIFFERENCE), (at_address, MAX_DIFFERENCE_AT_ADDRESS)):
            differences = np.bitwise_count(known[1:, pages] ^ words[1:, None]).sum(axis=0)
            if (differences <= limit).any():
                return False
        if self._size == self._marks.shape[1]:
            self._marks = np.concatenate([self._marks, np.empty_like(self._marks)], axis=1)
        self._marks[:, self._size] = words
        self._size += 1
        return True


class Known(NamedTuple):
    """How much of what a page says was said before."""

    phrases: int
    elsewhere: int  # phrases that another site said first
    here: int  # phrases that its own site said first
    words: int = 0
    new_words: int = 0  # that no site said before
    spread: tuple[int, ...] = ()  # of each word that just one other site said before, that site

    @property
    def is_echo(self) -> bool:
        """Whether the page is put together from phrases of other sites."""
        return self.phrases >= FEWEST and self.elsewhere > ECHO * self.phrases

    @property
    def is_stale(self) -> bool:
        """Whether most of the phrases are known."""
        return self.phrases >= FEWEST and self.here + self.elsewhere > STALE * self.phrases


NOTHING: Final = Known(0, 0, 0)


class Memory:
    """Which site said each phrase and each word first, and which words several sites have said."""

    def __init__(self) -> None:
        self._phrases, self._words = Sayings(), Sayings()

    def note(self, mark: bytes, site: int) -> Known:
        """Note what a fingerprint says as said by a site; return how much was known."""
        if len(mark) == SKETCH:
            return NOTHING
        said = np.frombuffer(mark, dtype=np.uint32, offset=SKETCH)
        count = int(said[0])
        words, phrases = said[1 : 1 + count], said[1 + count :]
        firsts = self._words.note(words, site)
        is_spread = (firsts >= 0) & (firsts != site)
        self._words.spread(words[is_spread])
        sites = self._phrases.note(phrases, site)
        here, new = (int(np.count_nonzero(sites == each)) for each in (site, NOBODY))
        spread = tuple(firsts[is_spread].tolist())
        new_words = int(np.count_nonzero(firsts == NOBODY))
        return Known(len(phrases), len(phrases) - here - new, here, count, new_words, spread)


class Sayings:
    """Which site said each hash first; of many hashes, new ones displace old ones."""

    def __init__(self) -> None:
        self._hashes = np.zeros(SLOTS, dtype=np.uint32)  # zeros take no memory
        self._sites = np.zeros(SLOTS, dtype=np.int32)  # numbers of sites, above NOBODY

    def note(self, hashes: NDArray[np.uint32], site: int) -> NDArray[np.int32]:
        """Note distinct hashes [n]; return the site that said each first, or NOBODY, SEVERAL."""
        slots = _mixed(hashes) % np.uint32(SLOTS)
        is_known = self._hashes[slots] == hashes
        sites = np.where(is_known, self._sites[slots] + NOBODY, NOBODY)
        new = slots[sites == NOBODY]
        self._hashes[slots], self._sites[new] = hashes, site - NOBODY
        return sites

    def spread(self, hashes: NDArray[np.uint32]) -> None:
        """Note that several sites have said hashes."""
        self._sites[_mixed(hashes) % np.uint32(SLOTS)] = SEVERAL - NOBODY


def fingerprint(page: Page) -> bytes:
    """Return the sketch of a page, 40 bytes, and samples of its words and phrases.

    The sketch begins with a hash of its canonical URL, or else its URL. After it come the number of
    words and the hashes of words and of phrases, 4 bytes each; nothing, if it has no word.
    """
    url = page.canonical or page.url
    address = blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    of_words = _hashed(tokenise(f"{page.title} {page.text}"))
    if not len(of_words):
        return address + bytes(LANES // 8)
    shingles = _shingles(of_words)
    smallest = (shingles[:MAX_SHINGLES, None] * _FACTORS).min(axis=0)  # [n, lanes] to [lanes]
    lanes = np.packbits((_mixed(smallest) & 1).astype(np.uint8))
    words = np.unique(_mixed(of_words))[:VOCABULARY]
    phrases = shingles[shingles < SAMPLED][:PHRASES]
    said = np.concatenate([np.array([len(words)], dtype=np.uint32), words, phrases])
    return address + lanes.tobytes() + said.tobytes()


def _hashed(words: list[str]) -> NDArray[np.uint32]:
    encoded = " ".join(words).encode("utf-8", "replace").split()
    return np.fromiter(map(crc32, encoded), np.uint32, len(words))


def _shingles(of_words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the distinct hashes of all runs of three words, in ascending order."""
    length = min(SHINGLE, len(of_words))
    runs = np.zeros(len(of_words) - length + 1, dtype=np.uint32)
    for i in range(length):
        runs = _mixed(runs + of_words[i : i + len(runs)])
    return np.unique(runs)


def _mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the hashes mixed so that each bit depends on all bits (Wellons's lowbias32)."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x7FEB352D)
    hashes = (hashes ^ (hashes >> np.uint32(15))) * np.uint32(0x846CA68B)
    return hashes ^ (hashes >> np.uint32(16))
