"""BiLSTM and wide BiLSTM over frozen word vectors, mean pooled (P 3.3).

The wide BiLSTM, which is not in the paper, adds a linear model over TF-IDF, trained together with
the network (Cheng et al., Wide & Deep Learning, 2016): it can weigh words that have similar
vectors. The linear model reads the whole text; the LSTMs read the first 300 tokens.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.classifier import BLANK_LOGIT
from tres_scrapy.url.whole_file import check_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import Text, WordVectors

KIND: Final = "bilstm"
WIDE_KIND: Final = "widebilstm"
KINDS: Final = (WIDE_KIND, KIND)
HIDDEN: Final = 64
DENSE: Final = 64
MOST_UNITS: Final = 4_096  # limit of a layer size in a file
MAX_TOKENS: Final = 300
WIDE_LENGTH: Final = 10.0  # length of a TF-IDF vector: the influence of single words
BATCH_SIZE: Final = 256
BUCKET_LENGTHS: Final = (8, 32, 100)  # separates short anchors from long pages: less padding
# Matrix products of few rows round differently. Short texts are repeated to this many rows, so that
# results do not depend on the batch. For long texts this would cost too much.
LEAST_ROWS: Final = 4
SHORT: Final = 32


def encode(words: Sequence[str], vectors: WordVectors) -> NDArray[np.int64]:
    """Return the vector rows of the known words, without stop words."""
    return vectors.ids(word for word in words if word not in STOP_WORDS)


class Inputs(NamedTuple):
    """The inputs of a network for texts of similar length."""

    rows: Tensor  # [B, L, d], word vectors
    lengths: Tensor  # [B], number of rows without padding
    words: tuple[Tensor, Tensor, Tensor] | None = None  # ids [N], weights [N], starts [B]


class Network(nn.Module):
    """Two LSTMs, one reading each way, mean pooling and dense layers.

    `vocabulary` is the number of words of the wide part, 0 for none.
    """

    def __init__(
        self,
        dimension: int,
        *,
        hidden: int,
        dense: int,
        vocabulary: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ahead = nn.LSTM(dimension, hidden, batch_first=True)
        self.back = nn.LSTM(dimension, hidden, batch_first=True)
        self.dense = nn.Linear(2 * hidden, dense)
        self.logits = nn.Linear(dense, 2)
        self.idf: Tensor
        self.wide: nn.EmbeddingBag | None = None
        if vocabulary:
            # If EmbeddingBag creates the weights, it loads torch's compiler, which is slow.
            weights = torch.zeros(vocabulary, 1)
            self.wide = nn.EmbeddingBag(vocabulary, 1, mode="sum", _weight=weights)
            self.register_buffer("idf", torch.ones(vocabulary))

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the log odds of each text, [B]."""
        rows, lengths, words = inputs
        step = torch.arange(rows.shape[1])
        mask = (step < lengths[:, None]).unsqueeze(2)  # [B, L, 1]
        rows = self.dropout(rows)
        # Only the real rows are reversed, so that padding stays last. The mean needs no order: the
        # states stay reversed. Packed sequences are slower on mixed lengths.
        turn = (lengths[:, None] - 1 - step).clamp(min=0).unsqueeze(2).expand_as(rows)
        ahead, _ = self.ahead(rows)
        back, _ = self.back(rows.gather(1, turn))
        states = torch.cat([ahead, back], dim=2) * mask  # [B, L, 2H]
        seen = torch.relu(self.dense(self.dropout(states.sum(dim=1) / lengths[:, None])))
        scores = self.logits(self.dropout(seen))
        log_odds: Tensor = scores[:, 1] - scores[:, 0]  # of a softmax over two classes
        if self.wide is not None and words is not None:
            ids, weights, starts = words
            log_odds = log_odds + self.wide(ids, starts, per_sample_weights=weights)[:, 0]
        return log_odds


