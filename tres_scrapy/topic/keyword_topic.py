"""A topic from keywords, seed pages, pages that a crawl has fetched, and a few answers.

It starts as the weighted words of the keywords and of words near them (word vectors). The pages of
a crawl have no labels: a mixture of two groups says how likely each is relevant by this first
score, and a logistic regression learns these probabilities from all words (positive-unlabelled
learning: Elkan, Noto, 2008; Bekker, Davis, 2020). The first score is never learned from the
regression, so that errors do not feed themselves. With answers, a judge of all fields of a page
takes over (answer.py).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.answer import fit_answers, interval
from tres_scrapy.topic.classifier import (
    FIELDS,
    FREQUENCIES,
    RAREST_SHARE,
    TFIDF,
    Background,
    BagOfWords,
    Calibration,
    WordVectors,
    is_of_text,
    sigmoid,
)
from tres_scrapy.topic.fit import Bags, fit_line, fit_logistic, fit_mixture, lift
from tres_scrapy.topic.keyword import KeywordError
from tres_scrapy.topic.shipped import VECTORS, shipped_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.topic.fit import TwoGroups
    from tres_scrapy.topic.keyword import KeywordSet

    Numbers = NDArray[np.float64]

THRESHOLD: Final = 0.5  # the calibration moves, not the threshold
NEAR: Final = 0.3  # least cosine of a word to the keywords at which it counts
PHRASE_WORD: Final = 0.5  # weight of a word of a phrase, as a share of a keyword's
SEED_WEIGHT: Final = 0.5  # of the seed page, as a share of the keywords'
STRENGTH: Final = 10.0  # inverse of the penalty of the regression
PAGES_WEIGHT: Final = 200.0  # of all pages together, one each at most
TITLE_WEIGHT: Final = 0.5  # of a title beside its page: short texts such as anchors are judged too
TRUST: Final = 0.5  # weight of the first score beside the regression
BEST_PAGES: Final = (
    5  # pages of the highest first score that are relevant until better ones are found
)
BEST_SHARE: Final = 0.3  # of all pages that these are at most
FEWEST_PAGES: Final = 10  # pages to learn from
DRIFT: Final = 0.3  # rank correlation of first score and model below which they disagree
GENERAL_TEXTS: Final = 200  # that the rarity of words in English counts for, beside pages
ROUNDING: Final = 1e-9  # of a score


class PageWords(NamedTuple):
    """What is kept of a fetched page: how often each word occurs, and what a person needs."""

    url: str
    title: str
    lead: str
    words: Mapping[str, int]
    is_seed: bool = False

    def text_alone(self) -> PageWords:
        """Return the page without the words of its links and its URL."""
        return self._replace(words={w: n for w, n in self.words.items() if is_of_text(w)})


class TopicFit(NamedTuple):
    """A model of a topic, and what is known about it.

    `few` says whether hardly a page stands out, so that the best count as relevant. `agreement` is
    the rank correlation of first score and model; `interval` holds the probabilities between which
    the threshold lies by the answers, in four of five cases. `pulls` holds, by URL of an answered
    page, what the answer adds to the log odds of a page with exactly its words.
    """

    model: BagOfWords
    calibration: Calibration
    pages: int = 0
    answers: int = 0
    share: float = 0.0
    few: bool = False
    agreement: float = 1.0
    interval: tuple[float, float] = (0.0, 1.0)
    pulls: Mapping[str, float] = MappingProxyType({})

    @property
    def drifts(self) -> bool:
        """Whether the model has parted from the keywords."""
        return self.agreement < DRIFT

    def judge(self, pages: Iterable[PageWords]) -> Numbers:
        """Return P(relevant) of pages [n]."""
        return self.calibration.probabilities(
            self.model.logits_of_counts(each.words for each in pages)
        )


class KeywordTopic:
    """The words of a topic; `fit` turns them, and what a crawl has fetched, into a model."""

    def __init__(self, keywords: KeywordSet, background: Background, vectors: WordVectors) -> None:
        self.keywords = keywords
        self._vectors = vectors
        inner = {w: PHRASE_WORD for phrase in keywords.phrases for w in tokenise(phrase)}
        given = {w: weight for w, weight in inner.items() if w not in STOP_WORDS}
        given |= dict.fromkeys(keywords.words, 1.0)
        self._given = given
        self._shares = dict(zip(background.words, background.shares.tolist(), strict=True))
        if not any(word in self._shares or word in vectors for word in given):
            words = sorted([*keywords.words, *keywords.phrases])
            names = ", ".join([*words[:3], *(["..."] if len(words) > 3 else [])])
            raise KeywordError(
                f"no keyword is a known English word ({names}): TRES has word vectors for English"
            )
        known = [word for word in given if word in vectors]
        units = vectors.unit(known) * np.array([given[word] for word in known])[:, None]
        middle = units.sum(axis=0)
        self._middle = middle / (float(np.linalg.norm(middle)) or 1.0)

    @classmethod
    def in_english(cls, keywords: KeywordSet, models: Path | None = None) -> Self:
        """Return the topic of English keywords; raise KeywordError if none of them is known.

        `models` is the folder of the shipped packs, if it is known.
        """
        return cls(keywords, *_english(models or shipped_models()))

    @property
    def unknown(self) -> list[str]:
        """The keywords without a vector: they are found only word for word."""
        return sorted(word for word in self.keywords.words if word not in self._vectors)

    def near(self, most: int) -> list[str]:
        """Return words close in meaning to the keywords, the closest first."""
        common = [w for w in self._vectors.words if w in self._shares and w not in STOP_WORDS]
        close = self._vectors.unit(common) @ self._middle
        order = np.argsort(-close, kind="stable")
        found = [common[place] for place in order[: most + len(self._given)].tolist()]
        return [word for word in found if word not in self._given][:most]

    def fit(self, pages: Sequence[PageWords], answers: Mapping[str, bool]) -> TopicFit:
        """Return the model after these pages and answers, by URL; the same input, the same model.

        It takes less than a second of processor time for 2,000 pages.
        """
        words, rarity = self._vocabulary(pages)
        numbers = {word: row for row, word in enumerate(words)}
        texts = [_weighted(page.words, numbers, rarity) for page in pages]
        bags = Bags.of(texts, len(words))
        titles = [_weighted(Counter(tokenise(page.title)), numbers, rarity) for page in pages]
        both_bags = Bags.of([*texts, *titles], len(words))
        base = self._fit_pages(pages, words, rarity, bags, both_bags)
        told = {row: answers[page.url] for row, page in enumerate(pages) if page.url in answers}
        return _judged_by_answers(base, pages, told) if told else base

    def _vocabulary(self, pages: Sequence[PageWords]) -> tuple[list[str], Numbers]:
        """Return the words that a model weighs, and how rare each is."""
        seen = Counter(word for page in pages for word in page.words if is_of_text(word))
        own = {word for page in pages if page.is_seed for word in page.words if is_of_text(word)}
        own |= {word for word, number in seen.items() if number > 1}
        words = sorted({*self._shares, *self._given, *own} - STOP_WORDS)
        return words, np.array([1 - np.log(self._shares.get(w, RAREST_SHARE)) for w in words])

    def _fit_pages(
        self,
        pages: Sequence[PageWords],
        words: list[str],
        rarity: Numbers,
        bags: Bags,
        both_bags: Bags,
    ) -> TopicFit:
        """Return the model after pages without answers; `both_bags` are their texts and titles."""
        first = self._first(words, rarity, [page.words for page in pages if page.is_seed])
        itself = _likeness_to_itself(pages)
        scores = bags.times(first) - itself
        mixture = fit_mixture(scores)
        if len(pages) < FEWEST_PAGES:
            return _made(words, rarity, first, _steep(mixture))._replace(pages=len(pages))
        log_odds = mixture.log_odds(scores)
        lifted = lift(log_odds, min(BEST_PAGES, BEST_SHARE * len(pages)))
        targets = sigmoid(log_odds + lifted)
        weights = np.full(len(pages), min(1.0, PAGES_WEIGHT / len(pages)))
        learned, _ = fit_logistic(
            both_bags,
            np.tile(targets, 2),
            np.concatenate([weights, TITLE_WEIGHT * weights]),
            STRENGTH,
        )
        trust = TRUST / _deviation(scores)
        both = learned / _deviation(bags.times(learned)) + trust * first
        judged = bags.times(both) - trust * itself
        fit = _made(words, rarity, both, fit_line(judged, targets, np.ones(len(pages))))
        return fit._replace(
            pages=len(pages),
            share=mixture.share,
            few=lifted > 0,
            agreement=_rank_correlation(scores, judged),
        )

    def _first(
        self, words: Sequence[str], rarity: Numbers, seeds: Iterable[Mapping[str, int]]
    ) -> Numbers:
        """Return the weight of each word by keywords, words near them and seed pages."""
        exact = np.array([self._given.get(word, 0.0) for word in words]) * rarity
        places = [row for row, word in enumerate(words) if word in self._vectors]
        near = np.zeros(len(words))
        near[places] = self._vectors.unit(words[row] for row in places) @ self._middle
        near = np.maximum(0, near - NEAR) * rarity
        result = _unit(exact) + _unit(near)
        numbers = {word: row for row, word in enumerate(words)}
        texts = [_weighted(seed, numbers, rarity) for seed in seeds]
        for ids, values in texts:
            result[ids] += SEED_WEIGHT * values / len(texts)
        return result


@cache
def _english(models: Path) -> tuple[Background, WordVectors]:
    return Background.load(models / FREQUENCIES), WordVectors.load(models / VECTORS)


def alikeness(model: BagOfWords, page: PageWords, others: Sequence[PageWords]) -> list[float]:
    """Return the cosine of a page's weighted words to those of others."""
    own, *rest = (model.weighted(each.words) for each in (page, *others))
    at = np.zeros(len(model.words))
    at[own[0]] = own[1]
    return [float(at[ids] @ values) for ids, values in rest]


