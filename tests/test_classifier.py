from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tres_scrapy.topic.classifier import BATCH_SIZE, Classifier, Network, buckets, encode
from tres_scrapy.topic.vectors import WordVectors

WORDS = ["the", "cheese", "wine", "disk", "cable", "goal"]


def make_classifier(seed: int = 0, dropout: float = 0.0) -> Classifier:
    matrix = np.random.default_rng(seed).normal(size=(6, 5)).astype(np.float32)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Network(5, hidden=4, dense=3, dropout=dropout)
    return Classifier(network, WordVectors(WORDS, matrix), base_rate=0.25)


def test_encoding_drops_stop_words_and_unknown_words() -> None:
    vectors = make_classifier().vectors
    assert encode("The WINE, the unknown cheese!", vectors).tolist() == [2, 1]


def test_encoding_keeps_the_first_300_known_words() -> None:
    """P 3.3: L = 300."""
    vectors = make_classifier().vectors
    text = "unknown the " * 400 + "disk " * 299 + "goal " * 9
    assert encode(text, vectors).tolist() == [3] * 299 + [5]
    assert encode(text, vectors, limit=2).tolist() == [3, 3]


def test_the_network_is_a_bilstm_with_masked_mean_pooling() -> None:
    """P 3.3: both directions of each text alone, without padding, averaged over its tokens."""
    network = make_classifier().network
    both = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
    state = dict(network.ahead.state_dict())
    state |= {f"{name}_reverse": value for name, value in network.back.state_dict().items()}
    both.load_state_dict(state)
    texts = [torch.randn(n, 5, generator=torch.Generator().manual_seed(n)) for n in (1, 3, 7)]
    rows = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=9.0)
    with torch.no_grad():
        scores = network(rows, torch.tensor([1, 3, 7]))
        pooled = torch.stack([both(text)[0].mean(dim=0) for text in texts])
        expected = network.logits(torch.relu(network.dense(pooled)))
    assert torch.allclose(scores, expected, atol=1e-6)


def test_a_text_scores_alike_alone_and_among_others() -> None:
    classifier = make_classifier()
    rng = np.random.default_rng(4)
    texts = [rng.integers(6, size=n) for n in (1, 300, 8, 2, 0, 33, 9, 150)]
    together = classifier.probabilities(texts)
    alone = np.concatenate([classifier.probabilities([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-6)
    assert len(set(together.tolist())) == len(texts)


def test_a_text_without_known_words_has_the_base_rate() -> None:
    probabilities = make_classifier().probabilities([np.empty(0, np.int64), np.array([1])])
    assert probabilities[0] == 0.25
    assert probabilities.dtype == np.float32


def test_no_texts_have_no_probabilities() -> None:
    assert make_classifier().probabilities([]).shape == (0,)


def test_scoring_uses_no_dropout() -> None:
    classifier = make_classifier(dropout=0.5)
    texts = [np.array([1, 2, 3])] * 5
    assert len(set(classifier.probabilities(texts).tolist())) == 1


@given(st.lists(st.integers(0, 300), max_size=2 * BATCH_SIZE))
def test_buckets_hold_every_text_with_words_once(lengths: list[int]) -> None:
    batches = list(buckets(lengths))
    rows = np.concatenate([np.empty(0, np.int64), *batches]).tolist()
    assert sorted(rows) == [row for row, length in enumerate(lengths) if length]
    assert all(0 < len(batch) <= BATCH_SIZE for batch in batches)


def test_anchors_are_not_padded_to_the_length_of_pages() -> None:
    batches = [rows.tolist() for rows in buckets([300, 2, 8, 290, 1])]
    assert batches == [[4, 1, 2], [3, 0]]
