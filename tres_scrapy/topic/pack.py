"""A topic pack: the keywords and the reward model of a topic, in files without code (P 2.3, 3.3).

A pack is a directory `models/<topic>/` with `topic.toml` and the weights that it names. Packs share
the word vectors in a directory beside them.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import safetensors.numpy

from tres_scrapy.config.parser import CALLABLE
from tres_scrapy.links.code import CODES
from tres_scrapy.links.model import NO_PRIOR, LinkPrior
from tres_scrapy.topic.calibration import Calibration
from tres_scrapy.topic.classifier import BLANK_LOGIT, Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.topic.vectors import WordVectors
from tres_scrapy.url.message import TresError, reason
from tres_scrapy.url.whole_file import check_numbers, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.page.text import Page
    from tres_scrapy.topic.classifier import Classifier
    from tres_scrapy.topic.own_judge import OwnJudge

MAX_ANCHORS_KEPT: Final = 50_000
MOST_KEPT: Final = 20_000  # texts and URLs that were searched for keywords
MOST_FACTS: Final = 4 * 2**20  # limit of topic.toml in bytes
LARGEST: Final = 30.0  # weight of what a link says
MOST_BYTES: Final = 2**30  # limit of each file that it names

AnchorFacts = tuple[bool, float]  # has a keyword, P(relevant)


class PackError(TresError):
    """Raised when a directory is not a topic pack; the message is one line."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """P(relevant) of a page and features 4, 5 and 6 of each of its links.

    `scores` has P(relevant) by topic if there are several.
    """

    probability: float
    actions: NDArray[np.float32]  # [links, 3]
    scores: Mapping[str, float] = field(default_factory=dict)


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
    ) -> None:
        self.name = name
        self.link_prior = link_prior
        self.judged_by = judged_by  # a function of someone's own that the pack names, "" for none
        self.own_judge: OwnJudge | None = None  # judges pages instead of the classifier
        self.given = tuple(given)  # the keywords before expansion
        self.language = language  # of the training documents, "" for any
        self.threshold = threshold
        self.keywords = keywords
        self._classifier = classifier
        self.calibration = calibration
        self._anchors: dict[str, AnchorFacts] = {}
        # links repeat within a site
        self._in_url = lru_cache(MOST_KEPT)(keywords.in_url)

    @cached_property
    def classifier(self) -> Classifier:
        """The reward model, read now if the pack was loaded without it."""
        made = self._classifier
        return made() if callable(made) else made

    @classmethod
    def load(cls, directory: Path, *, lazily: bool = False) -> Self:
        """Read a pack; raise PackError if a file is missing, changed or malformed.

        If `lazily`, the classifier is read only when it has a text to judge: PyTorch takes a
        second to load and 200 MB.
        """
        try:
            path = _found(directory, TOPIC_FILE, within=directory, most=MOST_FACTS)
            facts = tomllib.loads(path.read_text(encoding="utf-8"))
            given, expanded, phrases = (
                _strings(name, facts["keywords"][name]) for name in ("given", "expanded", "phrases")
            )
            keywords = KeywordSet(given + expanded, phrases)
            model = facts["classifier"]
            classifier = partial(_read_classifier, directory, facts, keywords)
            pack = cls(
                str(facts["name"]),
                threshold=_share("threshold", facts["threshold"]),
                keywords=keywords,
                classifier=classifier if lazily else classifier(),
                calibration=Calibration(*(_number(n, model[n]) for n in Calibration._fields)),
                language=_code(facts["language"]),
                given=given,
                judged_by=_place("judge", facts.get("judge", "")),
                link_prior=_read_prior(directory, facts["links"]) if "links" in facts else NO_PRIOR,
            )
            if lazily:  # the anchor of seeds is known without the classifier
                blank = np.array([_number("bias", model.get("bias", BLANK_LOGIT))])
                pack._anchors[""] = False, float(pack.calibration.probabilities(blank)[0])
            return pack
        except Exception as error:  # unknown files may raise any error
            msg = (
                f"topic pack {directory.name!r}: {reason(error)}; train it again with `tres train`"
            )
            raise PackError(msg) from error

    def probabilities(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return P(relevant) of each text, [n]."""
        return self.calibration.probabilities(self.classifier.logits(texts))

    def judge(self, pages: Sequence[Page]) -> list[Judgement]:
        """Judge all pages and the anchors of their links in one call of the model."""
        own = None if self.own_judge is None else self._ask(self.own_judge, pages)
        return self._judged(pages, own)

    def _judged(
        self, pages: Sequence[Page], own: NDArray[np.float64] | None = None
    ) -> list[Judgement]:
        """Judge pages; `own` is P(relevant) of each if it is known."""
        links = [link for page in pages for link in page.links]
        texts = [Text.of(f"{page.title} {page.text}", page.url) for page in pages]
        probabilities, anchors = self._score(
            texts if own is None else [], [link.anchor for link in links]
        )
        probabilities = probabilities if own is None else own
        features = self._features(links, anchors)
        ends = np.cumsum([len(page.links) for page in pages], dtype=np.int64)
        return [
            Judgement(float(p), features[end - len(page.links) : end])
            for page, p, end in zip(pages, probabilities, ends, strict=True)
        ]

    def _ask(self, judge: OwnJudge, pages: Sequence[Page]) -> NDArray[np.float64]:
        """Return what the user's judge says of pages, 0 for those without title and text."""
        probabilities = np.zeros(len(pages))
        said = [number for number, page in enumerate(pages) if page.title or page.text]
        if said:
            probabilities[said] = judge([pages[number] for number in said])
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


