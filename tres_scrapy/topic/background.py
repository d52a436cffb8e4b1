"""How common the words of a language are: the share of its texts that hold each word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

FREQUENCIES: Final = Path("vectors", "english-frequencies.npz")  # relative to a folder of packs
RAREST: Final = 2e-5  # the share of a word that is not in the table


class Background:
    """Words, the most common first, and the share of general texts that hold each."""

    def __init__(self, words: Sequence[str], shares: Sequence[float]) -> None:
        self.words = list(words)
        self.shares = np.array(shares, dtype=np.float32)

    def save(self, path: Path) -> None:
        """Write the table in one atomic step; the same table gives the same bytes."""
        letters = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        with whole_file(path) as file:
            np.savez_compressed(file, words=letters, shares=self.shares.astype(np.float16))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a table written by `save`."""
        with np.load(path, allow_pickle=False) as file:
            words = file["words"].tobytes().decode().split("\n")
            return cls(words, file["shares"].astype(np.float32).tolist())
