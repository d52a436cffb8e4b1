"""What all reward models share, Platt scaling, and linear models over bags of words (P 3.3)."""

from __future__ import annotations

from collections import Counter
from math import log
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

import numpy as np

from tres_scrapy.page.place import WORD
from tres_scrapy.url.whole_file import check_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

MAX_WORDS: Final = 1_000  # of a page that a model reads
# the log odds of a text without a known word: one in five texts of a training batch is relevant
BLANK_LOGIT: Final = log(1 / 4)
SVM: Final = "svm"
TFIDF: Final = "tfidf"
LINEAR_KINDS: Final = (SVM, TFIDF)


class Text(NamedTuple):
    """The lower-case words of a text in reading order, and the URL of its page."""

    words: Sequence[str]
    url: str = ""

    @classmethod
    def of(cls, text: str, url: str = "") -> Self:
        """Return the first MAX_WORDS words of a text.

        A `url` without "://", such as a file name, is ignored.
        """
        found = WORD.findall(text.lower())[:MAX_WORDS]
        return cls([*map(intern, found)], url if "://" in url else "")


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
        return self.logits_of_counts(Counter(text.words) for text in texts)

    def logits_of_counts(self, texts: Iterable[Mapping[str, int]]) -> NDArray[np.float64]:
        """Return what `logits` does, from how often each word occurs in a text."""
        return np.array([self.bias + self._terms(counts)[1].sum() for counts in texts])

    def contributions(self, text: Text) -> dict[str, float]:
        """Return what each word adds to the logit."""
        ids, terms = self._terms(Counter(text.words))
        return {self.words[row]: float(term) for row, term in zip(ids, terms, strict=True)}

    def sizes(self) -> dict[str, Any]:
        """Return what `of` needs beside the tensors."""
        return {"words": len(self.words), "bias": self.bias}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the words as letters, and the weights."""
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        return {"words": words, "weights": self.weights}

    def _terms(self, counts: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        known = {row: n for word, n in counts.items() if (row := self._ids.get(word)) is not None}
        ids = np.fromiter(known, np.int64, len(known))
        frequency = np.fromiter(known.values(), np.float64, len(known))
        if self.kind == TFIDF:
            frequency = 1 + np.log(frequency)
        weighted = frequency * self.weights[0, ids]
        length = float(np.linalg.norm(weighted)) or 1.0
        return ids, weighted / length * self.weights[1, ids]
