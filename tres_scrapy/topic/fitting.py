"""Fitting of the reward model to pages, titles and snippets (P 3.3, P1 3.4)."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from tres_scrapy.topic.classifier import MAX_TOKENS, Classifier, Network, buckets
from tres_scrapy.topic.sample import IRRELEVANT_PER_RELEVANT, Example, Sampler, Split
from tres_scrapy.topic.score import Score, score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tres_scrapy.topic.vectors import WordVectors

THRESHOLD: Final = 0.5
HIDDEN: Final = 64
DENSE: Final = 64
DROPOUT: Final = 0.3
LEARNING_RATE: Final = 1e-3
MAX_EPOCHS: Final = 20
PATIENCE: Final = 5
MEAN_STEP: Final = 0.02
# what a model answers that knows nothing of a text: the share of relevant ones in its batches
BASE_RATE: Final = 1 / (1 + IRRELEVANT_PER_RELEVANT)


def fit(split: Split, vectors: WordVectors, *, seed: int, epochs: int = MAX_EPOCHS) -> Classifier:
    """Return the classifier of the epoch with the best validation MCC, the same for a seed."""
    sampler = Sampler(split.training, np.random.default_rng(seed))
    with _reproducible(seed):
        network = Network(vectors.matrix.shape[1], hidden=HIDDEN, dense=DENSE, dropout=DROPOUT)
        # the running mean of the weights is what is kept: single steps jump about
        average = deepcopy(network)
        learner = Classifier(network, vectors, BASE_RATE)
        classifier = Classifier(average, vectors, BASE_RATE)
        optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
        best, best_epoch, state = -1.0, 0, classifier.network.state_dict()
        progress = tqdm(range(epochs), desc="epochs", unit="epoch")
        for epoch in progress:
            loss = _train_epoch(learner, sampler, optimiser, average)
            mcc = _validate(classifier, split.validation)
            progress.set_postfix(loss=f"{loss:.3f}", mcc=f"{mcc:.3f}")
            if mcc > best:
                best, best_epoch, state = mcc, epoch, deepcopy(classifier.network.state_dict())
            elif epoch - best_epoch >= PATIENCE:
                break
        classifier.network.load_state_dict(state)
    return classifier


def measure(classifier: Classifier, examples: Sequence[Example], *, titles: bool = False) -> Score:
    """Score the decision at the threshold on whole documents or on their titles alone."""
    chosen = [example for example in examples if not titles or len(example.title)]
    texts = [example.title if titles else example.text[:MAX_TOKENS] for example in chosen]
    true = np.array([example.relevant for example in chosen], dtype=bool)
    return score(true, classifier.probabilities(texts) >= THRESHOLD)


def _train_epoch(
    classifier: Classifier,
    sampler: Sampler,
    optimiser: torch.optim.Optimizer,
    average: Network,
) -> float:
    """Take one step per batch and return the mean loss."""
    loss_of = nn.CrossEntropyLoss(reduction="sum")
    classifier.network.train()
    losses = []
    for texts, labels in sampler.epoch():
        optimiser.zero_grad()
        total = 0.0
        for rows in buckets([len(text) for text in texts]):
            scores = classifier.logits([texts[row] for row in rows])
            loss = loss_of(scores, torch.from_numpy(labels[rows])) / len(texts)
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(classifier.network.parameters(), 1.0)
        optimiser.step()
        with torch.no_grad():
            for mean, value in zip(
                average.parameters(), classifier.network.parameters(), strict=True
            ):
                mean.lerp_(value, MEAN_STEP)
        losses.append(total)
    return float(np.mean(losses))


def _validate(classifier: Classifier, examples: Sequence[Example]) -> float:
    pages = measure(classifier, examples)
    titles = measure(classifier, examples, titles=True)
    return (pages.mcc + titles.mcc) / 2


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """Give torch this seed and one thread, and what it had before afterwards."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
