"""Linear models over bags of words, as a comparison for the BiLSTM (P 3.3, Table 1)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import torch

from tres_scrapy.url.whole_file import check_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from tres_scrapy.topic.classifier import Text

SVM: Final = "svm"
TFIDF: Final = "tfidf"
KINDS: Final = (SVM, TFIDF)


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
    def of(cls, sizes: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Self:
        """Build the model that `sizes` and `tensors` describe; raise ValueError on misfit."""
        letters, weights = tensors["words"].numpy(), tensors["weights"].numpy()
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
        return self.counted(Counter(text.words) for text in texts)

    def counted(self, texts: Iterable[Mapping[str, int]]) -> NDArray[np.float64]:
        """Return what `logits` does, from how often each word occurs in a text."""
        return np.array([self.bias + self._terms(counts)[1].sum() for counts in texts])

    def contributions(self, text: Text) -> dict[str, float]:
        """Return what each word adds to the logit."""
        ids, terms = self._terms(Counter(text.words))
        return {self.words[row]: float(term) for row, term in zip(ids, terms, strict=True)}

    def sizes(self) -> dict[str, Any]:
        return {"words": len(self.words), "bias": self.bias}

    def tensors(self) -> dict[str, Tensor]:
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        return {"words": torch.tensor(words), "weights": torch.from_numpy(self.weights)}

    def _terms(self, counts: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        known = {row: n for word, n in counts.items() if (row := self._ids.get(word)) is not None}
        ids = np.fromiter(known, np.int64, len(known))
        frequency = np.fromiter(known.values(), np.float64, len(known))
        if self.kind == TFIDF:
            frequency = 1 + np.log(frequency)
        weighted = frequency * self.weights[0, ids]
        length = float(np.linalg.norm(weighted)) or 1.0
        return ids, weighted / length * self.weights[1, ids]
