"""Keyword expansion: corpus words similar to the given keywords (P 2.3, Algorithm 1)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.page.text import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tres_scrapy.topic.vectors import WordVectors

MIN_TEXTS: Final = 5  # excludes names and misspellings
MIN_LIFT: Final = 4


def distinctive_words(
    relevant: Iterable[Iterable[str]], others: Iterable[Iterable[str]] = ()
) -> list[str]:
    """Return the words that expansion chooses from, sorted.

    A word must occur in five relevant texts or more, and in a share of them at least four times as
    high as in the others. P 2.3 uses all corpus words, which adds words like `using` and `system`.
    """
    inside, n = _spread(relevant)
    outside, m = _spread(others)
    return sorted(
        word
        for word, count in inside.items()
        if count >= MIN_TEXTS and count * m >= MIN_LIFT * n * outside[word]
    )


def expand(
    keywords: Iterable[str], corpus_words: Iterable[str], vectors: WordVectors
) -> tuple[set[str], float]:
    """Return the corpus words with a mean cosine to the keywords of at least b, and b.

    The threshold b is the mean cosine of the ordered pairs of distinct keywords. Raise ValueError
    if fewer than two keywords have a vector.
    """
    given = {word for word in keywords if word in vectors}
    if len(given) < 2:
        msg = f"only keywords {sorted(given)!r} have a vector, must be two or more: add keywords"
        raise ValueError(msg)
    units = vectors.unit(sorted(given)).astype(np.float64)  # [K, d]
    n = len(units)
    # every ordered pair at once; the n pairs of a word with itself have cosine 1
    b = float((np.square(units.sum(axis=0)).sum() - n) / (n * (n - 1)))
    candidates = sorted(w for w in set(corpus_words) - given - STOP_WORDS if w in vectors)
    closeness = vectors.unit(candidates) @ units.mean(axis=0)  # [C]
    return {word for word, mean in zip(candidates, closeness, strict=True) if mean >= b}, b


def _spread(texts: Iterable[Iterable[str]]) -> tuple[Counter[str], int]:
    """Return the number of texts that contain each word, and the number of texts."""
    counts: Counter[str] = Counter()
    number = 0
    for text in texts:
        counts.update(set(text))
        number += 1
    return counts, number
