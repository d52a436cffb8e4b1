"""Texts and their words, the vectors of words, Platt scaling, and linear models (P 2.3, 3.3).

A model of kind FIELDS reads three fields of a page: its title and text, its title and the texts of
its links, and its URL. A word of another field than the first has a prefix, as in `link:soup`.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from math import log
from operator import le
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self
from urllib.parse import unquote

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from tres_scrapy.page.place import tokenise
from tres_scrapy.url.message import TresError, reason
from tres_scrapy.url.whole_file import check_numbers, whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray


MAX_WORDS: Final = 1_000  # of a page that a model reads
# the log odds of a text without a known word: one in five texts of a training batch is relevant
BLANK_LOGIT: Final = log(1 / 4)
SVM: Final = "svm"
TFIDF: Final = "tfidf"
LINEAR_KINDS: Final = (SVM, TFIDF)  # that `tres train` fits
FIELDS: Final = "fields"  # of a topic with answers
MOST_AROUND: Final = 1_500  # words of title and links that a model reads
LINK: Final = "link:"
URL: Final = "url:"
FIELD_SHARES: Final = np.array([1.0, 0.5, 0.5])  # the length of text, links, URL in the model


class Text(NamedTuple):
    """The lower-case words of a text in reading order, and the URL of its page.

    `around` holds the words of its title and links, which only some models read.
    """

    words: Sequence[str]
    url: str = ""
    around: Sequence[str] = ()

    @classmethod
    def of(cls, text: str, url: str = "") -> Self:
        """Return the first MAX_WORDS words of a text.

        A `url` without "://", such as a file name, is ignored.
        """
        found = tokenise(text)[:MAX_WORDS]
        return cls([*map(intern, found)], url if "://" in url else "")

    @classmethod
    def of_page(cls, title: str, text: str, url: str, links: Iterable[str]) -> Self:
        """Return what a model may read of a page; `links` are the texts of its links."""
        around = tokenise(" ".join([title, *links]))[:MOST_AROUND]
        return cls.of(f"{title} {text}", url)._replace(around=around)

    def counts(self) -> Counter[str]:
        """Return how often each word occurs, by field."""
        counts = Counter(self.words)
        counts.update(LINK + word for word in self.around)
        path = unquote(self.url.partition("://")[2].partition("/")[2])
        counts.update(URL + word for word in tokenise(path))
        return counts


def is_of_text(word: str) -> bool:
    """Return whether a word of a model belongs to the text, not to links or URL."""
    return ":" not in word


def field_of(word: str) -> int:
    """Return the field that a word of a model belongs to: 0 the text, 1 links, 2 the URL."""
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
        field = [*map(field_of, words)] if kind == FIELDS else []
        self._fields = np.array(field, dtype=np.int64) if kind == FIELDS else None

    @classmethod
    def of(cls, sizes: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Self:
        """Build the model that `sizes` and `tensors` describe; raise ValueError on misfit."""
        letters, weights = tensors["words"], tensors["weights"]
        count = sizes["words"]
        if weights.shape != (2, count) or weights.dtype != np.float32 or letters.dtype != np.uint8:
            raise ValueError(
                f"weights {weights.shape!r} of {weights.dtype} and letters of {letters.dtype} must "
                f"be [2, {count}] of float32 and uint8"
            )
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
        return np.array(
            [self.bias + (values * self.weights[1, ids]).sum() for ids, values in found]
        )

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
        return Counter(text.words) if self._fields is None else text.counts()


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
            raise ValueError(
                f"matrix has shape {matrix.shape!r}, must be [{MOST_WORDS}, {MOST_DIMENSIONS}] "
                "or smaller and not empty: keep the most frequent words"
            )
        self.words = words
        self.matrix = matrix  # [V, d]
        self._ids = {word: row for row, word in enumerate(words)}
        if len(self._ids) < len(words):
            raise ValueError(f"{len(words)} words, {len(self._ids)} different: no word may repeat")

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
            raise TresError(
                f"{path.name!r} is not a word vector file: {reason(error)}; make one with "
                "`tres vectors`"
            ) from error


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
