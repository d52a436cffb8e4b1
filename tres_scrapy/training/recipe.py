"""The training of a topic pack: expansion, cross-validation, fitting (P 2.3, 3.3, Algorithm 1)."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic import bilstm
from tres_scrapy.topic.classifier import LINEAR_KINDS, WordVectors
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.training.fitting import MAX_EPOCHS, fit_bag, fit_bilstm
from tres_scrapy.training.link_prior import fit_link_prior
from tres_scrapy.training.sample import FOLDS, STRIPES, Example, example
from tres_scrapy.training.summary import means
from tres_scrapy.training.validation import Validation, cross_validate, reporter, stripes
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tres_scrapy.topic.classifier import Classifier
    from tres_scrapy.training.document import Document
    from tres_scrapy.training.validation import Epoch

MIN_TEXTS: Final = 5  # that hold an added keyword: excludes names and misspellings
MIN_LIFT: Final = 4


@dataclass(frozen=True, slots=True)
class Trained:
    """The contents of `topic.toml` and the validations behind its figures."""

    facts: dict[str, Any]
    validations: list[Validation]  # of the chosen model first, then of the others


@dataclass(frozen=True, slots=True)
class Recipe:
    """The arguments for fitting a kind of classifier, except the documents."""

    kind: str
    vectors: WordVectors
    seed: int
    epochs: int = MAX_EPOCHS

    def __call__(
        self,
        training: Sequence[Example],
        validation: Sequence[Example],
        *,
        stop: int | None = None,
    ) -> tuple[Classifier, tuple[Epoch, ...]]:
        """Fit a classifier; a network keeps its best epoch, or ends after `stop` epochs."""
        if self.kind in LINEAR_KINDS:
            return fit_bag(self.kind, training), ()
        return fit_bilstm(
            self.kind,
            training,
            validation,
            self.vectors,
            seed=self.seed,
            epochs=self.epochs,
            stop=stop,
        )


def expand_keywords(
    keywords: KeywordSet, examples: Sequence[Example], vectors: WordVectors
) -> tuple[KeywordSet, set[str], float]:
    """Return the expanded keywords, the added words alone, and the threshold b (P 2.3)."""
    corpus = distinctive_words(*(_words(examples, relevant=side) for side in (True, False)))
    found, b = expand(keywords.words, corpus, vectors)
    return KeywordSet([*keywords.words, *found], keywords.phrases), found, b


def train_pack(
    directory: Path,
    keywords: KeywordSet,
    documents: Sequence[Document],
    vectors_file: Path,
    *,
    kind: str = bilstm.WIDE_KIND,
    beside: Sequence[str] = LINEAR_KINDS,
    language: str = "en",
    seed: int = 0,
    date: str = "",
    epochs: int = MAX_EPOCHS,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train a topic pack, write it to a directory, and validate other models for comparison.

    The same arguments write the same bytes. `say` receives a line after each fold. Raise TresError
    if there are too few documents, hosts or known keywords, or the vectors are not in the directory
    that holds the packs.
    """
    check_place(vectors_file, directory)
    stripe = stripes(documents, STRIPES, seed=seed)
    vectors = WordVectors.load(vectors_file)
    examples = [example(document) for document in documents]
    every, expanded, b = expand_keywords(keywords, examples, vectors)
    prior = fit_link_prior(documents)
    recipe = partial(Recipe, vectors=vectors, seed=seed, epochs=epochs)
    kinds = [*dict.fromkeys(other for other in beside if other != kind), kind]  # the longest last
    *others, chosen = (
        cross_validate(k, examples, stripe, recipe(k), reporter(k, say, FOLDS, more=k == kind))
        for k in kinds
    )
    say(f"{kind}: fitting it to all {len(examples)} documents")
    classifier, _ = recipe(kind)(examples, [], stop=chosen.epochs)
    facts = {
        "name": directory.name,
        "language": language,
        "threshold": round(chosen.threshold, 4),
        "keywords": {
            "given": sorted(keywords.words),
            "phrases": list(keywords.phrases),
            "expanded": sorted(expanded),
            "b": round(b, 4),
            "per_relevant": _mean_count(every, _words(examples, relevant=True)),
            "per_irrelevant": _mean_count(every, _words(examples, relevant=False)),
        },
        "classifier": {"kind": kind} | chosen.calibration._asdict() | classifier.sizes(),
        "vectors": {
            "file": os.path.relpath(vectors_file.resolve(), directory.resolve()),
            "sha256": sha256(vectors_file),
        },
        "training": {"seed": seed, "date": date, "documents": _counts(documents)},
        "validation": {v.kind: means(v) for v in (chosen, *others)},
    }
    write_pack(directory, facts, classifier, prior)
    return Trained(facts, [chosen, *others])


