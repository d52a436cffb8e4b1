"""What a reward model is trained and tested on: hosts kept apart, batches stratified (P 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.topic.classifier import MAX_TOKENS, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.document import Document
    from tres_scrapy.topic.vectors import WordVectors

IRRELEVANT_PER_RELEVANT: Final = 4
RELEVANT_PER_BATCH: Final = 12
MAX_WINDOW_START: Final = 600
MIN_WINDOW: Final = 20
MAX_SNIPPET: Final = 8
VALIDATION_SHARE: Final = 0.1
TEST_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Example:
    """A document as rows of the word vectors."""

    text: NDArray[np.int64]  # title and text
    title: NDArray[np.int64]
    source: str
    relevant: bool


@dataclass(frozen=True, slots=True)
class Split:
    """Examples of three sets of hosts that share none."""

    training: list[Example]
    validation: list[Example]
    test: list[Example]


def split_hosts(
    documents: Sequence[Document], vectors: WordVectors, rng: np.random.Generator
) -> Split:
    """Divide documents by host, those of hosts with relevant documents in the same shares."""
    hosts: dict[tuple[str, str], list[Document]] = {}
    for document in documents:
        hosts.setdefault((document.source, document.host), []).append(document)
    strata: dict[tuple[str, bool], list[list[Document]]] = {}
    for (source, _), group in hosts.items():
        strata.setdefault((source, any(d.relevant for d in group)), []).append(group)
    sides: tuple[list[Example], ...] = ([], [], [])
    for groups in strata.values():
        shares = np.array([TEST_SHARE, TEST_SHARE + VALIDATION_SHARE])
        ends = np.rint(shares * len(groups))
        for place, group in enumerate(rng.permutation(len(groups))):
            side = 2 - int((place >= ends).sum())
            sides[side].extend(_example(document, vectors) for document in groups[group])
    return Split(*sides)


def _example(document: Document, vectors: WordVectors) -> Example:
    text = f"{document.title} {document.text}"
    return Example(
        encode(text, vectors, limit=MAX_WINDOW_START + MAX_TOKENS),
        encode(document.title, vectors),
        document.source,
        document.relevant,
    )


class Sampler:
    """Draws stratified batches with three views of each document: a window, a snippet, the title.

    Irrelevant documents come from every source as often, so that the largest does not rule.
    """

    def __init__(self, examples: Iterable[Example], rng: np.random.Generator) -> None:
        self._rng = rng
        self._relevant: list[Example] = []
        sources: dict[str, list[Example]] = {}
        for example in examples:
            if len(example.text):
                others = sources.setdefault(example.source, [])
                (self._relevant if example.relevant else others).append(example)
        self._irrelevant = [source for source in sources.values() if source]

    def epoch(self) -> Iterator[tuple[list[NDArray[np.int64]], NDArray[np.int64]]]:
        """Yield texts and labels; each relevant document is used once."""
        order = self._rng.permutation(len(self._relevant))
        for start in range(0, len(order), RELEVANT_PER_BATCH):
            batch = [self._relevant[row] for row in order[start : start + RELEVANT_PER_BATCH]]
            batch += [self._draw() for _ in range(len(batch) * IRRELEVANT_PER_RELEVANT)]
            views = [(view, example.relevant) for example in batch for view in self._views(example)]
            yield [view for view, _ in views], np.array([label for _, label in views], np.int64)

    def _draw(self) -> Example:
        source = self._irrelevant[self._rng.integers(len(self._irrelevant))]
        return source[self._rng.integers(len(source))]

    def _views(self, example: Example) -> Iterator[NDArray[np.int64]]:
        yield self._window(example.text) if self._rng.random() < 0.5 else example.text[:MAX_TOKENS]
        start = self._rng.integers(len(example.text))
        yield example.text[start : start + self._rng.integers(1, MAX_SNIPPET + 1)]
        if len(example.title):
            yield example.title

    def _window(self, text: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a random part of the text, its words in random order: topics, not sentences."""
        length = int(self._rng.integers(MIN_WINDOW, MAX_TOKENS + 1))
        start = self._rng.integers(max(1, len(text) - length + 1))
        return self._rng.permutation(text[start : start + length])