def _likeness_to_itself(pages: Sequence[PageWords]) -> Numbers:
    """Return how much of the first score of each page is its likeness to itself, [n].

    The words of the seeds are in the first score. A seed that is a directory would be the most
    relevant page, and the only one.
    """
    seeds = np.array([page.is_seed for page in pages], dtype=np.float64)
    return SEED_WEIGHT * seeds / max(1.0, float(seeds.sum()))


def _weighted(
    words: Mapping[str, int], numbers: Mapping[str, int], rarity: Numbers
) -> tuple[NDArray[np.int64], Numbers]:
    """Return word numbers and values of a text as `BagOfWords` weighs them."""
    known = {row: n for word, n in words.items() if (row := numbers.get(word)) is not None}
    ids = np.fromiter(known, np.int64, len(known))
    values = (1 + np.log(np.fromiter(known.values(), np.float64, len(known)))) * rarity[ids]
    return ids, values / (float(np.linalg.norm(values)) or 1.0)


def _made(
    words: list[str], rarity: Numbers, weights: Numbers, line: tuple[float, float]
) -> TopicFit:
    both = np.stack([rarity, weights]).astype(np.float32)
    slope = max(line[0], 1e-3)  # a score that says nothing must not say the opposite
    return TopicFit(BagOfWords(TFIDF, words, both, 0.0), Calibration(slope, line[1]))


