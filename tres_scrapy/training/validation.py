"""What a classifier answers for documents it has not seen (P 3.3: stratified cross-validation).

The hosts are divided into ten stripes. The model of a fold is tested on two of them, stopped and
calibrated by a third, and trained on the rest. Its threshold comes from the third stripes of those
folds whose stripe it is not tested on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from tres_scrapy.topic import bag
from tres_scrapy.topic.calibration import Calibration, sigmoid
from tres_scrapy.training.sample import FOLDS, STRIPES, lead
from tres_scrapy.training.threshold import best_threshold, calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import Classifier
    from tres_scrapy.training.sample import Example

# Of epochs that differ by chance the later is kept: its steps were smaller, and what a few
# validation hosts cannot show, how it does on other sources, goes on improving.
TOLERANCE: Final = 0.02


class Epoch(NamedTuple):
    """The mean training loss of an epoch and the validation MCC after it."""

    loss: float
    mcc: float


class Fit(Protocol):
    """Makes a classifier of training and validation documents."""

    def __call__(
        self, training: Sequence[Example], validation: Sequence[Example]
    ) -> tuple[Classifier, tuple[Epoch, ...]]:
        """Return the classifier of the best epoch and the figures of all, none without epochs."""


class HeldOut(NamedTuple):
    """Log odds that a calibrated model gives to held-out documents, and their labels."""

    calibration: Calibration
    logits: NDArray[np.float64]
    true: NDArray[np.bool_]

    @property
    def log_odds(self) -> NDArray[np.float64]:
        """Calibrated log odds."""
        return self.calibration.log_odds(self.logits)


@dataclass(frozen=True, slots=True)
class Validation:
    """The answers of one kind of classifier, each document judged in the fold that held it out."""

    kind: str
    fold: NDArray[np.int64]  # [n], the fold of each document
    true: NDArray[np.bool_]  # [n]
    texts: NDArray[np.float64]  # [n], calibrated P(relevant) of the whole document
    titles: NDArray[np.float64]  # [n], of the title alone, NaN where there is none
    thresholds: tuple[float, ...]  # of each fold, chosen without its documents
    threshold: float  # of a model trained on every document
    calibration: Calibration  # of the same
    histories: tuple[tuple[Epoch, ...], ...] = ()  # of each fold, empty where nothing iterates

    @property
    def called(self) -> NDArray[np.bool_]:
        """Which documents are called relevant at the threshold of their fold, [n]."""
        called: NDArray[np.bool_] = self.texts >= np.array(self.thresholds)[self.fold]
        return called

    @property
    def epochs(self) -> int | None:
        """How many epochs were best in most folds, None where nothing iterates."""
        best = [best_epoch(history) + 1 for history in self.histories if history]
        return round(float(np.median(best))) if best else None


def best_epoch(history: Sequence[Epoch]) -> int:
    """Return the place of the last epoch whose validation MCC is the best but for `TOLERANCE`."""
    best = max(epoch.mcc for epoch in history)
    return max(place for place, epoch in enumerate(history) if epoch.mcc >= best - TOLERANCE)


def cross_validate(
    kind: str, examples: Sequence[Example], stripe: NDArray[np.int64], fit: Fit
) -> Validation:
    """Fit one classifier per fold and return what each says of its test documents."""
    true = np.array([e.relevant for e in examples], dtype=bool)
    titled = np.array([len(e.title.words) > 0 for e in examples])
    texts, titles = np.full(len(examples), np.nan), np.full(len(examples), np.nan)
    judged, histories = [], []
    for fold in range(FOLDS):
        test, stop = stripe // 2 == fold, stripe == (2 * fold + 2) % STRIPES
        held_out = _chosen(examples, stop)
        model, history = fit(_chosen(examples, ~test & ~stop), held_out)
        judged.append(judge(kind, model, held_out))
        answer = judged[-1].calibration.probabilities
        texts[test] = answer(model.logits([e.text for e in _chosen(examples, test)]))
        named = _chosen(examples, test & titled)
        titles[test & titled] = answer(model.logits([e.title for e in named]))
        histories.append(history)
    # the documents that judged a fold are tested in the next one
    others = [[j for k, j in enumerate(judged) if k != (fold - 1) % FOLDS] for fold in range(FOLDS)]
    return Validation(
        kind,
        stripe // 2,
        true,
        texts,
        titles,
        tuple(choose_threshold(chosen) for chosen in others),
        choose_threshold(judged),
        calibrate(*(np.concatenate([j[part] for j in judged]) for part in (1, 2))),
        tuple(histories),
    )


def judge(kind: str, model: Classifier, examples: Sequence[Example]) -> HeldOut:
    """Calibrate a model by documents that it was not trained on.

    A page may be long or short: what was trained on both is judged on whole texts, leads, titles.
    """
    views = [(e.text, e.relevant) for e in examples]
    if kind not in bag.KINDS:
        views += [(lead(e.text), e.relevant) for e in examples]
        views += [(e.title, e.relevant) for e in examples if e.title.words]
    logits = model.logits([text for text, _ in views])
    true = np.array([relevant for _, relevant in views], dtype=bool)
    return HeldOut(calibrate(logits, true), logits, true)


def choose_threshold(judged: Sequence[HeldOut]) -> float:
    """Return the P(relevant) at which the decisions of several models have the best MCC."""
    true = np.concatenate([each.true for each in judged])
    found = best_threshold(true, np.concatenate([each.log_odds for each in judged]))
    return float(sigmoid(np.array(found.value)))


def _chosen(examples: Sequence[Example], mask: NDArray[np.bool_]) -> list[Example]:
    return [examples[row] for row in np.flatnonzero(mask).tolist()]
