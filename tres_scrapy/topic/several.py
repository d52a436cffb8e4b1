"""Several topics in one crawl: a page is relevant if one of them says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.links.model import LinkPrior
from tres_scrapy.topic.calibration import Calibration
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Judgement, Pack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.page.text import Page

THRESHOLD: Final = 0.5  # of each topic, once its probabilities are moved


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
            threshold=THRESHOLD,
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

    def judge(self, pages: Sequence[Page]) -> list[Judgement]:
        """Judge all pages by each topic, and the anchors of their links."""
        texts = [Text.of(f"{page.title} {page.text}", page.url) for page in pages]
        scores = self._scores(texts)
        names = [pack.name for pack in self._packs]
        return [
            replace(judged, scores=dict(zip(names, row, strict=True)))
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


def load_packs(places: Sequence[Path], *, lazily: bool = False) -> Pack:
    """Read the pack of a topic, or those of several as one; raise PackError as `Pack.load` does."""
    found = [Pack.load(place, lazily=lazily) for place in places]
    return found[0] if len(found) == 1 else Topics(found)
