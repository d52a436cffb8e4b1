"""BiLSTM, KwBiLSTM and wide BiLSTM over frozen word vectors, mean pooled (P 3.3, P1 3.4).

The wide one, ours, adds a linear model over the TF-IDF of the same words, trained with the rest
(Cheng et al., Wide & Deep Learning, 2016): vectors know what words mean, it knows which of them.
It reads the whole text, the LSTMs the first 300 tokens.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tres_scrapy.page.file import check_numbers
from tres_scrapy.page.text import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import Text
    from tres_scrapy.topic.keyword import KeywordSet
    from tres_scrapy.topic.vectors import WordVectors

KIND: Final = "bilstm"
KEYWORD_KIND: Final = "kwbilstm"
WIDE_KIND: Final = "widebilstm"
KINDS: Final = (WIDE_KIND, KIND, KEYWORD_KIND)
HIDDEN: Final = 64
DENSE: Final = 64
MOST_UNITS: Final = 4_096  # of a layer that a file describes
MAX_TOKENS: Final = 300
# the log odds of a text without a known word: one in five texts of a training batch is relevant
BLANK_LOGIT: Final = float(np.log(1 / 4))
WIDE_LENGTH: Final = 10.0  # of a text's TF-IDF: how loud a few words may be
LONG_KEYWORDS: Final = 3  # LK: density, keyphrase found, keyword in the URL
BATCH_SIZE: Final = 256
BUCKET_LENGTHS: Final = (8, 32, 100)  # anchors are short, pages long: neither pads the other
# A product of few rows rounds in another way. Anchors are padded to this many, so that it does not
# matter what else is judged with them; with long texts it would cost too much.
LEAST_ROWS: Final = 4
SHORT: Final = 32


def encode(words: Sequence[str], vectors: WordVectors) -> NDArray[np.int64]:
    """Return the vector rows of the known words that are no stop words."""
    return vectors.ids(word for word in words if word not in STOP_WORDS)


def evidence(text: Text, keywords: KeywordSet, length: int) -> NDArray[np.float32]:
    """Return EK, whose i-th of `length` numbers says that i keywords or more were found, and LK."""
    count = keywords.count(text.words)
    found = np.zeros(length + LONG_KEYWORDS, dtype=np.float32)
    found[: min(count, length)] = 1
    density = count / max(1, len(text.words))
    found[length:] = density, keywords.has_phrase(text.words), keywords.in_url(text.url)
    return found


class Inputs(NamedTuple):
    """What a network reads of texts of similar length."""

    rows: Tensor  # [B, L, d], word vectors
    lengths: Tensor  # [B], how many of them are real
    found: Tensor | None = None  # [B, EK + LK]
    words: tuple[Tensor, Tensor, Tensor] | None = None  # ids [N], weights [N], starts [B]


class Network(nn.Module):
    """Two LSTMs, one reading each way, mean pooling and dense layers.

    With `keywords`, the length of EK, the keyword inputs join after the first dense layer and LK
    once more after the second, as in KwBiLSTM. With `vocabulary` there is a weight for each word.
    """

    def __init__(
        self,
        dimension: int,
        *,
        hidden: int,
        dense: int,
        keywords: int = 0,
        vocabulary: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.keywords = keywords
        self.dropout = nn.Dropout(dropout)
        self.ahead = nn.LSTM(dimension, hidden, batch_first=True)
        self.back = nn.LSTM(dimension, hidden, batch_first=True)
        self.dense = nn.Linear(2 * hidden, dense)
        self.mixed: nn.Linear | None = None
        if keywords:
            self.mixed = nn.Linear(dense + keywords + LONG_KEYWORDS, dense // 2)
            dense = dense // 2 + LONG_KEYWORDS
        self.logits = nn.Linear(dense, 2)
        self.idf: Tensor
        self.wide: nn.EmbeddingBag | None = None
        if vocabulary:
            # Weights that EmbeddingBag makes would load torch's compiler, which takes long.
            weights = torch.zeros(vocabulary, 1)
            self.wide = nn.EmbeddingBag(vocabulary, 1, mode="sum", _weight=weights)
            self.register_buffer("idf", torch.ones(vocabulary))

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the log odds of each text, [B]."""
        rows, lengths, found, words = inputs
        step = torch.arange(rows.shape[1])
        mask = (step < lengths[:, None]).unsqueeze(2)  # [B, L, 1]
        rows = self.dropout(rows)
        # Turned round before the padding, a row never meets it; the mean needs no order, so the
        # states stay turned. Packed sequences would cost more on mixed lengths.
        turn = (lengths[:, None] - 1 - step).clamp(min=0).unsqueeze(2).expand_as(rows)
        ahead, _ = self.ahead(rows)
        back, _ = self.back(rows.gather(1, turn))
        states = torch.cat([ahead, back], dim=2) * mask  # [B, L, 2H]
        seen = torch.relu(self.dense(self.dropout(states.sum(dim=1) / lengths[:, None])))
        if self.mixed is not None and found is not None:
            seen = torch.relu(self.mixed(torch.cat([self.dropout(seen), found], dim=1)))
            seen = torch.cat([seen, found[:, self.keywords :]], dim=1)
        scores = self.logits(self.dropout(seen))
        log_odds: Tensor = scores[:, 1] - scores[:, 0]  # of a softmax of two
        if self.wide is not None and words is not None:
            ids, weights, starts = words
            log_odds = log_odds + self.wide(ids, starts, per_sample_weights=weights)[:, 0]
        return log_odds


