"""Keywords of a topic and their expansion (P 2.3, Algorithm 1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote, urlsplit

import numpy as np

from tres_scrapy.topic.text import STOP_WORDS, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tres_scrapy.topic.vectors import WordVectors

LETTERS: Final = re.compile(r"[^\W\d_]+")
MIN_INNER_LENGTH: Final = 5  # shorter keywords hide in unrelated words: meat in meath


class KeywordSet:
    """The single words and the phrases that mark a topic."""

    def __init__(self, words: Iterable[str], phrases: Iterable[str] = ()) -> None:
        self.words = frozenset(word.lower() for word in words)
        self.phrases = tuple(dict.fromkeys(phrase.lower() for phrase in phrases))
        self._inner = tuple(sorted(word for word in self.words if len(word) >= MIN_INNER_LENGTH))
        self._spaced = tuple(_spaced(phrase) for phrase in self.phrases)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Read one keyword or phrase per line; a line that is not one plain word is a phrase."""
        entries = [line.strip().lower() for line in lines]
        words = [entry for entry in entries if tokenise(entry) == [entry]]
        return cls(words, [entry for entry in entries if entry and entry not in words])

    def in_text(self, text: str) -> bool:
        """Return whether a keyword is a word of the text or a phrase stands in it."""
        if not self.words.isdisjoint(tokenise(text)):
            return True
        spaced = _spaced(text)
        return any(phrase in spaced for phrase in self._spaced)

    def in_url(self, url: str) -> bool:
        """Return whether host or path hold a keyword, also run together as in `mycheeseshop`."""
        try:
            parts = urlsplit(url)
            text = unquote(f"{parts.netloc} {parts.path}").lower()
        except ValueError:
            return False
        return self.in_text(text) or any(word in text for word in self._inner)


def expand(
    keywords: Iterable[str], corpus_words: Iterable[str], vectors: WordVectors
) -> tuple[set[str], float]:
    """Return the corpus words as close to all keywords as these are to each other, and how close.

    The threshold b is the mean cosine of the ordered pairs of distinct keywords; a ValueError
    says when fewer than two keywords have a vector.
    """
    given = {word for word in keywords if word in vectors}
    if len(given) < 2:
        msg = f"keywords {sorted(given)!r} are known to the vectors, expansion takes two or more"
        raise ValueError(msg)
    units = vectors.unit(sorted(given)).astype(np.float64)  # [K, d]
    n = len(units)
    # every ordered pair at once; the n pairs of a word with itself have cosine 1
    b = float((np.square(units.sum(axis=0)).sum() - n) / (n * (n - 1)))
    candidates = sorted(w for w in set(corpus_words) - given - STOP_WORDS if w in vectors)
    closeness = vectors.unit(candidates) @ units.mean(axis=0)  # [C]
    return {word for word, mean in zip(candidates, closeness, strict=True) if mean >= b}, b


def _spaced(text: str) -> str:
    return f" {' '.join(LETTERS.findall(text.lower()))} "
