"""What is known of the words of a language: their vectors, and how common they are (P 2.3, 3.3)."""

from __future__ import annotations

import zipfile
from operator import le
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from tres_scrapy.url.message import TresError, reason
from tres_scrapy.url.whole_file import check_numbers, whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FREQUENCIES: Final = Path("vectors", "english-frequencies.npz")  # relative to a folder of packs
RAREST_SHARE: Final = 2e-5  # of a word that is not in the table
LEVELS: Final = 127
# limits of a file: enough for published vectors, within the memory of a laptop
MOST_WORDS: Final = 500_000
MOST_LETTERS: Final = 50 * MOST_WORDS  # in bytes
MOST_DIMENSIONS: Final = 512


class WordVectors:
    """A vocabulary, most frequent word first, with one float32 row for each word."""

    def __init__(self, words: list[str], matrix: NDArray[np.float32]) -> None:
        if matrix.ndim != 2 or len(matrix) != len(words):
            msg = f"matrix has shape {matrix.shape!r}, must be [{len(words)}, d]: a row per word"
            raise ValueError(msg)
        if len(words) > MOST_WORDS or not 0 < matrix.shape[1] <= MOST_DIMENSIONS:
            msg = (
                f"matrix has shape {matrix.shape!r}, must be [{MOST_WORDS}, {MOST_DIMENSIONS}] "
                "or smaller and not empty: keep the most frequent words"
            )
            raise ValueError(msg)
        self.words = words
        self.matrix = matrix  # [V, d]
        self._ids = {word: row for row, word in enumerate(words)}
        if len(self._ids) < len(words):
            msg = f"{len(words)} words, {len(self._ids)} different: no word may repeat"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def ids(self, tokens: Iterable[str]) -> NDArray[np.int64]:
        """Return the rows of the known tokens, in order; unknown tokens are dropped."""
        known = self._ids
        return np.array([known[token] for token in tokens if token in known], dtype=np.int64)

    def unit(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the rows of the known words scaled to length one, [n, d]."""
        rows = self.matrix[self.ids(words)]
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        scaled: NDArray[np.float32] = rows / np.maximum(length, np.finfo(np.float32).tiny)
        return scaled

    def save(self, path: Path) -> None:
        """Write the vectors as int8 rows, each with a float32 scale, in one atomic step."""
        scale = np.abs(self.matrix).max(axis=1).astype(np.float32) / LEVELS
        scale[scale == 0] = 1
        rows = np.rint(self.matrix / scale[:, None]).astype(np.int8)
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        with whole_file(path) as file:
            np.savez_compressed(file, words=words, rows=rows, scale=scale)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read vectors written by `save`; raise TresError for any other file."""
        try:
            with zipfile.ZipFile(path) as file:
                rows = _read(file, "rows", np.int8, MOST_WORDS, MOST_DIMENSIONS)
                scale = _read(file, "scale", np.float32, len(rows))
                words = _read(file, "words", np.uint8, MOST_LETTERS)
            check_numbers("scale", scale)
            vocabulary = words.tobytes().decode().split("\n", len(rows))
            return cls(vocabulary, rows * scale[:, None])
        except Exception as error:  # a damaged archive may raise any error
            msg = (
                f"{path.name!r} is not a word vector file: {reason(error)}; make one with "
                "`tres vectors`"
            )
            raise TresError(msg) from error


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


def _read(file: zipfile.ZipFile, name: str, dtype: DTypeLike, *most: int) -> NDArray[Any]:
    """Return an array of an .npz file; raise ValueError if type or shape are not allowed."""
    with file.open(f"{name}.npy") as array:
        version = npy.read_magic(array)
        shape, _, found = npy.read_array_header_1_0(array)
        fits = len(shape) == len(most) and all(map(le, shape, most))
        if (version, found) != ((1, 0), dtype) or not fits:
            msg = f"{name} {shape!r} of {found} must be {np.dtype(dtype)}, at most {most!r}"
            raise ValueError(msg)
        array.seek(0)
        return npy.read_array(array, allow_pickle=False)
