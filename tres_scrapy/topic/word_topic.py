"""A topic from keywords, seed pages, pages that a crawl has fetched, and a few answers.

It starts as the weighted words of the keywords and of words near them (word vectors). The pages of
a crawl have no labels: a mixture of two groups says how likely each is relevant by this first
score, and a logistic regression learns these probabilities from all words (positive-unlabelled
learning: Elkan, Noto, 2008; Bekker, Davis, 2020). The first score is never learned from the
regression, so that errors do not feed themselves. Answers correct the result, as far as the answers
predict each other better with the correction than without it.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.page.text import STOP_WORDS, tokenise
from tres_scrapy.topic.background import RAREST
from tres_scrapy.topic.bag import TFIDF, BagOfWords
from tres_scrapy.topic.calibration import Calibration, sigmoid
from tres_scrapy.topic.correction import fit_correction
from tres_scrapy.topic.logistic import Bags, fit_line, fit_logistic
from tres_scrapy.topic.mixture import fit_mixture, lift

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.background import Background
    from tres_scrapy.topic.keyword import KeywordSet
    from tres_scrapy.topic.mixture import TwoGroups
    from tres_scrapy.topic.vectors import WordVectors

    Numbers = NDArray[np.float64]

THRESHOLD: Final = 0.5  # the calibration moves, not the threshold
NEAR: Final = 0.3  # least cosine of a word to the keywords at which it counts
PHRASE_WORD: Final = 0.5  # weight of a word of a phrase, as a share of a keyword's
SEED_WEIGHT: Final = 0.5  # of the seed page, as a share of the keywords'
STRENGTH: Final = 10.0  # inverse of the penalty of the regression
PAGES_WEIGHT: Final = 200.0  # of all pages together, one each at most
TITLE_WEIGHT: Final = 0.5  # of a title beside its page: short texts such as anchors are judged too
TRUST: Final = 0.5  # weight of the first score beside the regression
# Prior variances of what answers change: the factor of the log odds, their shift, and words; of the
# last, the one by which the answers predict each other best.
SCALE: Final = 0.25
SHIFT: Final = 1.0
WORDS: Final = (0.0, 3.0, 10.0, 30.0, 100.0)
LEAST_SCALE: Final = 0.1
LEAST: Final = 0.2  # P(relevant) by the answers below which no page is relevant
BEST: Final = 5  # pages of the highest first score that are relevant until better ones are found
SHARE: Final = 0.3  # of all pages that these are at most
FEWEST: Final = 10  # pages to learn from
DRIFT: Final = 0.3  # rank correlation of first score and model below which they disagree
ALIKE: Final = 0.5  # least share of common words of two pages that teach the same
UNSURE: Final = 2.0  # deviation of the log odds at the threshold, without an answer
DOUBT: Final = 1.28  # deviations of an interval that holds four of five cases
ROUNDING: Final = 1e-9  # of a score


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

    def judge(self, sheets: Iterable[PageWords]) -> Numbers:
        """Return P(relevant) of pages [n]."""
        return self.calibration.probabilities(self.model.counted(each.words for each in sheets))


class WordTopic:
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
            raise ValueError(
                f"no keyword is a known English word ({names}): TRES has word vectors for English"
            )
        known = [word for word in given if word in vectors]
        units = vectors.unit(known) * np.array([given[word] for word in known])[:, None]
        middle = units.sum(axis=0)
        self._middle = middle / (float(np.linalg.norm(middle)) or 1.0)

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

    def fit(self, sheets: Sequence[PageWords], answers: Mapping[str, bool]) -> TopicFit:
        """Return the model after these pages and answers, by URL; the same input, the same model.

        It takes less than a second of processor time for 2,000 pages.
        """
        seen = Counter(word for sheet in sheets for word in sheet.words)
        own = {word for sheet in sheets if sheet.is_seed for word in sheet.words}
        own |= {word for word, number in seen.items() if number > 1}
        words = sorted({*self._shares, *self._given, *own} - STOP_WORDS)
        numbers = {word: row for row, word in enumerate(words)}
        rarity = np.array([1 - np.log(self._shares.get(word, RAREST)) for word in words])
        pages = [_weighted(sheet.words, numbers, rarity) for sheet in sheets]
        bags = Bags.of(pages, len(words))
        first = self._first(words, rarity, [s.words for s in sheets if s.is_seed])
        itself = _likeness_to_itself(sheets)
        scores = bags.times(first) - itself
        mixture = fit_mixture(scores)
        if len(sheets) < FEWEST:
            base = _made(words, rarity, first, _steep(mixture))
        else:
            log_odds = mixture.log_odds(scores)
            lifted = lift(log_odds, min(BEST, SHARE * len(sheets)))
            targets = sigmoid(log_odds + lifted)
            weights = np.full(len(sheets), min(1.0, PAGES_WEIGHT / len(sheets)))
            titles = [_weighted(Counter(tokenise(s.title)), numbers, rarity) for s in sheets]
            both_bags = Bags.of([*pages, *titles], len(words))
            twice = np.tile(targets, 2), np.concatenate([weights, TITLE_WEIGHT * weights])
            learned, _ = fit_logistic(both_bags, *twice, STRENGTH)
            found = bags.times(learned)
            both = learned / _deviation(found) + TRUST * first / _deviation(scores)
            judged = bags.times(both) - TRUST * itself / _deviation(scores)
            base = _made(words, rarity, both, fit_line(judged, targets, np.ones(len(sheets))))
            agreement = _rank_correlation(scores, judged)
            base = base._replace(share=mixture.share, few=lifted > 0, agreement=agreement)
        base = base._replace(pages=len(sheets))
        told = [row for row, sheet in enumerate(sheets) if sheet.url in answers]
        if not told:
            return base
        said = np.array([answers[sheets[row].url] for row in told], dtype=np.float64)
        denied = np.array(told)[said == 0]
        corrected, pulls = _corrected(
            base, bags, Bags.of([pages[row] for row in told], len(words)), said, denied
        )
        urls = [sheets[row].url for row in told]
        return corrected._replace(pulls=dict(zip(urls, pulls.tolist(), strict=True)))

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
        pages = [_weighted(seed, numbers, rarity) for seed in seeds]
        for ids, values in pages:
            result[ids] += SEED_WEIGHT * values / len(pages)
        return result


def questions(
    judge: Callable[[Sequence[PageWords]], Numbers],
    sheets: Sequence[PageWords],
    answers: Mapping[str, bool],
    most: int,
) -> list[tuple[PageWords, float]]:
    """Return the pages whose answers help most, with P(relevant) of each, which `judge` returns.

    They are drawn by the variance of an answer, so most are pages of which the model is unsure,
    below and above the threshold; no two are alike. The least sure come first.
    """
    untold = [sheet for sheet in sheets if sheet.url not in answers]
    p = judge(untold)
    falling = np.argsort(-p, kind="stable")
    near = np.argsort(np.abs(p - THRESHOLD), kind="stable")
    doubt = (p * (1 - p))[falling].cumsum()
    steps = (np.arange(2 * most) + 0.5) / (2 * most)
    places = np.searchsorted(doubt, steps * doubt[-1]) if len(p) else near
    places = np.concatenate([places[::2], places[1::2]])  # the second half replaces alike pages
    chosen: list[int] = []
    for row in dict.fromkeys([*falling[places].tolist(), *near.tolist()]):
        if len(chosen) == most:
            break
        alike = (_overlap(untold[row].words, untold[each].words) for each in chosen)
        if max(alike, default=0.0) < ALIKE:
            chosen.append(row)
    chosen.sort(key=lambda row: abs(p[row] - THRESHOLD))
    return [(untold[row], float(p[row])) for row in chosen]


def alikeness(model: BagOfWords, page: PageWords, others: Sequence[PageWords]) -> list[float]:
    """Return the cosine of a page's weighted words to those of others."""
    numbers = {word: row for row, word in enumerate(model.words)}
    rarity = model.weights[0].astype(np.float64)
    own, *rest = (_weighted(each.words, numbers, rarity) for each in (page, *others))
    at = np.zeros(len(model.words))
    at[own[0]] = own[1]
    return [float(at[ids] @ values) for ids, values in rest]


