"""A topic from keywords, seed pages, pages that a crawl has fetched, and a few answers.

What a trained pack says of the pages may take the place of the keywords: answers then correct it.
Without answers it stands alone, unless it is blind here: it calls far fewer pages relevant than its
own keywords let expect, as the pages that it was trained on were of another kind.

It starts as the weighted words of the keywords and of words near them (word vectors). After ten
pages, their fields say how likely each is relevant by the keywords (keyword_score.py), and a
logistic regression learns the best and the worst of them, and what was answered (learning.py).
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.classifier import (
    FIELD_SHARES,
    FIELDS,
    FREQUENCIES,
    LINK,
    RAREST_SHARE,
    URL,
    Background,
    BagOfWords,
    Calibration,
    WordVectors,
    is_of_text,
    sigmoid,
)
from tres_scrapy.topic.fit import Bags
from tres_scrapy.topic.joint import BEST_PAGES, Start, blindness_of, joined
from tres_scrapy.topic.keyword_score import GENERAL_TEXTS, Keyword, forms, log_odds
from tres_scrapy.topic.learning import learn
from tres_scrapy.topic.shipped import VECTORS, shipped_models
from tres_scrapy.topic.threshold import Threshold
from tres_scrapy.topic.word_table import WordTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.topic.keyword import KeywordSet
    from tres_scrapy.topic.pack import Pack

    Numbers = NDArray[np.float64]

THRESHOLD: Final = 0.5  # the calibration moves, not the threshold
NEAR: Final = 0.3  # least cosine of a word to the keywords at which it counts
PHRASE_WORD: Final = 0.5  # weight of a word of a phrase, as a share of a keyword's
SEED_WEIGHT: Final = 0.5  # of the seed page, as a share of the keywords'
FEWEST_PAGES: Final = 10  # pages to learn from
FIRST_SLOPE: Final = 60.0  # of the log odds by keywords alone, before pages
FIRST_MIDDLE: Final = 0.1


class PageWords(NamedTuple):
    """What is kept of a fetched page: how often each word occurs, and what a person needs."""

    url: str
    title: str
    lead: str
    words: Mapping[str, int]
    is_seed: bool = False
    prior: float | None = None  # log odds by a trained pack, instead of or beside the keywords

    def text_alone(self) -> PageWords:
        """Return the page without the words of its links and its URL."""
        return self._replace(words={w: n for w, n in self.words.items() if is_of_text(w)})


class TopicFit(NamedTuple):
    """A model of a topic, and what is known about it.

    `few` says whether hardly a page fits the keywords. `pulls` holds, by URL of an answered page,
    what the answer adds to the log odds of a page with exactly its words. `prior_weight` is how
    much the log odds by a trained pack count, 0 without one. `found` is P(relevant) of the pages
    that were learned [n], if it was computed. `mean_prior` is the mean of the log odds by a trained
    pack that is blind, None by others; `blindness` says why, if it was found so now.
    """

    model: BagOfWords
    calibration: Calibration
    pages: int = 0
    answers: int = 0
    few: bool = False
    threshold: Threshold = Threshold()
    pulls: Mapping[str, float] = MappingProxyType({})
    prior_weight: float = 0.0
    found: Numbers | None = None
    blindness: str = ""
    mean_prior: float | None = None

    @classmethod
    def of(cls, pack: Pack) -> Self:
        """Return the model that a topic's own pack holds."""
        assert isinstance(pack.classifier, BagOfWords)  # a topic that learns holds no other
        return cls(
            pack.classifier,
            pack.calibration,
            prior_weight=pack.prior_weight,
            mean_prior=pack.mean_prior,
        )

    @classmethod
    def uncorrected(cls, pages: int = 0) -> Self:
        """Return what is known of a trained pack before the first answer: its own log odds."""
        model = _made(["the"], np.ones(1), np.zeros(1))  # a word that says nothing
        return cls(model, Calibration(1.0, 0.0), pages, prior_weight=1.0)

    @property
    def is_uncorrected(self) -> bool:
        """Whether a trained pack stands alone."""
        return bool(self.prior_weight) and not self.model.weights[1].any()

    @property
    def shares(self) -> dict[str, list[float]]:
        """Precision and recall with intervals, nothing where they are unknown."""
        both = {"precision": self.threshold.precision, "recall": self.threshold.recall}
        return {name: [round(each, 4) for each in share] for name, share in both.items() if share}

    @property
    def accuracy(self) -> str:
        """What is known of the pages called relevant, in one line."""
        precision, recall = self.threshold.precision, self.threshold.recall
        if precision is None:
            return (
                f"precision and recall are unknown without {'a yes' if self.answers else 'answers'}"
            )
        return f"by the answers, precision is {precision}, recall {recall}"

    def judge(self, pages: Iterable[PageWords]) -> Numbers:
        """Return P(relevant) of pages [n]."""
        pages = list(pages)
        words = self.model.logits_of_counts(each.words for each in pages)
        return self.calibration.probabilities(words + self.prior_weight * _priors(pages))