class BiLstm:
    """BiLSTM (the paper's classifier) or wide BiLSTM, depending on the network."""

    def __init__(self, network: Network, vectors: WordVectors) -> None:
        self.network = network.eval()
        self.vectors = vectors
        self._matrix = torch.from_numpy(vectors.matrix)
        self._idf = network.idf.numpy() if network.wide is not None else None

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, Any],
        tensors: Mapping[str, NDArray[Any]],
        vectors: WordVectors,
    ) -> Self:
        """Build the model that `sizes` and `tensors` describe; raise an error on misfit."""
        for name in ("hidden", "dense"):
            if type(sizes[name]) is not int or not 1 <= sizes[name] <= MOST_UNITS:
                msg = f"{name} {sizes[name]!r} must be a whole number from 1 to {MOST_UNITS}"
                raise ValueError(msg)
        for name, tensor in tensors.items():
            if tensor.dtype != np.float32:
                raise ValueError(f"{name} is {tensor.dtype}, must be float32")
            check_numbers(name, tensor)
        with torch.device("meta"):  # takes no memory before the tensors are checked
            network = Network(
                vectors.matrix.shape[1],
                hidden=sizes["hidden"],
                dense=sizes["dense"],
                vocabulary=len(vectors) if sizes["kind"] == WIDE_KIND else 0,
            )
        network.load_state_dict(
            {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}, assign=True
        )
        return cls(network, vectors)

    @property
    def kind(self) -> str:
        return KIND if self._idf is None else WIDE_KIND

    @torch.inference_mode()
    def logits(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return the log odds of each text, [n]; BLANK_LOGIT without a known word."""
        result = np.full(len(texts), BLANK_LOGIT)
        for rows, scores in self.batches(texts):
            result[rows] = scores.numpy()
        return result

    def batches(self, texts: Sequence[Text]) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        """Yield indices of texts of similar length, and their log odds as a tensor."""
        encoded = [encode(text.words, self.vectors) for text in texts]
        for rows in buckets([min(len(ids), MAX_TOKENS) for ids in encoded]):
            short = len(encoded[int(rows[-1])]) <= SHORT  # the last is the longest
            read = np.resize(rows, max(len(rows), LEAST_ROWS if short else 1))
            inputs = self._inputs([encoded[row] for row in read.tolist()])
            yield rows, self.network(inputs)[: len(rows)]

    def contributions(self, text: Text) -> dict[str, float]:
        """Return gradient times input of each word, summed over its occurrences."""
        ids = encode(text.words, self.vectors)
        added: defaultdict[str, float] = defaultdict(float)
        if not len(ids):
            return dict(added)
        inputs = self._inputs([ids])
        rows = inputs.rows.requires_grad_()
        (slope,) = torch.autograd.grad(self.network(inputs).sum(), rows)
        for row, value in zip(ids, (slope * rows)[0].sum(dim=1).tolist(), strict=False):
            added[self.vectors.words[row]] += value
        if self.network.wide is not None and inputs.words is not None:
            numbers, weights, _ = inputs.words
            terms = (self.network.wide.weight[numbers, 0] * weights).tolist()
            for row, value in zip(numbers.tolist(), terms, strict=True):
                added[self.vectors.words[row]] += value
        return dict(added)

    def sizes(self) -> dict[str, Any]:
        network = self.network
        return {
            "hidden": network.ahead.hidden_size,
            "dense": network.dense.out_features,
            "tokens": MAX_TOKENS,
        }

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {name: tensor.numpy() for name, tensor in self.network.state_dict().items()}

    def _inputs(self, encoded: Sequence[NDArray[np.int64]]) -> Inputs:
        ids = [torch.from_numpy(row[:MAX_TOKENS]) for row in encoded]
        words = None if self._idf is None else bag_of(encoded, self._idf)
        lengths = torch.tensor([len(row) for row in ids])
        return Inputs(self._matrix[pad_sequence(ids, batch_first=True)], lengths, words)


def bag_of(
    encoded: Sequence[NDArray[np.int64]], idf: NDArray[np.float32]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return distinct ids, TF-IDF weights (norm WIDE_LENGTH for each text), starts of texts."""
    lengths = np.array([*map(len, encoded)])
    texts = np.repeat(np.arange(len(encoded)), lengths)
    words = len(idf)
    found, count = np.unique(texts * words + np.concatenate(encoded), return_counts=True)
    text, ids = np.divmod(found, words)
    weights = (1 + np.log(count)) * idf[ids]
    norms = np.sqrt(np.bincount(text, weights * weights, len(encoded)))
    weights = (WIDE_LENGTH * weights / np.where(norms, norms, 1)[text]).astype(np.float32)
    starts = np.searchsorted(text, np.arange(len(encoded)))
    return torch.from_numpy(ids), torch.from_numpy(weights), torch.from_numpy(starts)


def buckets(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the non-empty texts in batches of similar length."""
    sizes = np.array(lengths, dtype=np.int64)
    bucket = np.digitize(sizes, BUCKET_LENGTHS, right=True)
    for number in np.unique(bucket[sizes > 0]):
        rows = np.flatnonzero((bucket == number) & (sizes > 0))
        rows = rows[np.argsort(sizes[rows], kind="stable")]
        for start in range(0, len(rows), BATCH_SIZE):
            yield rows[start : start + BATCH_SIZE]