def _likeness_to_itself(sheets: Sequence[PageWords]) -> Numbers:
    """Return how much of the first score of each page is its likeness to itself, [n].

    The words of the seeds are in the first score. A seed that is a directory would be the most
    relevant page, and the only one.
    """
    seeds = np.array([sheet.is_seed for sheet in sheets], dtype=np.float64)
    return SEED_WEIGHT * seeds / max(1.0, float(seeds.sum()))


def _overlap(a: Mapping[str, int], b: Mapping[str, int]) -> float:
    """Return the share of common words, without stop words."""
    ours, theirs = a.keys() - STOP_WORDS, b.keys() - STOP_WORDS
    return len(ours & theirs) / max(1, len(ours | theirs))


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


def _corrected(
    base: TopicFit, pages: Bags, told: Bags, said: Numbers, denied: NDArray[np.int64]
) -> tuple[TopicFit, Numbers]:
    """Return a fit after answers about the pages `told`, and what each answer pulls.

    `pages` are all pages, `denied` the rows of those with the answer no. If hardly any other is
    relevant, the best of them are, as without answers: else the crawl would search no more.
    """
    rarity, weights = base.model.weights.astype(np.float64)
    slope, intercept = base.calibration
    before = slope * told.times(weights) + intercept
    alike = np.stack([told.times(told.turned(row)) for row in np.eye(len(said))])
    fixed = SHIFT + SCALE * np.outer(before, before)
    fits = [fit_correction(before, fixed + words * alike, said) for words in WORDS]
    best = max(range(len(WORDS)), key=lambda place: fits[place][1])
    change = fits[best][0]
    scale = max(LEAST_SCALE, 1 + SCALE * float(before @ change))
    after = scale * slope * weights + WORDS[best] * told.turned(change)
    middle = scale * intercept + SHIFT * float(change.sum())
    middle -= _edge(pages.times(after) + middle)
    others = np.delete(pages.times(after) + middle, denied)
    middle += lift(others, min(BEST, SHARE * len(others)))
    fit = _made(base.model.words, rarity, after, (1.0, middle))._replace(
        pages=base.pages,
        answers=len(said),
        share=base.share,
        few=base.few,
        agreement=base.agreement,
        interval=_interval(told.times(after), (1.0, middle)),
    )
    return fit, WORDS[best] * change


def _edge(logits: Numbers) -> float:
    """Return the log odds from which on pages are best called relevant.

    The threshold of the highest expected F1 is half that F1 (Lipton, Elkan, Narayanaswamy, 2014).
    At P 0.5 hardly any page of a vague topic would be relevant.
    """
    p = np.sort(sigmoid(logits))[::-1]
    best = float((2 * p.cumsum() / (np.arange(1, len(p) + 1) + p.sum())).max())
    edge = max(LEAST, best / 2)
    return float(np.log(edge / (1 - edge)))


def _steep(mixture: TwoGroups) -> tuple[float, float]:
    slope, middle = mixture.edge()
    return slope, -slope * middle


def _interval(scores: Numbers, line: tuple[float, float]) -> tuple[float, float]:
    """Return the probabilities between which the threshold lies, by the answered pages alone."""
    slope, intercept = line
    p = sigmoid(slope * scores + intercept)
    width = DOUBT / float(np.sqrt((p * (1 - p)).sum() + 1 / UNSURE**2))
    low, high = sigmoid(np.array([-width, width])).tolist()
    return low, high


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
