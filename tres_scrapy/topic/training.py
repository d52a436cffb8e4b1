"""Making of a topic pack from files: expansion, split, fitting, held-out figures (P 2.3, 3.3)."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tres_scrapy.topic.classifier import MAX_TOKENS, Classifier
from tres_scrapy.topic.fitting import BASE_RATE, DENSE, HIDDEN, MAX_EPOCHS, THRESHOLD, fit, measure
from tres_scrapy.topic.keyword import KeywordSet, expand
from tres_scrapy.topic.pack import KIND, write_pack
from tres_scrapy.topic.sample import Example, split_hosts
from tres_scrapy.topic.vectors import WordVectors, sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tres_scrapy.topic.document import Document

MIN_DOCUMENTS: Final = 5  # a rarer word is no keyword: names and misspellings live there
CLASSIFIER: Final = {
    "kind": KIND,
    "hidden": HIDDEN,
    "dense": DENSE,
    "tokens": MAX_TOKENS,
    "base_rate": round(BASE_RATE, 6),
}


def train_pack(
    directory: Path,
    keywords: KeywordSet,
    documents: Sequence[Document],
    vectors_file: Path,
    *,
    seed: int = 0,
    date: str = "",
    epochs: int = MAX_EPOCHS,
) -> dict[str, Any]:
    """Train a topic pack into a directory and return the facts of its `topic.toml`.

    The same arguments write the same bytes. A ValueError says what is missing: documents of
    either side, known keywords, or vectors in the directory that holds the packs.
    """
    if not vectors_file.resolve().is_relative_to(directory.resolve().parent):
        msg = f"vectors {str(vectors_file)!r} must lie beside the pack: copy them there first"
        raise ValueError(msg)
    if len({document.relevant for document in documents}) < 2:
        msg = f"{len(documents)} documents are too few: training takes documents of both labels"
        raise ValueError(msg)
    vectors = WordVectors.load(vectors_file)
    split = split_hosts(documents, vectors, np.random.default_rng(seed))
    expanded, b = expand(keywords.words, _frequent_words(split.training, vectors), vectors)
    classifier = fit(split, vectors, seed=seed, epochs=epochs)
    facts = {
        "name": directory.name,
        "threshold": THRESHOLD,
        "keywords": _keywords(keywords, expanded, b),
        "classifier": CLASSIFIER,
        "vectors": {
            "file": os.path.relpath(vectors_file.resolve(), directory.resolve()),
            "sha256": sha256(vectors_file),
        },
        "training": {"seed": seed} | ({"date": date} if date else {}) | _counts(documents),
        "held_out": _held_out(classifier, split.test),
    }
    write_pack(directory, facts, classifier.network)
    return facts


def _keywords(keywords: KeywordSet, expanded: set[str], b: float) -> dict[str, Any]:
    return {
        "given": sorted(keywords.words),
        "phrases": list(keywords.phrases),
        "expanded": sorted(expanded),
        "b": round(b, 4),
    }


def _frequent_words(examples: Iterable[Example], vectors: WordVectors) -> list[str]:
    """Return the words of at least five relevant documents."""
    rows = [np.unique(example.text) for example in examples if example.relevant]
    numbers, counts = np.unique(np.concatenate(rows), return_counts=True)
    return [vectors.words[number] for number in numbers[counts >= MIN_DOCUMENTS]]


def _counts(documents: Iterable[Document]) -> dict[str, dict[str, int]]:
    """Return how many documents of either label each source gave."""
    counts = Counter((document.source, document.relevant) for document in documents)
    return {
        source: {"relevant": counts[source, True], "irrelevant": counts[source, False]}
        for source in dict.fromkeys(source for source, _ in counts)
    }


def _held_out(classifier: Classifier, test: Sequence[Example]) -> dict[str, Any]:
    """Return the figures on the test hosts, together and for each source with both labels."""
    figures = {}
    for source in ("all", *dict.fromkeys(example.source for example in test if example.relevant)):
        chosen = [example for example in test if source in {"all", example.source}]
        figures[source] = {"documents": len(chosen)} | {
            kind: {
                name: round(value, 4)
                for name, value in measure(classifier, chosen, titles=kind == "titles")
                ._asdict()
                .items()
            }
            for kind in ("texts", "titles")
        }
    return figures