def _judged_by_answers(
    base: TopicFit, pages: Sequence[PageWords], told: Mapping[int, bool]
) -> TopicFit:
    """Return the model that learns the answered pages, and the best and the worst of the others."""
    seen = Counter(chain.from_iterable(page.words for page in pages))
    common = (word for word, count in seen.items() if count > 1 and not is_of_text(word))
    fields = [word for word in common if word.partition(":")[2] not in STOP_WORDS]
    words = [*base.model.words, *sorted(fields)]
    general = np.concatenate(
        [np.exp(1 - base.model.weights[0]), np.full(len(fields), RAREST_SHARE)]
    )
    shares = GENERAL_TEXTS * general + np.array([seen[word] for word in words])
    rarity = 1 - np.log(shares / (GENERAL_TEXTS + len(pages)))
    model = BagOfWords(FIELDS, words, np.stack([rarity, rarity]).astype(np.float32), 0.0)
    texts = [model.weighted(page.words) for page in pages]
    before = base.calibration.log_odds(base.model.logits_of_counts(p.words for p in pages))
    fit = fit_answers(texts, len(words), before, told)
    made = BagOfWords(FIELDS, words, np.stack([rarity, fit.weights]).astype(np.float32), 0.0)
    return base._replace(
        model=made,
        calibration=Calibration(1.0, fit.intercept),
        answers=len(told),
        interval=interval(fit.without),
        pulls={pages[row].url: pull for row, pull in fit.pulls.items()},
    )


def _steep(mixture: TwoGroups) -> tuple[float, float]:
    slope, middle = mixture.edge()
    return slope, -slope * middle


def _rank_correlation(a: Numbers, b: Numbers) -> float:
    """Return the correlation of the ranks of two scores (Spearman)."""
    ranks = np.stack([np.argsort(np.argsort(each, kind="stable")) for each in (a, b)])
    both: Numbers = np.asarray(np.corrcoef(ranks), dtype=np.float64)
    return float(both[0, 1])


def _deviation(scores: Numbers) -> float:
    """Return the standard deviation, 1 where the scores differ by rounding errors alone."""
    deviation = float(scores.std())
    return deviation if deviation > ROUNDING * float(np.abs(scores).max(initial=0.0)) else 1.0


def _unit(weights: Numbers) -> Numbers:
    return weights / (float(np.linalg.norm(weights)) or 1.0)
