"""The similarity of a text and the keywords of a topic: the cosine of mean word vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tres_scrapy.page.text import STOP_WORDS, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.vectors import WordVectors


class Similarity:
    """Compares texts with keywords; raise ValueError if no keyword has a vector."""

    def __init__(self, vectors: WordVectors, keywords: Iterable[str]) -> None:
        self._vectors = vectors
        self._topic = self._direction(keywords)
        if not self._topic.any():
            raise ValueError("no keyword has a word vector: add a more common keyword")

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the cosine [n] of each text with the keywords, 0 if it has no known word."""
        words = ([w for w in tokenise(text) if w not in STOP_WORDS] for text in texts)
        cosines = [float(self._direction(each) @ self._topic) for each in words]
        return np.array(cosines, dtype=np.float32)

    def _direction(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the mean direction of the words, of length one; zero without a known word."""
        mean: NDArray[np.float32] = self._vectors.unit(words).sum(axis=0)
        length = float(np.linalg.norm(mean))
        return mean / length if length > 0 else mean
