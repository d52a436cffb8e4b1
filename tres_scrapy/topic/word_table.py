"""Numbers the words of texts, and knows how common each is in English and near to the keywords."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.classifier import RAREST_SHARE, field_of
from tres_scrapy.topic.fit import Bags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import Background, WordVectors

    Numbers = NDArray[np.float64]


class _Read(NamedTuple):
    words: Mapping[str, int]  # what was read
    ids: NDArray[np.int64]
    counts: Numbers
    nearness: float


class WordTable:
    """The words that were seen, in all fields of pages, without stop words.

    `middle` [d] is the mean of the keywords' vectors of length one; it may be shorter.
    """

    def __init__(self, english: Background, vectors: WordVectors, middle: Numbers) -> None:
        order = sorted(range(len(english.words)), key=english.words.__getitem__)
        self.words: list[str] = []
        self.shares: list[float] = []  # of general texts that hold the word
        self.fields: list[int] = []
        self._english = dict(zip(english.words, english.shares.tolist(), strict=True))
        self._vectors = vectors
        self._middle = middle
        self._ids: dict[str, int] = {}
        self._read: dict[int, _Read] = {}
        self._near = np.zeros(0)  # of the first words that were seen: cosines to the keywords
        for place in order:
            self.number(english.words[place])
        plain = np.array(self.shares)
        general = self._mean(np.arange(len(plain)), -np.log(plain) * plain)
        self._general = float(general @ middle)  # nearness of English

    def number(self, word: str) -> int:
        """Return the number of a word, -1 for a stop word."""
        known = self._ids.get(word)
        if known is not None:
            return known
        if word.rpartition(":")[2] in STOP_WORDS:
            self._ids[word] = -1
            return -1
        self._ids[word] = number = len(self.words)
        self.words.append(word)
        self.fields.append(field_of(word))
        self.shares.append(self._english.get(word, RAREST_SHARE))
        return number

    def rows(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of those words that were seen."""
        return [row for word in words if (row := self._ids.get(word, -1)) >= 0]

    def near(self, words: Sequence[str]) -> Numbers:
        """Return the cosines to the keywords of words that were seen, 0 without a vector, [n]."""
        new = self.words[len(self._near) :]
        known = [place for place, word in enumerate(new) if word in self._vectors]
        cosines = np.zeros(len(new))
        to_keywords = self._middle / (float(np.linalg.norm(self._middle)) or 1.0)
        cosines[known] = self._vectors.unit(new) @ to_keywords
        self._near = np.append(self._near, cosines)
        return self._near[[self._ids[word] for word in words]]

    def read(self, texts: Sequence[Mapping[str, int]]) -> tuple[Bags, Numbers]:
        """Return how often each word occurs in texts, and how near these are to the keywords, [n].

        Texts of the last call are not read again.
        """
        before = self._read
        self._read = {id(text): before.get(id(text)) or self._new(text) for text in texts}
        read = [self._read[id(text)] for text in texts]
        bags = Bags.of([(each.ids, each.counts) for each in read], len(self.words))
        return bags, np.array([each.nearness for each in read])

    def _new(self, text: Mapping[str, int]) -> _Read:
        known = {row: n for word, n in text.items() if (row := self.number(word)) >= 0}
        ids = np.fromiter(known, np.int64, len(known))
        counts = np.fromiter(known.values(), np.float64, len(known))
        shares = np.array([self.shares[row] for row in known])
        mean = self._mean(ids, (1 + np.log(counts)) * -np.log(shares))
        has_vector = bool(mean.any())
        near = float(mean @ self._middle) - self._general if has_vector else 0.0
        return _Read(text, ids, counts, near)

    def _mean(self, ids: NDArray[np.int64], weights: Numbers) -> Numbers:
        """Return the weighted mean of the vectors of words of a text, scaled to length one."""
        words = [self.words[row] for row in ids.tolist()]
        known = np.array([word in self._vectors for word in words], dtype=bool)
        units = self._vectors.unit(words)
        mean = weights[known] @ units if known.any() else np.zeros(units.shape[1])
        return np.asarray(mean / (float(np.linalg.norm(mean)) or 1.0))
