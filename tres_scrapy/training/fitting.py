"""Fitting of networks to windows, titles and snippets, and of linear models (P 3.3)."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch import nn
from tqdm import tqdm

from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.bilstm import (
    DENSE,
    HIDDEN,
    WIDE_KIND,
    WIDE_LENGTH,
    BiLstm,
    Network,
    bag_of,
    encode,
)
from tres_scrapy.topic.classifier import SVM, TFIDF, BagOfWords
from tres_scrapy.training.sample import IRRELEVANT_PER_RELEVANT, Example, Sampler
from tres_scrapy.training.validation import Epoch, best_epoch, best_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import WordVectors

DROPOUT: Final = 0.3
LEARNING_RATE: Final = 2e-3
WIDE_LEARNING_RATE: Final = 1e-2
WIDE_DECAY: Final = 1e-4
SHARE: Final = 0.5  # weight of the regression's log odds
PENALTY: Final = 10.0  # C of a regression over vectors of length one
MAX_EPOCHS: Final = 6
PATIENCE: Final = 4
MIN_DOCUMENTS: Final = 3  # that hold a word of a linear model
MAX_WORDS: Final = {SVM: 5_000, TFIDF: 50_000}


def fit_bag(kind: str, examples: Sequence[Example]) -> BagOfWords:
    """Fit a linear model with balanced classes to whole documents (P 3.3, Table 1).

    `svm` is ACHE's page classifier as documented: a linear support vector machine over the
    frequencies of the 5,000 most frequent words. `tfidf` is logistic regression over TF-IDF. The
    same examples give the same model.
    """
    tfidf = kind == TFIDF
    vectorizer = TfidfVectorizer(
        analyzer=_content,
        min_df=MIN_DOCUMENTS,
        max_features=MAX_WORDS[kind],
        sublinear_tf=tfidf,
        use_idf=tfidf,
    )
    rows = vectorizer.fit_transform([e.text.words for e in examples])
    model = (
        LogisticRegression(C=10, class_weight="balanced", max_iter=1_000)
        if tfidf
        else LinearSVC(class_weight="balanced", random_state=0, max_iter=10_000)
    )
    model.fit(rows, [e.relevant for e in examples])
    idf = vectorizer.idf_ if tfidf else np.ones(rows.shape[1])
    weights = np.stack([idf, model.coef_[0]]).astype(np.float32)
    words = [str(word) for word in vectorizer.get_feature_names_out()]
    return BagOfWords(kind, words, weights, float(model.intercept_[0]))


def _content(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS]


def fit_bilstm(
    kind: str,
    training: Sequence[Example],
    validation: Sequence[Example],
    vectors: WordVectors,
    *,
    seed: int,
    epochs: int = MAX_EPOCHS,
    stop: int | None = None,
) -> tuple[BiLstm, tuple[Epoch, ...]]:
    """Return the model of the best epoch by validation MCC (`best_epoch`), and all epochs.

    The learning rate schedule covers `epochs`. Training ends after `stop` epochs, or after
    PATIENCE epochs that are worse than the best. Without validation documents, the last model is
    returned. The same arguments give the same weights.
    """
    sampler = Sampler(training, np.random.default_rng(seed))
    held_out = _sample(validation, seed)
    history: list[Epoch] = []
    with _reproducible(seed):
        network = _network(kind, training, vectors)
        model = BiLstm(network, vectors)
        optimiser, schedule = _optimiser(network, epochs * sampler.batches)
        state = network.state_dict()
        progress = tqdm(
            range(stop or epochs), desc=model.kind, unit="epoch", leave=False, disable=None
        )
        for number in progress:
            loss = _train_epoch(model, sampler, optimiser, schedule)
            history.append(Epoch(loss, _validate(model, held_out)))
            shown = {"mcc": f"{history[-1].mcc:.3f}"} if validation else {}
            progress.set_postfix({"loss": f"{loss:.3f}"} | shown)
            best = best_epoch(history)
            if best == number:
                state = deepcopy(network.state_dict())
            elif number - best >= PATIENCE:
                break
        if validation:
            network.load_state_dict(state)
        if network.wide is not None:
            _add_regression(model, training)
    return model, tuple(history)


@torch.no_grad()
def _add_regression(model: BiLstm, examples: Sequence[Example]) -> None:
    """Add logistic regression over the same TF-IDF to the wide part: an ensemble in one model.

    The network has learned from short samples of some documents, the regression from the full text
    of all documents: they make different mistakes.
    """
    wide, last = model.network.wide, model.network.logits
    assert wide is not None
    encoded = [(encode(e.text.words, model.vectors), e.relevant) for e in examples]
    known = [(text, relevant) for text, relevant in encoded if len(text)]
    ids, weights, starts = bag_of([text for text, _ in known], model.network.idf.numpy())
    ends = np.append(starts.numpy(), len(ids))
    rows = csr_matrix((weights.numpy(), ids.numpy(), ends), shape=(len(known), len(model.vectors)))
    regression = LogisticRegression(
        C=PENALTY / WIDE_LENGTH**2, class_weight="balanced", max_iter=1_000
    ).fit(rows, [relevant for _, relevant in known])
    wide.weight[:, 0] += SHARE * torch.from_numpy(regression.coef_[0].astype(np.float32))
    last.bias[1] += SHARE * float(regression.intercept_[0])


def _network(kind: str, examples: Sequence[Example], vectors: WordVectors) -> Network:
    network = Network(
        vectors.matrix.shape[1],
        hidden=HIDDEN,
        dense=DENSE,
        vocabulary=len(vectors) if kind == WIDE_KIND else 0,
        dropout=DROPOUT,
    )
    if kind == WIDE_KIND:
        network.idf.copy_(torch.from_numpy(inverse_frequency(examples, vectors)))
    return network


def _optimiser(
    network: Network, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    wide = list(network.wide.parameters()) if network.wide is not None else []
    deep = [p for p in network.parameters() if all(p is not other for other in wide)]
    groups: list[dict[str, Any]] = [{"params": deep, "lr": LEARNING_RATE}]
    if wide:
        groups.append({"params": wide, "lr": WIDE_LEARNING_RATE, "weight_decay": WIDE_DECAY})
    optimiser = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, [group["lr"] for group in groups], total_steps=steps, pct_start=0.1
    )
    return optimiser, schedule


def inverse_frequency(examples: Sequence[Example], vectors: WordVectors) -> NDArray[np.float32]:
    """Return log(n / (1 + documents that hold the word)) of every word of the vectors, [V]."""
    count = np.zeros(len(vectors))
    for e in examples:
        count[np.unique(encode(e.text.words, vectors))] += 1
    return np.log(len(examples) / (1 + count)).clip(min=0).astype(np.float32)


def _train_epoch(
    model: BiLstm,
    sampler: Sampler,
    optimiser: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
) -> float:
    """Take one step per batch and return the mean loss."""
    loss_of = nn.BCEWithLogitsLoss(reduction="sum")
    model.network.train()
    losses = []
    for texts, labels in sampler.epoch():
        optimiser.zero_grad()
        total = 0.0
        for rows, scores in model.batches(texts):
            loss = loss_of(scores, torch.from_numpy(labels[rows])) / len(texts)
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(total)
    model.network.eval()
    return float(np.mean(losses))


def _validate(model: BiLstm, examples: Sequence[Example]) -> float:
    """Return the mean of the MCC on documents and on titles, each at its best threshold."""
    titled = [e for e in examples if e.title.words]
    views = [([e.text for e in examples], examples), ([e.title for e in titled], titled)]
    figures = [
        best_threshold(np.array([e.relevant for e in judged], bool), model.logits(texts)).mcc
        for texts, judged in views
        if texts
    ]
    return float(np.mean(figures)) if figures else 0.0


def _sample(examples: Sequence[Example], seed: int) -> list[Example]:
    """Return all relevant and at most four times as many irrelevant documents."""
    relevant = [e for e in examples if e.relevant]
    others = [e for e in examples if not e.relevant]
    count = min(len(others), IRRELEVANT_PER_RELEVANT * len(relevant))
    rows = np.random.default_rng(seed).choice(len(others), count, replace=False)
    return relevant + [others[row] for row in rows]


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """Set the seed of torch and one thread, and restore the previous state on exit."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
