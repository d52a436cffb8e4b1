"""Stratified cross-validation of a classifier, its scores, calibration and threshold (P 3.3).

The hosts are divided into ten stripes. The model of a fold is tested on two of them and trained on
seven; the last, the validation stripe, sets its epoch and calibration. Its threshold comes from the
validation stripes of all folds, except the one that it is tested on.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix_at_thresholds,
    matthews_corrcoef,
    precision_recall_fscore_support,
)
from sklearn.model_selection import StratifiedGroupKFold
from tqdm import tqdm

from tres_scrapy.topic.classifier import LINEAR_KINDS, Calibration, sigmoid
from tres_scrapy.topic.threshold import Share
from tres_scrapy.training.sample import FOLDS, STRIPES, lead
from tres_scrapy.url.message import TresError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import Classifier
    from tres_scrapy.training.document import Document
    from tres_scrapy.training.sample import Example

# Among epochs of nearly equal MCC the last is kept: its steps were smaller, and results on other
# sources, which a few validation hosts cannot show, still improve.
TOLERANCE: Final = 0.02
PLATEAU: Final = 0.01  # thresholds with an MCC this close to the best are equally good


class Score(NamedTuple):
    """Precision and recall for relevant, F-macro, Matthews correlation, average precision."""

    precision: float
    recall: float
    f_macro: float
    mcc: float
    pr_auc: float


def score(true: NDArray[np.bool_], probability: NDArray[np.float64], threshold: float) -> Score:
    """Score P(relevant) >= threshold against labels; undefined ratios are 0."""
    called = probability >= threshold
    precision, recall, f, _ = precision_recall_fscore_support(
        true, called, labels=[False, True], zero_division=0
    )
    return Score(
        float(precision[1]),
        float(recall[1]),
        float(f.mean()),
        float(matthews_corrcoef(true, called)) if len(np.unique([true, called])) > 1 else 0.0,
        float(average_precision_score(true, probability)) if true.any() else 0.0,
    )


def interval(found: int, count: int) -> Share:
    """Return the share `found / count` with its Wilson interval of 95 %."""
    ends = binomtest(found, count).proportion_ci(method="wilson")
    return Share(float(ends.low), found / count, float(ends.high))


class Threshold(NamedTuple):
    """A threshold and its MCC."""

    value: float
    mcc: float


def calibrate(logits: NDArray[np.float64], true: NDArray[np.bool_]) -> Calibration:
    """Fit slope and intercept to labels; P(relevant) assumes a similar share of relevant ones."""
    model = LogisticRegression(C=1.0).fit(logits[:, None], true)
    return Calibration(float(model.coef_[0, 0]), float(model.intercept_[0]))


def best_threshold(true: NDArray[np.bool_], values: NDArray[np.float64]) -> Threshold:
    """Return the middle of the plateau of thresholds around the best MCC, and that MCC.

    `values` [n] are logits or log odds; a document at the threshold is relevant. Without documents
    of both labels, return 0 and 0.
    """
    tn, fp, fn, tp, falling = confusion_matrix_at_thresholds(true, values, pos_label=True)
    spread = np.sqrt((tp + fp) * (tn + fn) * (tp + fn) * (tn + fp))
    mcc = np.divide(tp * tn - fp * fn, spread, out=np.zeros_like(tp), where=spread > 0)
    if not mcc.any():
        return Threshold(0.0, 0.0)
    best = int(np.argmax(mcc))
    poor = np.flatnonzero(mcc < mcc[best] - PLATEAU)
    first = int(poor[poor < best].max(initial=-1)) + 1
    end = int(poor[poor > best].min(initial=len(mcc)))  # at its value the decision is poor
    below = falling[min(end, len(mcc) - 1)]
    return Threshold(float(falling[first] + below) / 2, float(mcc[best]))


class Epoch(NamedTuple):
    """The mean training loss of an epoch and the validation MCC after it."""

    loss: float
    mcc: float


class HeldOut(NamedTuple):
    """The logits and labels of held-out documents, and the calibration fitted to them."""

    calibration: Calibration
    logits: NDArray[np.float64]
    true: NDArray[np.bool_]

    @property
    def log_odds(self) -> NDArray[np.float64]:
        """Calibrated log odds."""
        return self.calibration.log_odds(self.logits)


@dataclass(frozen=True, slots=True)
class Validation:
    """The answers of one kind of classifier; each document is judged by the fold that tests it."""

    kind: str
    fold: NDArray[np.int64]  # [n], the fold of each document
    true: NDArray[np.bool_]  # [n]
    texts: NDArray[np.float64]  # [n], calibrated P(relevant) of the whole document
    titles: NDArray[np.float64]  # [n], P(relevant) of the title alone, NaN without a title
    thresholds: tuple[float, ...]  # of each fold, chosen without its test documents
    threshold: float  # of a model trained on every document
    calibration: Calibration  # of that model
    histories: tuple[tuple[Epoch, ...], ...] = ()  # epochs of each fold, empty for linear models

    @property
    def called(self) -> NDArray[np.bool_]:
        """Which documents are called relevant at the threshold of their fold, [n]."""
        called: NDArray[np.bool_] = self.texts >= np.array(self.thresholds)[self.fold]
        return called

    @property
    def epochs(self) -> int | None:
        """The median of the best numbers of epochs of the folds, None for linear models."""
        best = [best_epoch(history) + 1 for history in self.histories if history]
        return round(float(np.median(best))) if best else None


def stripes(documents: Sequence[Document], count: int, *, seed: int) -> NDArray[np.int64]:
    """Return the stripe of each document, [n] in 0 to count - 1; a host is in one stripe.

    Raise TresError if a stripe would lack one of the labels.
    """
    true = np.array([document.relevant for document in documents], dtype=bool)
    hosts = [document.host for document in documents]
    result = np.zeros(len(documents), dtype=np.int64)
    if min(true.sum(), (~true).sum()) >= count:  # scikit-learn warns of fewer
        folds = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
        for stripe, (_, rows) in enumerate(folds.split(true, true, hosts)):
            result[rows] = stripe
    for label in sorted((True, False), key=lambda label: int((true == label).sum())):
        if len(np.unique(result[true == label])) < count:
            found = [document.host for document in documents if document.relevant is label]
            name = "relevant" if label else "irrelevant"
            raise TresError(
                f"{len(found)} {name} documents of {len(set(found))} hosts are too few: "
                f"cross-validation needs {count} hosts or more for each label: "
                "add documents from other hosts, or try --classifier words"
            )
    return result


def reporter(
    kind: str, say: Callable[[str], None], folds: int, *, more: bool
) -> Callable[..., None]:
    """Return a function that reports a fold, from 1, its PR-AUC and the time left for a classifier.

    `more` says whether a fit to all documents follows the folds.
    """
    began = monotonic()

    def ended(fold: int, pr_auc: float | None) -> None:
        found = "" if pr_auc is None else f", PR-AUC {pr_auc:.3f}"
        left = (monotonic() - began) / fold * (folds + more - fold)
        until = f", about {tqdm.format_interval(left)} left for {kind}" if left >= 1 else ""
        say(f"{kind}: fold {fold} of {folds}{found}{until}")

    return ended


def best_epoch(history: Sequence[Epoch]) -> int:
    """Return the index of the last epoch with an MCC within `TOLERANCE` of the best."""
    best = max(epoch.mcc for epoch in history)
    return max(place for place, epoch in enumerate(history) if epoch.mcc >= best - TOLERANCE)


def cross_validate(
    kind: str,
    examples: Sequence[Example],
    stripe: NDArray[np.int64],
    fit: Callable[[list[Example], list[Example]], tuple[Classifier, tuple[Epoch, ...]]],
    ended: Callable[[int, float], None] = lambda fold, pr_auc: None,
) -> Validation:
    """Fit one classifier per fold and return their answers for the test documents.

    `fit` gets the training and the validation documents; it returns the classifier of the best
    epoch, and all epochs if it has any. After each fold, call `ended` with its number, from 1, and
    the PR-AUC of its test documents.
    """
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
        ended(fold + 1, float(average_precision_score(true[test], texts[test])))
    # the validation stripe of a fold is tested in the next fold
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
    """Calibrate a model on held-out documents.

    Networks, which are trained on long and short texts, are judged on texts, leads and titles.
    """
    views = [(e.text, e.relevant) for e in examples]
    if kind not in LINEAR_KINDS:
        views += [(lead(e.text), e.relevant) for e in examples]
        views += [(e.title, e.relevant) for e in examples if e.title.words]
    logits = model.logits([text for text, _ in views])
    true = np.array([relevant for _, relevant in views], dtype=bool)
    return HeldOut(calibrate(logits, true), logits, true)


def choose_threshold(judged: Sequence[HeldOut]) -> float:
    """Return the threshold on P(relevant) with the best MCC over several models."""
    true = np.concatenate([each.true for each in judged])
    found = best_threshold(true, np.concatenate([each.log_odds for each in judged]))
    return float(sigmoid(np.array(found.value)))


def _chosen(examples: Sequence[Example], mask: NDArray[np.bool_]) -> list[Example]:
    return [examples[row] for row in np.flatnonzero(mask).tolist()]
