"""A trained pack that answers correct during a crawl: a sum of log odds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.topic.classifier import Text, sigmoid
from tres_scrapy.topic.pack import Judged, Pack, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from tres_scrapy.page.text import Page

    Numbers = NDArray[np.float64]

SUREST: Final = 1e-6  # least P(relevant), and least of the opposite, whose log odds are taken


def odds_of(probability: ArrayLike) -> Numbers:
    """Return the log odds of probabilities, finite for 0 and 1."""
    p = np.clip(np.asarray(probability, dtype=np.float64), SUREST, 1 - SUREST)
    return np.asarray(np.log(p / (1 - p)))


def at_threshold(odds: Numbers, threshold: float) -> Numbers:
    """Return P(relevant) for log odds that are 0 at a threshold."""
    return sigmoid(odds + odds_of(threshold))


class CorrectedPack(Pack):
    """A trained pack, or several as one, and `own`: what pages of the crawl and answers taught.

    The threshold stays that of the trained pack. Its own P(relevant) of a page is in `scores`,
    which the record keeps: later corrections start from it.
    """

    def __init__(self, trained: Pack, own: Pack) -> None:
        super().__init__(
            trained.name,
            threshold=trained.threshold,
            keywords=trained.keywords,
            classifier=own.classifier,
            calibration=own.calibration,
            language=trained.language,
            given=trained.given,
            prior_weight=own.prior_weight,
            mean_prior=own.mean_prior,
        )
        self._trained = trained

    def judge(self, pages: Sequence[Page]) -> list[Judged]:
        """Judge pages and the anchors of their links by the trained pack, and correct that."""
        judged = self._trained.judge(pages)
        texts = [text_of(page) for page in pages]
        own = self._corrected(texts, odds_of([each.probability for each in judged])).tolist()
        return [
            each._replace(
                probability=p,
                scores=each.scores or {self.name: each.probability},
                actions=self._with_anchors(each.actions, [link.anchor for link in each.page.links]),
            )
            for each, p in zip(judged, own, strict=True)
        ]

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4, 5 and 6 of P 2.4.1, [n, 3], for URLs and their anchor texts."""
        return self._with_anchors(self._trained.action_features(urls, anchors), anchors)

    def _with_anchors(
        self, features: NDArray[np.float32], anchors: Sequence[str]
    ) -> NDArray[np.float32]:
        """Return features of links with the corrected P(relevant) of their anchors.

        What a blind pack says of so few words is noise: it says the same of all.
        """
        corrected = features.copy()
        if anchors:
            texts, odds = [Text.of(anchor) for anchor in anchors], odds_of(features[:, 2])
            if self.mean_prior is not None:
                odds = np.full(len(texts), self.mean_prior)
            corrected[:, 2] = self._corrected(texts, odds)
        return corrected

    def _corrected(self, texts: Sequence[Text], trained: Numbers) -> Numbers:
        odds = self.classifier.logits(texts) + self.prior_weight * trained
        return at_threshold(self.calibration.log_odds(odds), self.threshold)
