"""A topic from keywords, seed pages, pages that a crawl has fetched, and a few answers.

It starts as the weighted words of the keywords and of words near them (word vectors). The pages of
a crawl have no labels: a mixture of two groups says how likely each is relevant by this first
score. The best of them are taken for relevant, the lower part for not, and a logistic regression
learns these two from all words of all fields (learning from positive and unlabelled pages: Bekker,
Davis, 2020). The first score is never learned from the regression, so that errors do not feed
themselves. An answered page counts more than others, and as answers come, fewer pages are taken for
relevant without one.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.classifier import (
    FIELDS,
    FREQUENCIES,
    RAREST_SHARE,
    URL,
    Background,
    BagOfWords,
    Calibration,
    WordVectors,
    field_of,
    sigmoid,
    stem,
)
from tres_scrapy.topic.fit import (
    BEST_PAGES,
    BEST_SHARE,
    FEWEST_PAGES,
    draw_sample,
    fit_mixture,
    held_out,
    learn,
    lift,
    pulls,
    threshold,
)
from tres_scrapy.topic.shipped import VECTORS, shipped_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.topic.fit import TwoGroups
    from tres_scrapy.topic.keyword import KeywordSet

    Numbers = NDArray[np.float64]

THRESHOLD: Final = 0.5  # the calibration moves, not the threshold
NEAR: Final = 0.3  # least cosine of a word to the keywords at which it counts
PHRASE_WORD: Final = 0.5  # weight of a word of a phrase, as a share of a keyword's
SEED_WEIGHT: Final = 0.5  # of the seed page, as a share of the keywords'
GENERAL_TEXTS: Final = 200  # that the shares of words in English count for, beside pages
DRIFT: Final = 0.3  # rank correlation of first score and model below which they disagree
URL_WEIGHT: Final = 0.5  # of a keyword in a URL, beside one in a text, before pages are known
AGREED_URL_WEIGHT: Final = 6.0  # after that, if URLs and texts agreed in all
URL_FIELD: Final = field_of(URL)
ALIKE: Final = 0.5  # least share of common words of two pages that teach the same
UNSURE: Final = 2.0  # deviation of the log odds at the threshold, without an answer
DOUBT: Final = 1.28  # deviations of an interval that holds four of five cases
STOP_STEMS: Final = frozenset(map(stem, STOP_WORDS))


class PageWords(NamedTuple):
    """What is kept of a fetched page: how often each word occurs, and what a person needs."""

    url: str
    title: str
    lead: str
    words: Mapping[str, int]
    is_seed: bool = False


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
        self._given = {stem(word): weight for word, weight in given.items()}
        shares: dict[str, float] = {}
        for word, share in zip(background.words, background.shares.tolist(), strict=True):
            shares[stem(word)] = max(share, shares.get(stem(word), 0.0))
        self._shares = shares
        known = [word for word in given if word in vectors]
        common = [w for w in vectors.words if stem(w) in shares and w not in STOP_WORDS]
        middle: Numbers = np.array([given[word] for word in known]) @ vectors.unit(known)
        close = vectors.unit(common) @ _unit(middle) if known else np.zeros(len(common))
        order = np.argsort(-close, kind="stable").tolist()
        self._close = {common[row]: float(close[row]) for row in order}

    @classmethod
    def in_english(cls, keywords: KeywordSet, models: Path | None = None) -> Self:
        """Return the topic of keywords, with what is known of the words of English.

        `models` is the folder of the shipped packs, if it is known.
        """
        return cls(keywords, *_english(models or shipped_models()))

    @property
    def unknown(self) -> list[str]:
        """The keywords without a vector: they are found only word for word."""
        return sorted(word for word in self.keywords.words if word not in self._vectors)

    def near(self, most: int) -> list[str]:
        """Return words close in meaning to the keywords, the closest first."""
        new = (word for word in self._close if stem(word) not in self._given)
        return [word for word, _ in zip(new, range(most), strict=False) if self._close[word] > 0]

    def fit(self, pages: Sequence[PageWords], answers: Mapping[str, bool]) -> TopicFit:
        """Return the model after these pages and answers, by URL; the same input, the same model.

        It takes less than a second of processor time for 2,000 pages.
        """
        words, rarity = self._vocabulary(pages)
        texts = _rows(BagOfWords(FIELDS, words, np.stack([rarity, rarity]), 0.0), pages)
        seeds = np.array([row for row, page in enumerate(pages) if page.is_seed], dtype=np.int64)
        first = self._first(words, rarity, texts, seeds)
        itself = _likeness_to_itself(pages)
        scores = texts @ first - itself
        mixture = fit_mixture(scores)
        if len(pages) < FEWEST_PAGES:
            return _made(words, rarity, first, _steep(mixture))._replace(pages=len(pages))
        told = {row: answers[page.url] for row, page in enumerate(pages) if page.url in answers}
        sample = draw_sample(scores, mixture.share, told)
        learned, bias = learn(texts, sample)
        judged = texts @ learned + bias
        few = lift(mixture.log_odds(scores), min(BEST_PAGES, BEST_SHARE * len(pages))) > 0
        found = held_out(texts, scores, mixture.share, told)
        edge = threshold(judged, mixture.share, told, found)
        fit = _made(words, rarity, learned, (1.0, bias - edge))
        return fit._replace(
            pages=len(pages),
            answers=len(told),
            share=mixture.share,
            few=few,
            agreement=_rank_correlation(scores, judged),
            interval=_interval(found - edge),
            pulls={
                pages[row].url: pull for row, pull in pulls(judged, sample).items() if row in told
            },
        )

    def _vocabulary(self, pages: Sequence[PageWords]) -> tuple[list[str], Numbers]:
        """Return the words that a model weighs, and how rare each is."""
        seen = Counter(word for page in pages for word in page.words)
        own = {word for page in pages if page.is_seed for word in page.words}
        own |= {word for word, number in seen.items() if number > 1}
        near = {stem(word) for word, close in self._close.items() if close > NEAR}
        kept = {*self._given, *near, *own}
        words = sorted(word for word in kept if word.rpartition(":")[2] not in STOP_STEMS)
        general = np.array([self._shares.get(word, RAREST_SHARE) for word in words])
        found = np.array([seen[word] for word in words])
        share = (GENERAL_TEXTS * general + found) / (GENERAL_TEXTS + len(pages))
        return words, 1 - np.log(share)

    def _first(
        self, words: Sequence[str], rarity: Numbers, texts: csr_array, seeds: NDArray[np.int64]
    ) -> Numbers:
        """Return the weight of each word by keywords, words near them and seed pages.

        Words in URLs count as far as they and the texts of these pages speak for the same pages.
        """
        close: dict[str, float] = {}
        for word, value in self._close.items():
            close.setdefault(stem(word), value)  # the closest form comes first
        bare = [word.rpartition(":")[2] for word in words]
        exact = np.array([self._given.get(word, 0.0) for word in bare]) * rarity
        near = np.maximum(0, np.array([close.get(word, 0.0) for word in bare]) - NEAR) * rarity
        field = np.array([*map(field_of, words)])
        both = sum(
            each / (float(np.linalg.norm(each[field == 0])) or 1.0) for each in (exact, near)
        )
        own, urls = np.where(field == 0, both, 0.0), np.where(field == URL_FIELD, both, 0.0)
        result = own + _url_weight(texts @ own, texts @ urls) * urls
        if len(seeds):
            result += SEED_WEIGHT * np.where(field == 0, texts[seeds].mean(axis=0), 0.0)
        return result


@cache
def _english(models: Path) -> tuple[Background, WordVectors]:
    return Background.load(models / FREQUENCIES), WordVectors.load(models / VECTORS)


def questions(
    judge: Callable[[Sequence[PageWords]], Numbers],
    pages: Sequence[PageWords],
    answers: Mapping[str, bool],
    most: int,
) -> list[tuple[PageWords, float]]:
    """Return the pages whose answers help most, with P(relevant) of each, which `judge` returns.

    Of five, two are the most likely pages, where yes and no both teach much, and three lie nearest
    to the threshold; no two are alike.
    """
    unanswered = [page for page in pages if page.url not in answers]
    p = judge(unanswered)
    best = np.argsort(-p, kind="stable").tolist()
    near = np.argsort(np.abs(p - THRESHOLD), kind="stable").tolist()
    rounds = ((*best[2 * n : 2 * n + 2], *near[3 * n : 3 * n + 3]) for n in range(len(p)))
    chosen: list[int] = []
    for row in dict.fromkeys(chain.from_iterable(rounds)):
        if len(chosen) == most:
            break
        alike = (_overlap(unanswered[row].words, unanswered[each].words) for each in chosen)
        if max(alike, default=0.0) < ALIKE:
            chosen.append(row)
    return [(unanswered[row], float(p[row])) for row in chosen]


def alikeness(model: BagOfWords, page: PageWords, others: Sequence[PageWords]) -> list[float]:
    """Return what each word of other pages weighs as it does in a page, [n], 1.5 at most."""
    own, *rest = _rows(model, [page, *others])
    return [float(own @ each) for each in rest]


def _likeness_to_itself(pages: Sequence[PageWords]) -> Numbers:
    """Return how much of the first score of each page is its likeness to itself, [n].

    The words of the seeds are in the first score. A seed that is a directory would be the most
    relevant page, and the only one.
    """
    seeds = np.array([page.is_seed for page in pages], dtype=np.float64)
    return SEED_WEIGHT * seeds / max(1.0, float(seeds.sum()))


def _overlap(a: Mapping[str, int], b: Mapping[str, int]) -> float:
    """Return the share of common words, without stop words."""
    ours, theirs = a.keys() - STOP_STEMS, b.keys() - STOP_STEMS
    return len(ours & theirs) / max(1, len(ours | theirs))


def _url_weight(own: Numbers, urls: Numbers) -> float:
    """Return what a word in a URL counts beside one in a text, by the pages that both rate."""
    if len(own) < FEWEST_PAGES:
        return URL_WEIGHT
    if not (own.std() and urls.std()):
        return 0.0
    return AGREED_URL_WEIGHT * max(0.0, float(np.corrcoef(own, urls)[0, 1])) ** 2


def _rows(model: BagOfWords, pages: Sequence[PageWords]) -> csr_array:
    """Return the value of each word in each page, [n, words]."""
    found = [model.weighted(page.words) for page in pages]
    ends = np.cumsum([0, *(len(ids) for ids, _ in found)])
    ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in found)])
    values = np.concatenate([np.zeros(0), *(values for _, values in found)])
    return csr_array((values, ids, ends), shape=(len(pages), len(model.words)))


def _made(
    words: list[str], rarity: Numbers, weights: Numbers, line: tuple[float, float]
) -> TopicFit:
    both = np.stack([rarity, weights]).astype(np.float32)
    return TopicFit(BagOfWords(FIELDS, words, both, 0.0), Calibration(*line))


def _steep(mixture: TwoGroups) -> tuple[float, float]:
    slope, middle = mixture.edge()
    return slope, -slope * middle


def _interval(log_odds: Numbers) -> tuple[float, float]:
    """Return the probabilities between which the threshold lies, by the answered pages alone."""
    p = sigmoid(log_odds)
    width = DOUBT / float(np.sqrt((p * (1 - p)).sum() + 1 / UNSURE**2))
    low, high = sigmoid(np.array([-width, width])).tolist()
    return low, high


def _rank_correlation(a: Numbers, b: Numbers) -> float:
    """Return the correlation of the ranks of two scores (Spearman)."""
    ranks = np.stack([np.argsort(np.argsort(each, kind="stable")) for each in (a, b)])
    both: Numbers = np.asarray(np.corrcoef(ranks), dtype=np.float64)
    return float(both[0, 1])


def _unit(weights: Numbers) -> Numbers:
    return weights / (float(np.linalg.norm(weights)) or 1.0)