def distinctive_words(
    relevant: Iterable[Iterable[str]], others: Iterable[Iterable[str]] = ()
) -> list[str]:
    """Return the words that expansion chooses from, sorted.

    A word must occur in five relevant texts or more, and in a share of them at least four times as
    high as in the others. P 2.3 uses all corpus words, which adds words like `using` and `system`.
    """
    inside, n = _spread(relevant)
    outside, m = _spread(others)
    return sorted(
        word
        for word, count in inside.items()
        if count >= MIN_TEXTS and count * m >= MIN_LIFT * n * outside[word]
    )


def expand(
    keywords: Iterable[str], corpus_words: Iterable[str], vectors: WordVectors
) -> tuple[set[str], float]:
    """Return the corpus words with a mean cosine to the keywords of at least b, and b.

    The threshold b is the mean cosine of the ordered pairs of distinct keywords. Raise TresError
    if fewer than two keywords have a vector.
    """
    given = {word for word in keywords if word in vectors}
    if len(given) < 2:
        msg = f"only keywords {sorted(given)!r} have a vector, must be two or more: add keywords"
        raise TresError(msg)
    units = vectors.unit(sorted(given)).astype(np.float64)  # [K, d]
    n = len(units)
    # every ordered pair at once; the n pairs of a word with itself have cosine 1
    b = float((np.square(units.sum(axis=0)).sum() - n) / (n * (n - 1)))
    candidates = sorted(w for w in set(corpus_words) - given - STOP_WORDS if w in vectors)
    closeness = vectors.unit(candidates) @ units.mean(axis=0)  # [C]
    return {word for word, mean in zip(candidates, closeness, strict=True) if mean >= b}, b


def _spread(texts: Iterable[Iterable[str]]) -> tuple[Counter[str], int]:
    """Return the number of texts that contain each word, and the number of texts."""
    counts: Counter[str] = Counter()
    number = 0
    for text in texts:
        counts.update(set(text))
        number += 1
    return counts, number


def _words(examples: Iterable[Example], *, relevant: bool) -> list[Sequence[str]]:
    return [e.text.words for e in examples if e.relevant is relevant]


def _mean_count(keywords: KeywordSet, texts: Sequence[Sequence[str]]) -> float:
    """Return the mean number of keywords in a text (Table 2)."""
    return round(float(np.mean([keywords.counts(words).total() for words in texts])), 2)


def _counts(documents: Iterable[Document]) -> dict[str, dict[str, int]]:
    """Return the number of documents of each source, by label."""
    counts = Counter((document.source, document.relevant) for document in documents)
    return {
        source: {"relevant": counts[source, True], "irrelevant": counts[source, False]}
        for source in dict.fromkeys(source for source, _ in counts)
    }


def check_place(vectors: Path, directory: Path) -> Path:
    """Return the vectors' path; raise TresError if it is not beside the pack's directory."""
    models = directory.resolve().parent
    if not vectors.resolve().is_relative_to(models):
        raise TresError(
            f"vectors {str(vectors)!r} must lie in {directory.parent}/ or a folder there: "
            "copy them, or choose another --output"
        )
    return vectors