class BiLstm:
    """The classifier of the paper, KwBiLSTM or the wide BiLSTM, as its network has it."""

    def __init__(
        self, network: Network, vectors: WordVectors, keywords: KeywordSet | None = None
    ) -> None:
        self.network = network.eval()
        self.vectors = vectors
        self.keywords = keywords
        self._matrix = torch.from_numpy(vectors.matrix)
        self._idf = network.idf.numpy() if network.wide is not None else None

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        vectors: WordVectors,
        keywords: KeywordSet,
    ) -> Self:
        """Build the model that `sizes` and `tensors` describe; raise an error if they differ."""
        for name, least in (("hidden", 1), ("dense", 1), ("keywords", 0)):
            if type(sizes[name]) is not int or not least <= sizes[name] <= MOST_UNITS:
                msg = f"{name} {sizes[name]!r} must be a whole number from {least} to {MOST_UNITS}"
                raise ValueError(msg)
        for name, tensor in tensors.items():
            if tensor.dtype != torch.float32:
                msg = f"{name} is {tensor.dtype}, it must be float32"
                raise ValueError(msg)
            check_numbers(name, tensor.numpy())
        with torch.device("meta"):  # no memory is taken before the tensors are known to fit
            network = Network(
                vectors.matrix.shape[1],
                hidden=sizes["hidden"],
                dense=sizes["dense"],
                keywords=sizes["keywords"],
                vocabulary=len(vectors) if sizes["kind"] == WIDE_KIND else 0,
            )
        network.load_state_dict(dict(tensors), assign=True)
        return cls(network, vectors, keywords)

    @property
    def kind(self) -> str:
        if self._idf is not None:
            return WIDE_KIND
        return KEYWORD_KIND if self.network.keywords else KIND

    @torch.inference_mode()
    def logits(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return the log odds of each text, [n]; a text without a known word is blank."""
        result = np.full(len(texts), BLANK_LOGIT)
        for rows, scores in self.batches(texts):
            result[rows] = scores.numpy()
        return result

    def batches(self, texts: Sequence[Text]) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        """Yield the indices of texts of similar length and their log odds as tensors."""
        encoded = [encode(text.words, self.vectors) for text in texts]
        for rows in buckets([min(len(ids), MAX_TOKENS) for ids in encoded]):
            short = len(encoded[int(rows[-1])]) <= SHORT  # the last is the longest
            read = np.resize(rows, max(len(rows), LEAST_ROWS if short else 1))
            inputs = self._inputs(
                [encoded[row] for row in read.tolist()], [texts[row] for row in read.tolist()]
            )
            yield rows, self.network(inputs)[: len(rows)]

    def contributions(self, text: Text) -> dict[str, float]:
        """Return gradient times input of each word, summed over its places."""
        ids = encode(text.words, self.vectors)
        added: defaultdict[str, float] = defaultdict(float)
        if not len(ids):
            return dict(added)
        inputs = self._inputs([ids], [text])
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
            "keywords": network.keywords,
            "tokens": MAX_TOKENS,
        }

    def tensors(self) -> dict[str, Tensor]:
        return self.network.state_dict()

    def _inputs(self, encoded: Sequence[NDArray[np.int64]], texts: Sequence[Text]) -> Inputs:
        ids = [torch.from_numpy(row[:MAX_TOKENS]) for row in encoded]
        found = words = None
        if self.keywords is not None and self.network.keywords:
            each = [evidence(text, self.keywords, self.network.keywords) for text in texts]
            found = torch.from_numpy(np.stack(each))
        if self._idf is not None:
            words = bag_of(encoded, self._idf)
        lengths = torch.tensor([len(row) for row in ids])
        return Inputs(self._matrix[pad_sequence(ids, batch_first=True)], lengths, found, words)


def bag_of(
    encoded: Sequence[NDArray[np.int64]], idf: NDArray[np.float32]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return distinct ids, TF-IDF weights of length WIDE_LENGTH a text, and where texts start."""
    ids, weights = [], []
    for row in encoded:
        distinct, count = np.unique(row, return_counts=True)
        weight = (1 + np.log(count)) * idf[distinct]
        ids.append(distinct)
        weights.append(WIDE_LENGTH * weight / (np.linalg.norm(weight) or 1))
    starts = np.cumsum([0, *map(len, ids[:-1])])
    return (
        torch.from_numpy(np.concatenate(ids)),
        torch.from_numpy(np.concatenate(weights).astype(np.float32)),
        torch.from_numpy(starts),
    )


def buckets(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the non-empty texts in batches of similar length."""
    sizes = np.array(lengths, dtype=np.int64)
    bucket = np.digitize(sizes, BUCKET_LENGTHS, right=True)
    for number in np.unique(bucket[sizes > 0]):
        rows = np.flatnonzero((bucket == number) & (sizes > 0))
        rows = rows[np.argsort(sizes[rows], kind="stable")]
        for start in range(0, len(rows), BATCH_SIZE):
            yield rows[start : start + BATCH_SIZE]