def _read_classifier(directory: Path, facts: Mapping[str, Any], keywords: KeywordSet) -> Classifier:
    """Build the model of the recorded kind; raise ValueError or KeyError if a file differs."""
    import safetensors.torch  # noqa: PLC0415 - a process that judges no page needs no PyTorch

    from tres_scrapy.topic import bag, bilstm  # noqa: PLC0415

    sizes = facts["classifier"]
    # read, not memory-mapped: later changes of the file have no effect
    tensors = safetensors.torch.load(_verified(directory, sizes, within=directory).read_bytes())
    if sizes["kind"] in bag.KINDS:
        return bag.BagOfWords.of(sizes, tensors)
    if sizes["kind"] not in bilstm.KINDS:
        kinds = (*bilstm.KINDS, *bag.KINDS)
        msg = f"classifier kind {sizes['kind']!r} is unknown, must be one of {kinds}"
        raise ValueError(msg)
    models = directory.resolve().parent
    vectors = WordVectors.load(_verified(directory, facts["vectors"], within=models))
    return bilstm.BiLstm.of(sizes, tensors, vectors, keywords)


def _read_prior(directory: Path, facts: Mapping[str, Any]) -> LinkPrior:
    """Return the weights of what links say; raise ValueError or KeyError if they are impossible."""
    tensors = safetensors.numpy.load(_verified(directory, facts, within=directory).read_bytes())
    codes, weights = tensors["codes"], tensors["weights"]
    if codes.shape != weights.shape or codes.ndim != 1 or codes.dtype != np.uint32:
        raise ValueError(f"{facts['file']!r} must hold codes and as many weights")
    if len(codes) and codes.max() >= CODES:
        raise ValueError(f"{facts['file']!r} has a code of no link")
    if weights.dtype != np.float32 or not (np.abs(weights) <= LARGEST).all():
        raise ValueError(f"{facts['file']!r} must hold weights of {LARGEST:g} or less")
    return LinkPrior(codes, weights)


def _verified(directory: Path, facts: Mapping[str, Any], *, within: Path) -> Path:
    """Return the path of a file; raise ValueError if its hash is not the recorded one."""
    path = _found(directory, facts["file"], within=within, most=MOST_BYTES)
    if sha256(path) != facts["sha256"]:
        msg = f"file {facts['file']!r} does not have the SHA-256 that {TOPIC_FILE} records"
        raise ValueError(msg)
    return path


def _found(directory: Path, name: str, *, within: Path, most: int) -> Path:
    """Return the path of an ordinary file inside `within`, of `most` bytes or less."""
    path = (directory / name).resolve()
    if not path.is_relative_to(within.resolve()):
        msg = f"file {name!r} lies outside the directory {within.name!r}"
        raise ValueError(msg)
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        msg = f"file {name!r} must be an ordinary file of {most:,} bytes or less"
        raise ValueError(msg)
    return path


def _strings(name: str, values: object) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        msg = f"{name} {values!r} must be a list of strings"
        raise TypeError(msg)
    return values


def _place(name: str, value: str) -> str:
    if value and not re.fullmatch(CALLABLE, value):  # it is printed to terminals
        raise ValueError(f"{name} {value!r} must be package.module:callable, or empty")
    return value


def _code(language: str) -> str:
    if not re.fullmatch(r"([a-z]{2})?", language):  # it is printed to terminals
        raise ValueError(f"language {language!r} must be a code of two small letters, or empty")
    return language


def _number(name: str, value: float) -> float:
    check_numbers(name, value)
    return float(value)


def _share(name: str, value: float) -> float:
    if not 0 < value < 1:
        msg = f"{name} {value!r} must lie between 0 and 1"
        raise ValueError(msg)
    return value
