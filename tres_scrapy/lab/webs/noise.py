"""Noise by hashing: each trait of a page is computed from (seed, site, page), never stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Hash = NDArray[np.uint64]
Ints = NDArray[np.int64]
MASK = (1 << 64) - 1
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_FIRST, _SECOND = np.uint64(FIRST), np.uint64(SECOND)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


def mix(*parts: int | NDArray[Any]) -> Hash:
    """Return the 64-bit hash of whole numbers >= 0; arrays follow plain numbers and broadcast."""
    state, rest = 0, 0
    for part in parts:  # plain numbers come first: hash them without NumPy's overhead
        if isinstance(part, np.ndarray):
            break
        state = (state ^ int(part)) + FIRST & MASK
        state = (state ^ state >> 30) * SECOND & MASK
        state ^= state >> 27
        rest += 1
    noise = np.array([state], np.uint64)
    for part in parts[rest:]:
        noise = noise ^ np.asarray(part).astype(np.uint64, copy=False)
        noise += _FIRST
        noise ^= noise >> _30
        noise *= _SECOND
        noise ^= noise >> _27
    noise *= _FIRST
    noise ^= noise >> _31
    return noise


def unit(noise: Hash) -> NDArray[np.float64]:
    """Return hashes as numbers in [0, 1)."""
    return (noise >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(noise: Hash, limit: int | Ints) -> Ints:
    """Return hashes as whole numbers in [0, limit)."""
    return (unit(noise) * limit).astype(np.int64)


def generator(noise: Hash) -> np.random.Generator:
    """Return the random generator of one hash."""
    return np.random.Generator(np.random.PCG64(int(noise[0])))


class Shuffle:
    """A fixed permutation of 0 .. 2**bits - 1, and its inverse."""

    def __init__(self, bits: int, key: int) -> None:
        self.mask = (1 << bits) - 1
        self.half = (bits + 1) // 2
        self.odd = (int(mix(key, bits)[0]) | 1) & self.mask
        self.inverse = pow(self.odd, -1, self.mask + 1)

    def forward(self, number: int) -> int:
        """Return the place of a number."""
        number = number * self.odd & self.mask
        number ^= number >> self.half
        return number * self.odd & self.mask

    def back(self, place: int) -> int:
        """Return the number at a place."""
        place = place * self.inverse & self.mask
        place ^= place >> self.half
        return place * self.inverse & self.mask
