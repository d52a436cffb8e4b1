"""Training samples of a reward model: batches of windows, snippets and titles (P 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.topic.classifier import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.training.document import Document

FOLDS: Final = 5
STRIPES: Final = 2 * FOLDS  # groups of hosts: see validation.py
IRRELEVANT_PER_RELEVANT: Final = 4
RELEVANT_PER_BATCH: Final = 32
BATCHES: Final = (20, 40)  # least and most in an epoch
FROM_ANY_SOURCE: Final = 0.5
MIN_WINDOW: Final = 40
MAX_WINDOW: Final = 300
MAX_SNIPPET: Final = 15
LEAD: Final = 30


@dataclass(frozen=True, slots=True)
class Example:
    """The words of a document: those of the title and the text, and those of the title."""

    text: Text
    title: Text
    source: str
    relevant: bool


def example(document: Document) -> Example:
    """Return the words of a document that a classifier reads."""
    text = Text.of(f"{document.title} {document.text}", document.url)
    return Example(text, Text.of(document.title), document.source, document.relevant)


class Sampler:
    """Draws stratified batches of windows, snippets and titles.

    A batch has all three views of a relevant document, but one of an irrelevant document, so that
    more of these are used. Half of the irrelevant documents are drawn with equal probability for
    each source, so that no source dominates; the other half in turn, so that all are used.
    """

    def __init__(self, examples: Sequence[Example], rng: np.random.Generator) -> None:
        self._rng = rng
        relevant = [e for e in examples if e.relevant]
        irrelevant = [e for e in examples if not e.relevant]
        sources: dict[str, list[Example]] = {}
        for other in irrelevant:
            sources.setdefault(other.source, []).append(other)
        self._sources = list(sources.values())
        self._relevant, self._irrelevant = self._in_turn(relevant), self._in_turn(irrelevant)
        # enough to use each relevant document about once
        self.batches = int(np.clip(-(-len(relevant) // RELEVANT_PER_BATCH), *BATCHES))

    def epoch(self) -> Iterator[tuple[list[Text], NDArray[np.float32]]]:
        """Yield the texts of `batches` batches and their labels, 1 for relevant ones."""
        for _ in range(self.batches):
            relevant = [
                view
                for drawn in islice(self._relevant, RELEVANT_PER_BATCH)
                for view in self._views(drawn)
            ]
            count = IRRELEVANT_PER_RELEVANT * len(relevant)
            texts = relevant + [self._view(self._draw()) for _ in range(count)]
            yield texts, (np.arange(len(texts)) < len(relevant)).astype(np.float32)

    def _in_turn(self, examples: Sequence[Example]) -> Iterator[Example]:
        """Yield examples without end, in random order, each once a round."""
        while True:
            for row in self._rng.permutation(len(examples)):
                yield examples[row]

    def _draw(self) -> Example:
        if self._rng.random() < FROM_ANY_SOURCE:
            return next(self._irrelevant)
        source = self._sources[self._rng.integers(len(self._sources))]
        return source[self._rng.integers(len(source))]

    def _views(self, drawn: Example) -> Iterator[Text]:
        yield self._window(drawn.text)
        yield snippet(drawn.text, self._rng)
        if drawn.title.words:
            yield drawn.title

    def _view(self, drawn: Example) -> Text:
        kind = self._rng.integers(3 if drawn.title.words else 2)
        if kind == 0:
            return self._window(drawn.text)
        return snippet(drawn.text, self._rng) if kind == 1 else drawn.title

    def _window(self, text: Text) -> Text:
        """Return the beginning, or a part with its words shuffled, with equal probability."""
        words, length = text.words, int(self._rng.integers(MIN_WINDOW, MAX_WINDOW + 1))
        if self._rng.random() < 0.5:
            return text._replace(words=words[:length])
        start = int(self._rng.integers(max(1, len(words) - length + 1)))
        part = words[start : start + length]
        return text._replace(words=[part[place] for place in self._rng.permutation(len(part))])


def lead(text: Text) -> Text:
    """Return the first LEAD words of a text."""
    return text._replace(words=text.words[:LEAD])


def snippet(text: Text, rng: np.random.Generator) -> Text:
    """Return a few consecutive words, as many as in an anchor text."""
    start = int(rng.integers(max(1, len(text.words))))
    return Text(text.words[start : start + int(rng.integers(1, MAX_SNIPPET + 1))])
