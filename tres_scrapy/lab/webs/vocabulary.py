"""The words of the synthetic web, drawn by their frequency in the table of each topic."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from importlib import resources

import numpy as np

from tres_scrapy.lab.webs.noise import Hash, Ints

RESOLUTION = 8192  # a draw is one look-up in a table of this many quantiles
STOP_WORDS = 150  # this many of the most frequent words never occur in a title
BACKGROUND = "background"  # the table that belongs to no topic
FLATTEN = 0.75  # exponent of the counts: one collection's favourites must not dominate


@cache
def tables() -> dict[str, dict[str, int]]:
    """Return the shipped word counts of every topic and of the background."""
    text = resources.files(__package__).joinpath("words.json").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, int]] = json.loads(text)
    return loaded


def topics() -> tuple[str, ...]:
    """Return the topics that have a table of words."""
    return tuple(name for name in tables() if name != BACKGROUND)


class Vocabulary:
    """Word tables as one array of quantiles; row k is topic k, then background and plain words.

    `words` and `slugs` hold the words by number, as written in a text and in a URL.
    """

    def __init__(self) -> None:
        counts = tables()
        background = counts[BACKGROUND]
        plain = dict(list(background.items())[STOP_WORDS:])
        self.topics = topics()
        self.background, self.plain = len(self.topics), len(self.topics) + 1
        rows = [*(counts[name] for name in self.topics), background, plain]
        self.words = np.array([word for row in rows for word in row], dtype=object)
        self.slugs = np.array([_ascii(word) for word in self.words], dtype=object)
        starts = np.cumsum([0, *(len(row) for row in rows)])
        self._topical = int(starts[self.background])
        self.quantiles = np.stack(
            [start + _quantiles(row) for start, row in zip(starts, rows, strict=False)]
        )

    def is_topical(self, number: int) -> bool:
        """Return whether a word number is one of a topic's table."""
        return number < self._topical

    def draw(self, rows: Ints, noise: Hash) -> Ints:
        """Return one word number for each row and hash."""
        drawn: Ints = self.quantiles[rows, (noise & np.uint64(RESOLUTION - 1)).astype(np.int64)]
        return drawn


def _ascii(word: str) -> str:
    return unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()


def _quantiles(counts: dict[str, int]) -> Ints:
    weights = np.cumsum(np.array(list(counts.values()), dtype=np.float64) ** FLATTEN)
    points = (np.arange(RESOLUTION) + 0.5) / RESOLUTION * weights[-1]
    found: Ints = np.searchsorted(weights, points).astype(np.int64)
    return found
