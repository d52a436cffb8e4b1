from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tres_scrapy.topic.classifier import Calibration, Text
from tres_scrapy.training.fitting import fit_bag
from tres_scrapy.training.sample import FOLDS, STRIPES, Example
from tres_scrapy.training.validation import (
    Epoch,
    Validation,
    cross_validate,
    judge,
)

SAME = Calibration(1.0, 0.0)


def examples(count: int = 200) -> list[Example]:
    """Each document has a unique word, by which a model could recognise it."""
    rng = np.random.default_rng(0)
    made = []
    for n in range(count):
        topic = ["cheese", "wine"] if rng.random() < (0.9 if n % 4 == 0 else 0.1) else ["disk"]
        title = topic[:1] if n % 5 else []
        made.append(Example(Text([*topic, "river", f"x{n}"]), Text(title), "web", n % 4 == 0))
    return made


class Fit:
    """Fits the linear model and records its training examples."""

    def __init__(self) -> None:
        self.seen: list[tuple[set[str], set[str]]] = []

    def __call__(self, training: Sequence[Example], validation: Sequence[Example]):
        marks = [{e.text.words[-1] for e in side} for side in (training, validation)]
        self.seen.append((marks[0], marks[1]))
        epochs = len(self.seen)
        history = tuple(Epoch(0.5, 0.1 * min(n, epochs)) for n in range(1, 7))
        return fit_bag("tfidf", training), history


class Unmoved(Fit):
    """Fits the original examples, even if their labels have changed."""

    def __init__(self, made: list[Example]) -> None:
        super().__init__()
        self._true = {e.text.words[-1]: e for e in made}

    def __call__(self, training: Sequence[Example], validation: Sequence[Example]):
        return super().__call__([self._true[e.text.words[-1]] for e in training], validation)


def test_every_document_is_held_out() -> None:
    made, stripe, fit = examples(), np.arange(200) % STRIPES, Fit()
    found = cross_validate("tfidf", made, stripe, fit)
    assert found.fold.tolist() == (stripe // 2).tolist()
    assert np.isfinite(found.texts).all()
    for fold, (training, validation) in enumerate(fit.seen):
        test = {f"x{n}" for n in np.flatnonzero(stripe // 2 == fold)}
        assert not training & test
        assert not validation & (test | training)
        assert len(training) + len(validation) + len(test) == 200
    everything = set.union(*(validation for _, validation in fit.seen))
    assert len(fit.seen) == FOLDS
    assert len(everything) == 100


def test_fold_calibrates_on_validation() -> None:
    made, stripe = examples(), np.arange(200) % STRIPES
    found = cross_validate("tfidf", made, stripe, Fit())
    train = [e for e, s in zip(made, stripe, strict=True) if s not in {0, 1, 2}]
    stop = [e for e, s in zip(made, stripe, strict=True) if s == 2]
    model = fit_bag("tfidf", train)
    scaling = judge("tfidf", model, stop).calibration
    expected = scaling.probabilities(model.logits([e.text for e in made]))
    assert found.texts[stripe < 2] == pytest.approx(expected[stripe < 2])


@pytest.mark.slow
def test_fold_labels_do_not_leak() -> None:
    made, stripe = examples(), np.arange(200) % STRIPES
    before = cross_validate("tfidf", made, stripe, Fit())
    for fold in range(FOLDS):
        test = stripe // 2 == fold
        turned = [replace(e, relevant=e.relevant != t) for e, t in zip(made, test, strict=True)]
        after = cross_validate("tfidf", turned, stripe, Unmoved(made))
        assert after.thresholds[fold] == pytest.approx(before.thresholds[fold])
        assert after.texts[test] == pytest.approx(before.texts[test])
        assert after.calibration != before.calibration  # the documents of the fold do change this


def test_fold_threshold_is_relevant() -> None:
    answers, fold = np.array([0.3, 0.3, 0.7]), np.array([0, 1, 1])
    found = Validation("svm", fold, fold > 0, answers, answers, (0.2, 0.5), 0.3, SAME)
    assert found.called.tolist() == [True, False, True]


def test_networks_judge_short_texts() -> None:
    """Networks are trained on snippets; linear models are not."""
    made = examples(40)
    model = fit_bag("tfidf", made)
    assert len(judge("tfidf", model, made).logits) == 40
    assert len(judge("bilstm", model, made).logits) == 80 + 32  # every fifth has no title


def test_titles_are_judged_if_any() -> None:
    made = examples()
    found = cross_validate("tfidf", made, np.arange(200) % STRIPES, Fit())
    assert np.isnan(found.titles).tolist() == [not e.title.words for e in made]


def test_epochs_come_from_middle_fold() -> None:
    found = cross_validate("tfidf", examples(), np.arange(200) % STRIPES, Fit())
    assert found.epochs == 6  # the later epoch wins a tie
    histories = tuple(tuple(Epoch(0, float(n == best)) for n in range(9)) for best in (1, 2, 8))
    assert replace(found, histories=histories).epochs == 3
    assert replace(found, histories=((), ())).epochs is None
