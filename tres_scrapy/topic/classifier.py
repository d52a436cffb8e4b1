"""The reward model: a BiLSTM over frozen word vectors, mean pooled (P 3.3, P1 3.4)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tres_scrapy.topic.text import STOP_WORDS, WORD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.vectors import WordVectors

MAX_TOKENS: Final = 300
BATCH_SIZE: Final = 256
BUCKET_LENGTHS: Final = (8, 32, 100)  # anchors are short, pages long: neither pads the other


def encode(text: str, vectors: WordVectors, *, limit: int = MAX_TOKENS) -> NDArray[np.int64]:
    """Return the vector rows of the first `limit` known words that are no stop words."""
    words = (match.group() for match in WORD.finditer(text.lower()))
    known = (word for word in words if word in vectors and word not in STOP_WORDS)
    return vectors.ids(islice(known, limit))


class Network(nn.Module):
    """Two LSTMs, one reading each way, then mean pooling, a dense layer and two logits."""

    def __init__(self, dimension: int, *, hidden: int, dense: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ahead = nn.LSTM(dimension, hidden, batch_first=True)
        self.back = nn.LSTM(dimension, hidden, batch_first=True)
        self.dense = nn.Linear(2 * hidden, dense)
        self.logits = nn.Linear(dense, 2)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Return logits [B, 2] of word vectors [B, L, d] of which the first `lengths` are real."""
        step = torch.arange(rows.shape[1])
        mask = (step < lengths[:, None]).unsqueeze(2)  # [B, L, 1]
        rows = self.dropout(rows)
        # Turned round before the padding, a row never meets it; the mean needs no order, so the
        # states stay turned. Packed sequences would cost more on mixed lengths.
        turn = (lengths[:, None] - 1 - step).clamp(min=0).unsqueeze(2).expand_as(rows)
        ahead, _ = self.ahead(rows)
        back, _ = self.back(rows.gather(1, turn))
        states = torch.cat([ahead, back], dim=2) * mask  # [B, L, 2H]
        pooled = self.dropout(states.sum(dim=1) / lengths[:, None])
        scores: Tensor = self.logits(self.dropout(torch.relu(self.dense(pooled))))
        return scores


class Classifier:
    """P(relevant) of texts, in one call for pages and anchors alike."""

    def __init__(self, network: Network, vectors: WordVectors, base_rate: float) -> None:
        self.network = network.eval()
        self.vectors = vectors
        self.base_rate = base_rate
        self._matrix = torch.from_numpy(vectors.matrix)

    def logits(self, texts: Sequence[NDArray[np.int64]]) -> Tensor:
        """Return the network's logits [B, 2] for encoded texts of one word or more."""
        lengths = torch.tensor([len(text) for text in texts])
        rows = pad_sequence([torch.from_numpy(text) for text in texts], batch_first=True)
        scores: Tensor = self.network(self._matrix[rows], lengths)
        return scores

    @torch.inference_mode()
    def probabilities(self, texts: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Return P(relevant) of each encoded text, the base rate where no word is known."""
        result = np.full(len(texts), self.base_rate, dtype=np.float32)
        for rows in buckets([len(text) for text in texts]):
            scores = self.logits([texts[row] for row in rows])
            result[rows] = torch.softmax(scores, dim=1)[:, 1].numpy()
        return result


def buckets(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the non-empty texts in batches of similar length."""
    sizes = np.array(lengths, dtype=np.int64)
    bucket = np.digitize(sizes, BUCKET_LENGTHS, right=True)
    for number in np.unique(bucket[sizes > 0]):
        rows = np.flatnonzero((bucket == number) & (sizes > 0))
        rows = rows[np.argsort(sizes[rows], kind="stable")]
        for start in range(0, len(rows), BATCH_SIZE):
            yield rows[start : start + BATCH_SIZE]