class _Read(NamedTuple):
    """What is read of pages: the words that a model weighs, how rare each is, the weighted texts.

    `first` are the weights of the words before pages are learned; `by_keywords` returns what the
    keywords alone say of each page.
    """

    words: list[str]
    rarity: Numbers
    texts: Bags
    first: Numbers
    by_keywords: Callable[[], Start]


class KeywordTopic:
    """The words of a topic; `fit` turns them, and what a crawl has fetched, into a model."""

    def __init__(self, keywords: KeywordSet, background: Background, vectors: WordVectors) -> None:
        self.keywords = keywords
        self._vectors = vectors
        inner = {w: PHRASE_WORD for phrase in keywords.phrases for w in tokenise(phrase)}
        given = {w: weight for w, weight in inner.items() if w not in STOP_WORDS}
        given |= dict.fromkeys(sorted(keywords.words), 1.0)
        self._given = given
        self._forms = {word: sorted(forms(word) - (given.keys() - {word})) for word in given}
        known = [word for word in given if word in vectors]
        weights = np.array([given[word] for word in known], dtype=np.float64)
        middle: Numbers = weights @ vectors.unit(known).astype(np.float64)
        self._middle = _unit(middle)
        self._has_vectors = bool(known)
        self._english = dict(zip(background.words, background.shares.tolist(), strict=True))
        mean = middle / max(1e-9, float(weights.sum()))
        self._table = WordTable(background, vectors, mean)
        for word in given:
            self._table.number(word)

    @classmethod
    def in_english(cls, keywords: KeywordSet, models: Path | None = None) -> Self:
        """Return the topic of keywords of any language; only English ones have near words.

        `models` is the folder of the shipped packs, if it is known.
        """
        return cls(keywords, *_english(models or shipped_models()))

    @property
    def unknown(self) -> list[str]:
        """The keywords without a vector: they are found only word for word."""
        return sorted(word for word in self.keywords.words if word not in self._vectors)

    def near(self, most: int) -> list[str]:
        """Return words close in meaning to the keywords, the closest first."""
        if not self._has_vectors:
            return []
        words = self._vectors.words
        common = [w for w in words if w in self._english and w not in STOP_WORDS]
        close = self._vectors.unit(common) @ self._middle
        order = np.argsort(-close, kind="stable")
        found = [common[place] for place in order[: most + len(self._given)].tolist()]
        return [word for word in found if word not in self._given][:most]

    def fit(
        self,
        pages: Sequence[PageWords],
        answers: Mapping[str, bool],
        edge: float = 0.0,
        *,
        doubts: bool = False,
        is_blind: bool = False,
    ) -> TopicFit:
        """Return the model after these pages and answers, by URL; the same input, the same model.

        Pages whose `prior` is `edge` or more are relevant by their trained pack. It stands alone
        before the first answer, unless one `doubts` it and it is found blind, now or before.

        It takes about half a second of processor time for 2,000 pages.
        """
        told = {row: answers[page.url] for row, page in enumerate(pages) if page.url in answers}
        has_prior = any(page.prior is not None for page in pages)
        if has_prior and not told and (not doubts or len(pages) < FEWEST_PAGES):
            return TopicFit.uncorrected(len(pages))
        read = self._read(pages)
        if not told and len(pages) < FEWEST_PAGES:
            line = Calibration(FIRST_SLOPE, -FIRST_SLOPE * FIRST_MIDDLE)
            return TopicFit(_made(read.words, read.rarity, read.first), line, len(pages))
        trained = _priors(pages)
        if not has_prior:
            start = read.by_keywords()
        elif doubts:
            start = _doubted(read, trained, told, edge, is_blind=is_blind)
        else:
            start = Start.of_pack(trained, edge, len(read.words))
        is_blind = start.blind is not None
        if has_prior and not (told or is_blind):
            return TopicFit.uncorrected(len(pages))
        lesson = learn(read.texts, start.log_odds, told)
        joint = joined(lesson, start, told)
        found = joint.threshold
        line = Calibration(found.slope, found.slope * (lesson.intercept - found.place))
        weights = lesson.weights + joint.trust * start.weights
        few = float(sigmoid(start.log_odds).sum()) < BEST_PAGES
        return TopicFit(
            _made(read.words, read.rarity, weights),
            line,
            pages=len(pages),
            answers=len(told),
            few=few and not (has_prior or any(told.values())),
            threshold=found,
            pulls={pages[row].url: found.slope * pull for row, pull in lesson.pulls.items()},
            prior_weight=joint.prior_weight,
            found=line.probabilities(read.texts.times(weights) + joint.prior_weight * trained),
            blindness=start.reason,
            mean_prior=float(trained.mean()) if is_blind else None,
        )

    def _read(self, pages: Sequence[PageWords]) -> _Read:
        """Return what is read of pages, and the weight of each word by the keywords."""
        counts, nearness = self._table.read([page.words for page in pages])
        words, counts, rarity, fields = self._vocabulary(pages, counts)
        texts, keywords = _weighted(counts, rarity, fields), self._keywords(words)
        seeds = [row for row, page in enumerate(pages) if page.is_seed]
        first = self._first(words, rarity, texts.take(seeds), keywords)

        def by_keywords() -> Start:
            score = texts.times(first) - _likeness_to_itself(pages)
            return Start(log_odds(counts, fields, keywords, nearness), score, first)

        return _Read(words, rarity, texts, first, by_keywords)

    def _vocabulary(
        self, pages: Sequence[PageWords], counts: Bags
    ) -> tuple[list[str], Bags, Numbers, NDArray[np.int64]]:
        """Return the words that a model weighs, in order, with counts, rarity and field of each.

        These are words of English, the keywords, and words of seeds or of two pages.
        """
        table = self._table
        seen = np.bincount(counts.ids, minlength=counts.width)
        kept = (np.array(table.shares) != RAREST_SHARE) | (seen > 1)
        spoken = [word for each in self._forms.values() for word in each]
        kept[table.rows([name + word for name in ("", LINK, URL) for word in spoken])] = True
        seeds = [row for row, page in enumerate(pages) if page.is_seed]
        kept[counts.take(seeds).ids] = True
        rows = sorted(np.flatnonzero(kept).tolist(), key=table.words.__getitem__)
        place = np.full(counts.width, -1)
        place[rows] = np.arange(len(rows))
        chosen = counts.chosen(place, len(rows))
        shares = (GENERAL_TEXTS * np.array(table.shares)[rows] + seen[rows]) / (
            GENERAL_TEXTS + len(pages)
        )
        words = [table.words[row] for row in rows]
        return words, chosen, 1 - np.log(shares), np.array(table.fields)[rows]

    def _keywords(self, words: Sequence[str]) -> list[Keyword]:
        """Return the keywords, with the numbers of their forms among these words."""
        numbers = {word: row for row, word in enumerate(words)}
        found = []
        for word, weight in self._given.items():
            fields = [
                [row for form in self._forms[word] if (row := numbers.get(name + form)) is not None]
                for name in ("", LINK, URL)
            ]
            english = sum(self._english.get(form, 0.0) for form in self._forms[word])
            found.append(Keyword(weight, min(0.5, max(english, RAREST_SHARE)), fields))
        return found

    def _first(
        self, words: Sequence[str], rarity: Numbers, seeds: Bags, keywords: Sequence[Keyword]
    ) -> Numbers:
        """Return the weight of each word by keywords, words near them and seed pages."""
        exact = np.zeros(len(words))
        for keyword in keywords:
            for row in keyword.rows[0]:
                exact[row] = keyword.weight * rarity[row]
        near = np.maximum(0, self._table.near(words) - NEAR) * rarity
        result = _unit(exact) + _unit(near)
        share = SEED_WEIGHT / max(1, seeds.height)
        return result + share * seeds.turned(np.ones(seeds.height))


