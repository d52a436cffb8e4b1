"""What a reward model is trained and tested on: hosts kept apart, batches stratified (P 3.3)."""

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

IRRELEVANT_PER_RELEVANT: Final = 4
RELEVANT_PER_BATCH: Final = 32
BATCHES: Final = (20, 40)  # of an epoch at least, so that few documents suffice, and at most
FROM_ANY_SOURCE: Final = 0.5
MIN_WINDOW: Final = 40
MAX_WINDOW: Final = 300
MAX_SNIPPET: Final = 15
LEAD: Final = 30


@dataclass(frozen=True, slots=True)
class Example:
    """The words of a document, those of its title first."""

    text: Text
    title: Text
    source: str
    relevant: bool


def example(document: Document) -> Example:
    """Return what a classifier reads of a document."""
    text = Text.of(f"{document.title} {document.text}", document.url)
    return Example(text, Text.of(document.title), document.source, document.relevant)


def stripes(documents: Sequence[Document], count: int, *, seed: int) -> NDArray[np.int64]:
    """Return the stripe of each document, [n] in 0 to count - 1.

    Documents of one host share a stripe; hosts with relevant documents, and hosts of each source,
    are spread over the stripes evenly. A ValueError says when a stripe lacks a label.
    """
    hosts: dict[str, list[int]] = {}
    for row, document in enumerate(documents):
        hosts.setdefault(document.host, []).append(row)
    strata: dict[tuple[str, bool], list[list[int]]] = {}
    for rows in hosts.values():
        mixed = any(documents[row].relevant for row in rows)
        strata.setdefault((documents[rows[0]].source, mixed), []).append(rows)
    rng = np.random.default_rng(seed)
    result = np.empty(len(documents), dtype=np.int64)
    places = {False: 0, True: 0}  # small strata go on where the last one ended
    for (_, mixed), groups in strata.items():
        for group in rng.permutation(len(groups)):
            result[groups[group]] = places[mixed] % count
            places[mixed] += 1
    _check(documents, result, count)
    return result


def _check(documents: Sequence[Document], stripe: NDArray[np.int64], count: int) -> None:
    true = np.array([document.relevant for document in documents], dtype=bool)
    for label, name in ((True, "relevant"), (False, "irrelevant")):
        if len(np.unique(stripe[true == label])) < count:
            hosts = {document.host for document in documents if document.relevant is label}
            msg = (
                f"{int((true == label).sum())} {name} documents of {len(hosts)} hosts are too few: "
                f"a pack takes documents of both labels, each of {count} hosts or more (of twice "
                "as many where hosts hold both), since it is tested on hosts not trained on"
            )
            raise ValueError(msg)


class Sampler:
    """Draws stratified batches of windows, snippets and titles.

    Of a relevant document a batch has all three, of an irrelevant one any: with fewer views of
    each, more of them are met. Half of the irrelevant documents are drawn from every source as
    often, so that the largest does not rule; the other half in turn, so that all are met.
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
        # what uses each relevant document about once
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
        """Yield examples for ever, each once a round."""
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
        """Return the beginning, or as often any part in random order: topics, not sentences."""
        words, length = text.words, int(self._rng.integers(MIN_WINDOW, MAX_WINDOW + 1))
        if self._rng.random() < 0.5:
            return text._replace(words=words[:length])
        start = int(self._rng.integers(max(1, len(words) - length + 1)))
        part = words[start : start + length]
        return text._replace(words=[part[place] for place in self._rng.permutation(len(part))])


def lead(text: Text) -> Text:
    """Return the beginning of a text, as long as a teaser."""
    return text._replace(words=text.words[:LEAD])


def snippet(text: Text, rng: np.random.Generator) -> Text:
    """Return a few words that stand together, as many as an anchor has."""
    start = int(rng.integers(max(1, len(text.words))))
    return Text(text.words[start : start + int(rng.integers(1, MAX_SNIPPET + 1))])
