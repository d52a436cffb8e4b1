"""Pages that repeat a text under another URL: session ids, print views, mirrors, reprints.

A page is a sketch of its word shingles by b-bit minwise hashing with b = 1 (Li and König, 2010): in
each of 256 lanes the lowest bit of the smallest hash. Two sketches differ in about 128 (1 - J)
lanes, J being the share of their shingles that two pages have in common.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.page.text import Page, tokenise

LANES: Final = 256
WORDS: Final = 1 + LANES // 64  # of a mark: the address, then the sketch
SHINGLE: Final = 3  # words
MAX_SHINGLES: Final = 1_024  # of a longer page those of smallest hash: its copy keeps the same
# In how many lanes one text may differ: J is above 0.9. Among 7,960 pairs of real pages of one
# host these are copies; pages of one template with other content differ in 26 or more.
MAX_DIFFERENCE: Final = 12
# And at one canonical URL: comments and sidebars made up to 39 there, and what only claims to be
# one page, such as page 19 of a blog with the address of its first, 94 or more.
MAX_DIFFERENCE_AT_ADDRESS: Final = 64

_FACTORS: Final = np.random.default_rng(0).integers(0, 2**31, LANES, dtype=np.uint32) * 2 + 1


class Duplicates:
    """The pages that are new among those it is told of, 40 bytes each."""

    def __init__(self) -> None:
        self._marks = np.empty((WORDS, 1_024), dtype=np.uint64)
        self._size = 0

    def add(self, mark: bytes) -> bool:
        """Keep the fingerprint of a page, unless it is nearly that of one kept: return False then.

        It takes 0.1 ms where 100,000 pages are kept.
        """
        words = np.frombuffer(mark, dtype=np.uint64)
        known = self._marks[:, : self._size]
        # Whole sketches are near only if their first words are: of other pages few pass.
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


def fingerprint(page: Page) -> bytes:
    """Return the 40 bytes of a page: its canonical URL, else its own, as a hash, and its sketch."""
    url = page.canonical or page.url
    address = blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    shingles = _shingles(tokenise(f"{page.title} {page.text}"))[:MAX_SHINGLES]
    if not len(shingles):
        return address + bytes(LANES // 8)
    smallest = (shingles[:, None] * _FACTORS).min(axis=0)  # [n, lanes] to [lanes]
    return address + np.packbits((_mixed(smallest) & 1).astype(np.uint8)).tobytes()


def _shingles(words: list[str]) -> NDArray[np.uint32]:
    """Return the hashes of the runs of three words, each once and in rising order."""
    hashes = (crc32(word.encode("utf-8", "replace")) for word in words)
    of_words = np.fromiter(hashes, np.uint32, len(words))
    length = min(SHINGLE, len(words))
    runs = np.zeros(len(words) - length + 1, dtype=np.uint32)
    for i in range(length):
        runs = _mixed(runs + of_words[i : i + len(runs)])
    return np.unique(runs[: len(words)])


def _mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the hashes with every bit depending on all of theirs (Wellons's lowbias32)."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x7FEB352D)
    hashes = (hashes ^ (hashes >> np.uint32(15))) * np.uint32(0x846CA68B)
    return hashes ^ (hashes >> np.uint32(16))
