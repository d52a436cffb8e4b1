"""Training of word vectors by skip-gram (P 2.3, 3.3)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from tqdm import tqdm

from tres_scrapy.config.extra import require
from tres_scrapy.topic.vectors import WordVectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tres_scrapy.training.document import Sentences

MAX_WORDS: Final = 50_000
MIN_COUNT: Final = 5


def train_vectors(
    sentences: Iterable[list[str]],
    *,
    seed: int,
    words: int = MAX_WORDS,
    dimension: int = 100,
    epochs: int = 5,
    workers: int = 1,
) -> WordVectors:
    """Train skip-gram vectors of the most frequent words; one worker makes them reproducible.

    The sentences are read `epochs` + 1 times. Raise ValueError if too few words repeat.
    """
    require("train", "training word vectors")
    from gensim.models import Word2Vec  # noqa: PLC0415 - takes a second, only needed here

    model = Word2Vec(
        sg=1,
        seed=seed,
        vector_size=dimension,
        epochs=epochs,
        workers=workers,
        min_count=MIN_COUNT,
        max_final_vocab=words,
    )
    model.build_vocab(sentences)
    if len(model.wv) < 2:
        msg = (
            f"the texts hold {model.corpus_total_words} words and {len(model.wv)} of them "
            f"{MIN_COUNT} times or more, must be two or more: add texts"
        )
        raise ValueError(msg)
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    return WordVectors(list(model.wv.index_to_key), model.wv.vectors)


class Passes:
    """Sentences that can be read repeatedly: for the vocabulary, then for each epoch."""

    def __init__(self, sentences: Sentences, epochs: int) -> None:
        self._sentences = sentences
        names = (f"epoch {n} of {epochs}" for n in range(1, epochs + 1))
        self._names = chain(["vocabulary"], names)
        self._total: int | None = None

    def __iter__(self) -> Iterator[list[str]]:
        with tqdm(desc=next(self._names), total=self._total, unit=" words", unit_scale=True) as bar:
            for sentence in self._sentences:
                bar.update(len(sentence))
                yield sentence
            self._total = int(bar.n)