@cache
def _english(models: Path) -> tuple[Background, WordVectors]:
    return Background.load(models / FREQUENCIES), WordVectors.load(models / VECTORS)


def alikeness(model: BagOfWords, page: PageWords, others: Sequence[PageWords]) -> list[float]:
    """Return the cosine of a page's weighted words to those of others."""
    own, *rest = (model.weighted(each.words) for each in (page, *others))
    at = np.zeros(len(model.words))
    at[own[0]] = own[1]
    return [float(at[ids] @ values) for ids, values in rest]


def _priors(pages: Sequence[PageWords]) -> Numbers:
    """Return the log odds of pages by a trained pack, 0 where there is none, [n]."""
    return np.array([page.prior or 0.0 for page in pages], dtype=np.float64)


def _doubted(
    read: _Read, trained: Numbers, told: Mapping[int, bool], edge: float, *, is_blind: bool
) -> Start:
    """Return what a trained pack says of pages, or its keywords if it `is_blind` or found so."""
    start = read.by_keywords()
    likely = sigmoid(start.log_odds)
    likely[list(told)] = list(told.values())
    reason = "" if is_blind else blindness_of(trained >= edge, likely)
    if is_blind or reason:
        return start._replace(blind=trained, reason=reason)
    return Start.of_pack(trained, edge, len(read.words))


