from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tres_scrapy.topic.bilstm import (
    BATCH_SIZE,
    KINDS,
    WIDE_LENGTH,
    BiLstm,
    Inputs,
    Network,
    buckets,
    encode,
)
from tres_scrapy.topic.classifier import BLANK_LOGIT, Text, WordVectors

WORDS = ["the", "cheese", "wine", "disk", "cable", "goal"]


def make_classifier(kind: str = "bilstm", *, dropout: float = 0.0) -> BiLstm:
    matrix = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    sizes = {"vocabulary": 6} if kind == "widebilstm" else {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(5, hidden=4, dense=4, dropout=dropout, **sizes)
        if network.wide is not None:
            nn.init.normal_(network.wide.weight)
            network.idf.copy_(torch.rand(6) + 0.5)
    return BiLstm(network, WordVectors(WORDS, matrix))


def texts_of(*lengths: int) -> list[Text]:
    rng = np.random.default_rng(4)
    return [Text([WORDS[row] for row in rng.integers(1, 6, size=n)]) for n in lengths]


def test_encoding_drops_unknown_words() -> None:
    vectors = make_classifier().vectors
    assert encode(["the", "wine", "unknown", "cheese"], vectors).tolist() == [2, 1]


def test_first_300_words_are_read() -> None:
    """P 3.3: L = 300; the wide part reads on."""
    words = ["unknown", "the"] * 100 + ["disk"] * 299 + ["goal"]
    texts = [Text(words), Text([*words, "wine"])]
    short, long = make_classifier().logits(texts)
    assert short == pytest.approx(long, abs=1e-6)
    short, long = make_classifier("widebilstm").logits(texts)
    assert abs(short - long) > 1e-3


def test_network_equals_plain_bilstm() -> None:
    """P 3.3: both directions of each text, without padding, averaged over its tokens."""
    network = make_classifier().network
    both = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
    state = dict(network.ahead.state_dict())
    state |= {f"{name}_reverse": value for name, value in network.back.state_dict().items()}
    both.load_state_dict(state)
    texts = [torch.randn(n, 5, generator=torch.Generator().manual_seed(n)) for n in (1, 3, 7)]
    rows = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=9.0)
    with torch.no_grad():
        scores = network(Inputs(rows, torch.tensor([1, 3, 7])))
        pooled = torch.stack([both(text)[0].mean(dim=0) for text in texts])
        expected = network.logits(torch.relu(network.dense(pooled)))
    assert torch.allclose(scores, expected[:, 1] - expected[:, 0], atol=1e-6)


def test_wide_part_adds_word_weights() -> None:
    wide, deep = make_classifier("widebilstm"), make_classifier()
    deep.network.load_state_dict(
        {k: v for k, v in wide.network.state_dict().items() if k in deep.network.state_dict()}
    )
    text = Text(["disk", "goal", "disk"])
    assert wide.network.wide is not None
    tfidf = np.array([(1 + np.log(2)) * wide.network.idf[3], wide.network.idf[5]])
    weights = wide.network.wide.weight.detach().numpy()[[3, 5], 0]
    added = WIDE_LENGTH * tfidf / np.linalg.norm(tfidf) @ weights
    assert wide.logits([text])[0] - deep.logits([text])[0] == pytest.approx(added, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_does_not_change_score(kind: str) -> None:
    classifier = make_classifier(kind)
    texts = texts_of(1, 300, 8, 2, 0, 33, 9, 150)
    together = classifier.logits(texts)
    alone = np.concatenate([classifier.logits([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    assert len(set(together.tolist())) == len(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_bilstm_survives_sizes_and_tensors(kind: str) -> None:
    classifier = make_classifier(kind)
    facts = {"kind": classifier.kind} | classifier.sizes()
    again = BiLstm.of(facts, classifier.tensors(), classifier.vectors)
    assert again.kind == kind
    assert again.logits(texts_of(5, 40)).tolist() == classifier.logits(texts_of(5, 40)).tolist()


def test_text_without_words_is_blank() -> None:
    logits = make_classifier().logits([Text([]), Text(["unknown"]), Text(["cheese"])])
    assert logits[:2].tolist() == [BLANK_LOGIT] * 2
    assert logits[2] != BLANK_LOGIT


def test_no_texts_have_no_logits() -> None:
    assert make_classifier().logits([]).shape == (0,)


def test_scoring_uses_no_dropout() -> None:
    classifier = make_classifier("widebilstm", dropout=0.5)
    assert len(set(classifier.logits(texts_of(3) * 5).tolist())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_follow_the_words(kind: str) -> None:
    """The gradient along the input predicts the effect of a small change of the vector."""
    classifier = make_classifier(kind)
    text = Text(["disk", "goal", "unknown", "disk"])
    added = classifier.contributions(text)
    assert added.keys() == {"disk", "goal"}
    assert classifier.contributions(Text(["unknown"])) == {}
    # a small scaling of a word's vectors changes the deep logit in proportion
    deep = make_classifier() if kind == "bilstm" else None
    if deep is not None:
        step = 1e-3
        before = deep.logits([text])[0]
        deep._matrix[3] *= 1 + step
        assert (deep.logits([text])[0] - before) / step == pytest.approx(added["disk"], rel=0.05)


@given(st.lists(st.integers(0, 300), max_size=2 * BATCH_SIZE))
def test_buckets_hold_every_text(lengths: list[int]) -> None:
    batches = list(buckets(lengths))
    rows = np.concatenate([np.empty(0, np.int64), *batches]).tolist()
    assert sorted(rows) == [row for row, length in enumerate(lengths) if length]
    assert all(0 < len(batch) <= BATCH_SIZE for batch in batches)


def test_anchors_need_little_padding() -> None:
    batches = [rows.tolist() for rows in buckets([300, 2, 8, 290, 1])]
    assert batches == [[4, 1, 2], [3, 0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beside", [0, 1, 2, 5, 30])
def test_short_neighbour_does_not_matter(kind: str, beside: int) -> None:
    """The batch in which an anchor is judged differs from process to process."""
    classifier = make_classifier(kind)
    text, *others = texts_of(4, *range(1, 31))
    assert classifier.logits([text, *others[:beside]])[0] == classifier.logits([text, *others])[0]
