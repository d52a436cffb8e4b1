"""Detects pages that repeat a text under another URL: session ids, print views, mirrors.

A page is a sketch of its word shingles by b-bit minwise hashing with b = 1 (Li and König, 2010): in
each of 256 lanes, the lowest bit of the smallest hash. Two sketches differ in about 128 (1 - J)
lanes, where J is the share of shingles that the two pages have in common (Jaccard).
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
MAX_SHINGLES: Final = 1_024  # those of smallest hash: a copy keeps the same
# Most lanes in which copies differ: J is above 0.9. Among 7,960 pairs of real pages of one host,
# these are copies; pages of one template with other content differ in 26 or more.
MAX_DIFFERENCE: Final = 12
# The same at one canonical URL: comments and sidebars change up to 39 lanes. Wrong canonical URLs,
# such as page 19 of a blog with the address of page 1, differ in 94 or more.
MAX_DIFFERENCE_AT_ADDRESS: Final = 64

_FACTORS: Final = np.random.default_rng(0).integers(0, 2**31, LANES, dtype=np.uint32) * 2 + 1


class Duplicates:
    """The fingerprints of the distinct pages so far, 40 bytes each."""

    def __init__(self) -> None:
        self._marks = np.empty((WORDS, 1_024), dtype=np.uint64)
        self._size = 0

    def add(self, mark: bytes) -> bool:
        """Store a fingerprint and return True, or return False if a similar one is stored.

        A call takes 0.1 ms with 100,000 stored fingerprints.
        """
        words = np.frombuffer(mark, dtype=np.uint64)
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


def fingerprint(page: Page) -> bytes:
    """Return 40 bytes for a page: a hash of its canonical URL, or else its URL, and its sketch."""
    url = page.canonical or page.url
    address = blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    shingles = _shingles(tokenise(f"{page.title} {page.text}"))[:MAX_SHINGLES]
    if not len(shingles):
        return address + bytes(LANES // 8)
    smallest = (shingles[:, None] * _FACTORS).min(axis=0)  # [n, lanes] to [lanes]
    return address + np.packbits((_mixed(smallest) & 1).astype(np.uint8)).tobytes()


def _shingles(words: list[str]) -> NDArray[np.uint32]:
    """Return the distinct hashes of all runs of three words, in ascending order."""
    encoded = " ".join(words).encode("utf-8", "replace").split()
    of_words = np.fromiter(map(crc32, encoded), np.uint32, len(words))
    length = min(SHINGLE, len(words))
    runs = np.zeros(len(words) - length + 1, dtype=np.uint32)
    for i in range(length):
        runs = _mixed(runs + of_words[i : i + len(runs)])
    return np.unique(runs[: len(words)])


def _mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the hashes mixed so that each bit depends on all bits (Wellons's lowbias32)."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x7FEB352D)
    hashes = (hashes ^ (hashes >> np.uint32(15))) * np.uint32(0x846CA68B)
    return hashes ^ (hashes >> np.uint32(16))