def _likeness_to_itself(pages: Sequence[PageWords]) -> Numbers:
    """Return how much of the first score of each page is its likeness to itself, [n].

    The words of the seeds are in the first score. A seed that is a directory would be the most
    relevant page, and the only one.
    """
    seeds = np.array([page.is_seed for page in pages], dtype=np.float64)
    return SEED_WEIGHT * seeds / max(1.0, float(seeds.sum()))


def _weighted(counts: Bags, rarity: Numbers, fields: NDArray[np.int64]) -> Bags:
    """Return texts as `BagOfWords` of kind FIELDS weighs them."""
    values = (1 + np.log(counts.values)) * rarity[counts.ids]
    cells = counts.rows * len(FIELD_SHARES) + fields[counts.ids]
    size = counts.height * len(FIELD_SHARES)
    lengths = np.sqrt(np.bincount(cells, values**2, size))[cells]
    return counts._replace(values=values * FIELD_SHARES[fields[counts.ids]] / lengths)


def _made(words: list[str], rarity: Numbers, weights: Numbers) -> BagOfWords:
    both = np.stack([rarity, weights]).astype(np.float32)
    return BagOfWords(FIELDS, words, both, 0.0)


def _unit(weights: Numbers) -> Numbers:
    return weights / (float(np.linalg.norm(weights)) or 1.0)
