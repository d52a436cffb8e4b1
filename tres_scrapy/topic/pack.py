"""A topic pack: the keywords and the reward model of a topic, or of several (P 2.3, 3.3)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from tres_scrapy.links.code import RaggedArray, silent
from tres_scrapy.links.model import NO_PRIOR, LinkPrior
from tres_scrapy.page.copies import NOTHING, Known
from tres_scrapy.topic.classifier import BLANK_LOGIT, Calibration, Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack_file import (
    judge_name,
    language_code,
    number,
    read_classifier,
    read_facts,
    read_prior,
    share,
    strings,
)
from tres_scrapy.url.message import TresError, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.links.code import Name
    from tres_scrapy.page.text import Page
    from tres_scrapy.topic.classifier import Classifier


MAX_ANCHORS_KEPT: Final = 50_000
MAX_URLS_KEPT: Final = 20_000  # that were searched for keywords
MOVED_THRESHOLD: Final = 0.5  # of each of several topics, once its probabilities are moved

NO_SCORES: Final[Mapping[str, float]] = {}
NOTHING_AGAIN: Final[Mapping[str, float]] = {}
NOTHING_SAID: Final = silent(0)
AnchorFacts = tuple[bool, float]  # has a keyword, P(relevant)
OWN_THRESHOLD: Final = 0.5  # P(relevant) from which a page is relevant


class Judged(NamedTuple):
    """A page as it was read and judged, and the verdict of the crawl.

    `probability` is P(relevant), `actions` are features 4, 5 and 6 of each of its links; `scores`
    has P(relevant) by topic if there are several. `mark` is its fingerprint. `is_missing` marks a
    page that says "not found" with status 200, `wall` is its kind of wall, "" for a page of its
    site, `needs_scripts` marks one that scripts build, `is_broken` a document that cannot be read.
    `cues` holds what its links say, nothing of any link if that was not asked for, and `names` the
    texts that are new in it. `content` holds further fields of a page that may be relevant. `notes`
    are lines of the topic for the log. `model` names the model that judged it, "" unless the topic
    learns; `described` [n, 3] are features 4 to 6 of the source's `waiting` links, if any. `again`
    has P(relevant) of earlier pages if it asked: by the start of their `mark`, a sketch, in hex.

    The rest is from the crawl. The verdict: whether P(relevant) is at the threshold, whether it is
    a copy of an earlier page, or in a language that is not wanted.
    And how it was found: links from the seed, their URLs, and the text of the last.
    `reserved` names the uses of the crawl that the page reserves: it is kept out of the output.
    """

    page: Page
    probability: float
    actions: NDArray[np.float32]  # [links, 3]
    scores: Mapping[str, float] = NO_SCORES
    mark: bytes = b""
    known: Known = NOTHING
    is_missing: bool = False
    wall: str = ""
    cues: RaggedArray = NOTHING_SAID
    names: Sequence[Name] = ()
    needs_scripts: bool = False
    is_broken: bool = False
    content: tuple[tuple[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    model: str = ""
    described: NDArray[np.float32] | None = None
    again: Mapping[str, float] = NOTHING_AGAIN
    on_topic: bool = False
    is_copy: bool = False
    is_foreign: bool = False
    depth: int = 0
    path: Sequence[str] = ()
    anchor: str = ""
    reserved: tuple[str, ...] = ()

    @property
    def relevant(self) -> bool:
        """Whether the page counts as relevant in HR and for its domain."""
        return self.on_topic and not self.is_out

    @property
    def earns(self) -> bool:
        """Whether the page is relevant and says something of its own, so that it earns a reward."""
        return self.relevant and not self.known.is_echo

    @property
    def is_out(self) -> bool:
        """Whether the page cannot be relevant, whatever it is about."""
        return self.is_copy or self.is_foreign or not self.page.may_be_kept


class Pack:
    """The keywords, the reward model and the threshold of one topic."""

    def __init__(
        self,
        name: str,
        *,
        threshold: float,
        keywords: KeywordSet,
        classifier: Classifier | Callable[[], Classifier],
        calibration: Calibration,
        language: str = "",
        given: Sequence[str] = (),
        judged_by: str = "",
        link_prior: LinkPrior = NO_PRIOR,
        prior_weight: float = 0.0,
        mean_prior: float | None = None,
    ) -> None:
        self.name = name
        # of the log odds by another pack, which this one corrects; 0 for a pack by itself
        self.prior_weight = prior_weight
        self.mean_prior = mean_prior  # of pages by that pack, if it is blind to them
        self.link_prior = link_prior
        self.judged_by = judged_by  # a function of someone's own that the pack names, "" for none
        self._own_judge: OwnJudge | None = None
        self.given = tuple(given)  # the keywords before expansion
        self.language = language  # of the training documents, "" for any
        self.threshold = threshold
        self.keywords = keywords
        self._classifier = classifier
        self.calibration = calibration
        self._anchors: dict[str, AnchorFacts] = {}
        # links repeat within a site
        self._in_url = lru_cache(MAX_URLS_KEPT)(keywords.in_url)

    @cached_property
    def classifier(self) -> Classifier:
        """The reward model, read now if the pack was loaded without it."""
        made = self._classifier
        return made() if callable(made) else made

    @classmethod
    def load(cls, directory: Path, *, lazily: bool = False) -> Self:
        """Read a pack; raise TresError if a file is missing, changed or malformed.

        If `lazily`, the classifier is read only when it has a text to judge: PyTorch takes a
        second to load and 200 MB.
        """
        try:
            facts = read_facts(directory)
            given, expanded, phrases = (
                strings(name, facts["keywords"][name]) for name in ("given", "expanded", "phrases")
            )
            model = facts["classifier"]
            classifier = partial(read_classifier, directory, facts)
            mean = model.get("mean_prior")
            pack = cls(
                str(facts["name"]),
                threshold=share("threshold", facts["threshold"]),
                keywords=KeywordSet(given + expanded, phrases),
                classifier=classifier if lazily else classifier(),
                calibration=Calibration(*(number(n, model[n]) for n in Calibration._fields)),
                language=language_code(facts["language"]),
                given=given,
                judged_by=judge_name(facts.get("judge", "")),
                link_prior=read_prior(directory, facts["links"]) if "links" in facts else NO_PRIOR,
                prior_weight=number("prior_weight", model.get("prior_weight", 0.0)),
                mean_prior=None if mean is None else number("mean_prior", mean),
            )
            if lazily:  # the anchor of seeds is known without the classifier
                blank = np.array([number("bias", model.get("bias", BLANK_LOGIT))])
                pack._anchors[""] = False, float(pack.calibration.probabilities(blank)[0])
            return pack
        except Exception as error:  # unknown files may raise any error
            raise TresError(
                f"topic pack {directory.name!r}: {reason(error)}; train it again with `tres train`"
            ) from error

    def probabilities(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return P(relevant) of each text, [n]."""
        return self.calibration.probabilities(self.classifier.logits(texts))

    def judge_by(self, judge: OwnJudge) -> None:
        """Let a function of the user's own judge pages instead of the classifier."""
        self._own_judge = judge
        if judge.name != self.judged_by:
            self.threshold = OWN_THRESHOLD

    @property
    def has_own_judge(self) -> bool:
        """Whether a function of the user's own judges pages instead of the classifier."""
        return self._own_judge is not None

    def judge(self, pages: Sequence[Page]) -> list[Judged]:
        """Judge all pages and the anchors of their links in one call of the model."""
        own = None if self._own_judge is None else self._ask(self._own_judge, pages)
        return self._judged(pages, own)

    def _judged(
        self, pages: Sequence[Page], own: NDArray[np.float64] | None = None
    ) -> list[Judged]:
        """Judge pages; `own` is P(relevant) of each if it is known."""
        links = [link for page in pages for link in page.links]
        texts = [text_of(page) for page in pages]
        probabilities, anchors = self._score(
            texts if own is None else [], [link.anchor for link in links]
        )
        probabilities = probabilities if own is None else own
        features = self._features(links, anchors)
        ends = np.cumsum([len(page.links) for page in pages], dtype=np.int64)
        return [
            Judged(page, float(p), features[end - len(page.links) : end])
            for page, p, end in zip(pages, probabilities, ends, strict=True)
        ]

    def _ask(self, judge: OwnJudge, pages: Sequence[Page]) -> NDArray[np.float64]:
        """Return P(relevant) by the user's judge, 0 for those without title and text."""
        probabilities = np.zeros(len(pages))
        with_text = [number for number, page in enumerate(pages) if page.title or page.text]
        if with_text:
            probabilities[with_text] = judge([pages[number] for number in with_text])
        return probabilities

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4, 5 and 6 of P 2.4.1, [n, 3], for URLs and their anchor texts."""
        _, facts = self._score([], anchors)
        return self._features(zip(urls, anchors, strict=True), facts)

    def _score(
        self, texts: Sequence[Text], anchors: Sequence[str]
    ) -> tuple[NDArray[np.float64], dict[str, AnchorFacts]]:
        """Return P(relevant) of texts [n] and the facts of anchors, known ones from a cache."""
        # only single dict operations: several threads may call this
        kept = self._anchors
        known = {a: facts for a in dict.fromkeys(anchors) if (facts := kept.get(a)) is not None}
        new = [anchor for anchor in dict.fromkeys(anchors) if anchor not in known]
        if not texts and not new:
            return np.zeros(0), known
        probabilities = self.probabilities([*texts, *(Text.of(anchor) for anchor in new)])
        found = [self.keywords.in_text(anchor) for anchor in new]
        rated = zip(found, probabilities[len(texts) :].tolist(), strict=True)
        fresh = dict(zip(new, rated, strict=True))
        if len(kept) + len(fresh) > MAX_ANCHORS_KEPT:
            kept.clear()
        kept.update(fresh)
        return probabilities[: len(texts)], known | fresh

    def _features(
        self, links: Iterable[tuple[str, str]], facts: Mapping[str, AnchorFacts]
    ) -> NDArray[np.float32]:
        rows = [(self._in_url(url), *facts[anchor]) for url, anchor in links]
        return np.array(rows, dtype=np.float32).reshape(len(rows), 3)


class Topics(Pack):
    """Several packs as one: P(relevant) is the largest of theirs, a keyword one of any.

    Packs have thresholds of their own. Their probabilities are moved so that 0.5 is the threshold
    of each: the odds are divided by those of the threshold.
    """

    def __init__(self, packs: Sequence[Pack]) -> None:
        first, *_ = self._packs = tuple(packs)
        languages = {pack.language for pack in packs}
        super().__init__(
            "+".join(pack.name for pack in packs),
            threshold=MOVED_THRESHOLD,
            keywords=KeywordSet(
                frozenset().union(*(pack.keywords.words for pack in packs)),
                [phrase for pack in packs for phrase in pack.keywords.phrases],
            ),
            classifier=lambda: first.classifier,
            calibration=Calibration(1.0, 0.0),
            language=first.language if len(languages) == 1 else "",
            given=tuple(dict.fromkeys(word for pack in packs for word in pack.given)),
            link_prior=_best_of([pack.link_prior for pack in packs]),
            judged_by=next((pack.judged_by for pack in packs if pack.judged_by), ""),
        )
        blank = [pack._anchors.get("") for pack in packs]
        if all(facts is not None for facts in blank):  # known without a classifier
            found = np.array([[facts[1] for facts in blank if facts is not None]])
            self._anchors[""] = False, float(self._moved(found).max())

    def probabilities(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return P(relevant) of each text, [n]."""
        return np.asarray(self._scores(texts).max(axis=1))

    def judge(self, pages: Sequence[Page]) -> list[Judged]:
        """Judge all pages by each topic, and the anchors of their links."""
        texts = [text_of(page) for page in pages]
        scores = self._scores(texts)
        names = [pack.name for pack in self._packs]
        return [
            judged._replace(scores=dict(zip(names, row, strict=True)))
            for judged, row in zip(
                self._judged(pages, scores.max(axis=1)), scores.tolist(), strict=True
            )
        ]

    def _scores(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return P(relevant) of each text by each topic, [n, topics]."""
        return self._moved(np.stack([pack.probabilities(texts) for pack in self._packs], axis=1))

    def _moved(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        at = np.array([pack.threshold for pack in self._packs])
        yes, no = found * (1 - at), (1 - found) * at
        return np.asarray(yes / (yes + no))


def _best_of(priors: Sequence[LinkPrior]) -> LinkPrior:
    """Return for each code the largest weight that a topic gives it."""
    codes = np.unique(np.concatenate([prior.codes for prior in priors]))
    weights = np.zeros((len(priors), len(codes)), dtype=np.float32)
    for row, prior in zip(weights, priors, strict=True):
        row[np.searchsorted(codes, prior.codes)] = prior.weights
    return LinkPrior(codes, weights.max(axis=0))


def text_of(page: Page) -> Text:
    """Return what a model may read of a page."""
    return Text.of_page(page.title, page.text, page.url, (link.anchor for link in page.links))


def load_packs(places: Sequence[Path], *, lazily: bool = False) -> Pack:
    """Read the pack of a topic, or those of several as one; raise TresError as `Pack.load` does."""
    found = [Pack.load(place, lazily=lazily) for place in places]
    return found[0] if len(found) == 1 else Topics(found)


class OwnJudge:
    """Calls `package.module:callable` on batches of pages.

    The callable gets a list of pages and returns P(relevant) of each. A class is made once, without
    arguments. Raise TresError if there is no such callable or making it fails.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        module, _, attribute = name.partition(":")
        try:
            judge = getattr(importlib.import_module(module), attribute)
            self._rate = judge() if isinstance(judge, type) else judge
        except (Exception, SystemExit) as error:  # it may raise any error
            raise self._error(error) from error
        if not callable(self._rate):
            raise TresError(f"judge {name!r} is a {type(judge).__name__}, must be callable")

    def __call__(self, pages: Sequence[Page]) -> NDArray[np.float64]:
        """Return P(relevant) of each page, [n]; raise TresError if the function fails."""
        try:
            rated = np.array([float(each) for each in self._rate(list(pages))])
        except (Exception, SystemExit) as error:
            raise self._error(error) from error
        if len(rated) != len(pages):
            raise TresError(
                f"judge {self.name!r} returned {len(rated)} numbers for {len(pages)} pages: "
                "return one for each"
            )
        if not ((rated >= 0) & (rated <= 1)).all():  # NaN is not either
            wrong = float(rated[~((rated >= 0) & (rated <= 1))][0])
            raise TresError(f"judge {self.name!r} returned {wrong!r}, must be from 0 to 1")
        return rated

    def _error(self, error: BaseException) -> TresError:
        message = " ".join(str(error).split())
        return TresError(f"judge {self.name!r} failed: {type(error).__name__}: {message}")
