"""Word vectors: trained by skip-gram, stored as one byte per number (P 2.3, 3.3)."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

LEVELS: Final = 127


class WordVectors:
    """A vocabulary, most frequent word first, and one float32 row for each word."""

    def __init__(self, words: list[str], matrix: NDArray[np.float32]) -> None:
        if matrix.ndim != 2 or len(matrix) != len(words):
            msg = f"matrix has shape {matrix.shape!r}, it must be [{len(words)}, d]: a row per word"
            raise ValueError(msg)
        self.words = words
        self.matrix = matrix  # [V, d]
        self._ids = {word: row for row, word in enumerate(words)}

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
        """Write the vectors as int8 rows, each with its own float32 scale."""
        scale = np.abs(self.matrix).max(axis=1).astype(np.float32) / LEVELS
        scale[scale == 0] = 1
        rows = np.rint(self.matrix / scale[:, None]).astype(np.int8)
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        np.savez_compressed(path, words=words, rows=rows, scale=scale)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read vectors written by `save`; raise ValueError when the file is anything else."""
        try:
            with np.load(path, allow_pickle=False) as file:
                words, rows, scale = file["words"], file["rows"], file["scale"]
            vocabulary = words.tobytes().decode().split("\n")
        except (KeyError, EOFError, zipfile.BadZipFile, UnicodeDecodeError, ValueError) as error:
            msg = f"{path.name!r} is not a word vector file: make it with `scrapy tres-vectors`"
            raise ValueError(msg) from error
        if rows.dtype != np.int8 or scale.shape != rows.shape[:1]:
            msg = (
                f"{path.name!r} has rows {rows.shape!r} of {rows.dtype} and scales {scale.shape!r}"
            )
            raise ValueError(msg)
        return cls(vocabulary, rows * scale.astype(np.float32)[:, None])


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def train_vectors(sentences: Iterable[list[str]], *, seed: int, **options: Any) -> WordVectors:
    """Train skip-gram vectors; `options` are gensim's, one worker makes them reproducible."""
    from gensim.models import Word2Vec  # noqa: PLC0415 - one second that no crawl should pay

    choices = {"vector_size": 100, "window": 5, "min_count": 5, "negative": 5, "epochs": 5}
    model = Word2Vec(
        sentences, sg=1, seed=seed, **{"max_final_vocab": 50_000, "workers": 1} | choices | options
    )
    return WordVectors(list(model.wv.index_to_key), model.wv.vectors)
