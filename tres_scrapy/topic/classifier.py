"""What all reward models share, Platt scaling, and linear models over bags of words (P 3.3).

A topic that learns keeps the fields of a page apart: its own words, those of its links and its
description, and those of its URL. A word of another field has a name of its own, as `link:soup`.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import islice
from math import log
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self
from urllib.parse import unquote

import numpy as np

from tres_scrapy.page.place import WORD
from tres_scrapy.url.whole_file import check_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.page.text import Page

MAX_WORDS: Final = 1_000  # of a page that a model reads
# the log odds of a text without a known word: one in five texts of a training batch is relevant
BLANK_LOGIT: Final = log(1 / 4)
SVM: Final = "svm"
TFIDF: Final = "tfidf"
FIELDS: Final = "fields"
LINEAR_KINDS: Final = (SVM, TFIDF, FIELDS)
MAX_AROUND: Final = 1_500  # words of links and description that a model reads
MAX_FORMS: Final = 100_000  # stems that are kept
TITLE_WEIGHT: Final = 3  # of a word of the title, in words of the text
LINK: Final = "link:"
URL: Final = "url:"
FIELD_SHARES: Final = np.array([1.0, 0.5, 0.5])  # the length of text, links, URL in the model
ENDINGS: Final = ("sses", "shes", "ches", "xes")
NO_PLURAL: Final = ("ss", "us", "is")


class Text(NamedTuple):
    """The lower-case words of a text in reading order, and the URL of its page.

    `title` holds the words of the title again, `around` those of links and description: only models
    that keep the fields of a page apart read these.
    """

    words: Sequence[str]
    url: str = ""
    title: Sequence[str] = ()
    around: Sequence[str] = ()

    @classmethod
    def of(cls, text: str, url: str = "") -> Self:
        """Return the first MAX_WORDS words of a text.

        A `url` without "://", such as a file name, is ignored.
        """
        found = WORD.findall(text.lower())[:MAX_WORDS]
        return cls([*map(intern, found)], url if "://" in url else "")

    @classmethod
    def of_page(cls, page: Page) -> Self:
        """Return all that a model may read of a page."""
        around = " ".join([page.description, *(link.anchor for link in page.links)]).lower()
        return cls.of(f"{page.title} {page.text}", page.url)._replace(
            title=WORD.findall(page.title.lower()),
            around=[each[0] for each in islice(WORD.finditer(around), MAX_AROUND)],
        )

    def field_counts(self) -> Counter[str]:
        """Return how often the stem of each word occurs, by field."""
        counts = Counter(map(stem, self.words))
        for word in self.title:
            counts[stem(word)] += TITLE_WEIGHT - 1
        counts.update(LINK + stem(word) for word in self.around)
        path = unquote(self.url.partition("://")[2].partition("/")[2]).lower()
        counts.update(URL + stem(word) for word in WORD.findall(path))
        return counts


@lru_cache(MAX_FORMS)
def stem(word: str) -> str:
    """Return a word without the ending of an English plural: `plants` is `plant`."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(ENDINGS):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(NO_PLURAL):
        return word[:-1]
    return word


def field_of(word: str) -> int:
    """Return the number of the field that a named word belongs to: text, links, URL."""
    return 1 if word.startswith(LINK) else 2 if word.startswith(URL) else 0


class Classifier(Protocol):
    """Separates relevant texts from others by an uncalibrated logit."""

    @property
    def kind(self) -> str:
        """The name of the model in `topic.toml`."""

    def logits(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return the log odds of relevance of all texts, [n]."""

    def contributions(self, text: Text) -> dict[str, float]:
        """Return what each word of a text adds to its logit."""

    def sizes(self) -> dict[str, Any]:
        """Return the sizes for `topic.toml` from which the model can be built again."""

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        """Return the weights by their names in a pack."""


class Calibration(NamedTuple):
    """The parameters that convert the logit of a model to P(relevant)."""

    slope: float
    intercept: float

    def log_odds(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated log odds."""
        return self.slope * logits + self.intercept

    def probabilities(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(relevant)."""
        return sigmoid(self.log_odds(logits))


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of log odds, without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * log_odds))


class BagOfWords:
    """A linear classifier over weighted word frequencies, scaled to length one for each text."""

    def __init__(
        self, kind: str, words: list[str], weights: NDArray[np.float32], bias: float
    ) -> None:
        self.kind = kind
        self.words = words
        self.weights = weights  # [2, V]: inverse document frequencies, coefficients
        self.bias = bias
        self._ids = {word: row for row, word in enumerate(words)}
        self._fields = np.array([*map(field_of, words)], dtype=np.int64) if kind == FIELDS else None

    @classmethod
    def of(cls, sizes: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Self:
        """Build the model that `sizes` and `tensors` describe; raise ValueError on misfit."""
        letters, weights = tensors["words"], tensors["weights"]
        count = sizes["words"]
        if weights.shape != (2, count) or weights.dtype != np.float32 or letters.dtype != np.uint8:
            msg = (
                f"weights {weights.shape!r} of {weights.dtype} and letters of {letters.dtype} must "
                f"be [2, {count}] of float32 and uint8"
            )
            raise ValueError(msg)
        words = letters.tobytes().decode().split("\n", count)
        if not len(words) == len(set(words)) == count:
            msg = f"{len(words)} words, {len(set(words))} different, must be {count} different ones"
            raise ValueError(msg)
        check_numbers("bias", sizes["bias"])
        check_numbers("weights", weights)
        return cls(sizes["kind"], words, weights, float(sizes["bias"]))

    def logits(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return the signed distance of each text from the boundary, [n]."""
        return self.logits_of_counts(map(self._counts, texts))

    def logits_of_counts(self, texts: Iterable[Mapping[str, int]]) -> NDArray[np.float64]:
        """Return what `logits` does, from how often each word occurs in a text."""
        found = [self.weighted(counts) for counts in texts]
        return np.array([self.bias + values @ self.weights[1, ids] for ids, values in found])

    def contributions(self, text: Text) -> dict[str, float]:
        """Return what each word adds to the logit."""
        return self.contributions_of_counts(self._counts(text))

    def contributions_of_counts(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Return what `contributions` does, from how often each word occurs in a text."""
        ids, values = self.weighted(counts)
        terms = values * self.weights[1, ids]
        return {self.words[row]: float(term) for row, term in zip(ids, terms, strict=True)}

    def sizes(self) -> dict[str, Any]:
        """Return what `of` needs beside the tensors."""
        return {"words": len(self.words), "bias": self.bias}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the words as letters, and the weights."""
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        return {"words": words, "weights": self.weights}

    def weighted(self, counts: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers of the known words [n], and the value of each in a text [n]."""
        known = {row: n for word, n in counts.items() if (row := self._ids.get(word)) is not None}
        ids = np.fromiter(known, np.int64, len(known))
        frequency = np.fromiter(known.values(), np.float64, len(known))
        if self.kind != SVM:
            frequency = 1 + np.log(frequency)
        weighted = frequency * self.weights[0, ids]
        if self._fields is None:
            return ids, weighted / (float(np.linalg.norm(weighted)) or 1.0)
        fields = self._fields[ids]
        lengths = np.sqrt(np.bincount(fields, weighted**2, len(FIELD_SHARES)))
        return ids, weighted * (FIELD_SHARES / np.where(lengths > 0, lengths, 1.0))[fields]

    def _counts(self, text: Text) -> Mapping[str, int]:
        return Counter(text.words) if self._fields is None else text.field_counts()
