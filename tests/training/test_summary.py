from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tres_scrapy.topic.classifier import Calibration
from tres_scrapy.training.document import Document
from tres_scrapy.training.summary import SourceFigures, mistakes, sources, table, verdict
from tres_scrapy.training.validation import Validation, score

SAME = Calibration(1.0, 0.0)
HALF = (0.5, 0.5, 0.5)
TRUE = np.tile([True, False, False], 20)


def validation(kind: str, seed: int, *, true: np.ndarray = TRUE) -> Validation:
    rng = np.random.default_rng(seed)
    texts = np.clip(0.2 + 0.6 * true + rng.normal(0, 0.2, len(true)), 0, 1)
    return Validation(kind, np.arange(len(true)) // 3 % 3, true, texts, texts / 2, HALF, 0.5, SAME)


def documents(true: np.ndarray = TRUE) -> list[Document]:
    return [Document("a", "b", f"s{n % 2}", f"h{n}", bool(label)) for n, label in enumerate(true)]


def test_table_holds_folds_and_mean() -> None:
    models = [validation("bilstm", 0), validation("svm", 1)]
    chosen = models[0]
    held = [chosen.fold == fold for fold in range(3)]
    folds = np.array([score(TRUE[fold], chosen.texts[fold], 0.5) for fold in held])
    lines = table(models).splitlines()
    for fold, line in zip(folds, lines[1:4], strict=True):
        assert line.split()[-5:] == [f"{value:.3f}" for value in fold]
    means = zip(folds.mean(axis=0), folds.std(axis=0, ddof=1), strict=True)
    assert lines[4].split()[-5:] == [f"{mean:.3f}±{sd:.3f}" for mean, sd in means]
    names = [line[:34].strip() for line in lines]
    assert names == [
        "",
        *(f"bilstm, fold {fold}: {n} of {3 * n}" for fold, n in ((1, 7), (2, 7), (3, 6))),
        *(
            f"{kind}, {part}, mean of 3"
            for part in ("texts", "titles")
            for kind in ("bilstm", "svm")
        ),
    ]
    assert max(map(len, lines)) <= 100


def test_fold_uses_own_threshold() -> None:
    true = np.array([True, False, True, False])
    fold, texts = np.array([0, 0, 1, 1]), np.array([0.3, 0.1, 0.9, 0.7])
    chosen = Validation("svm", fold, true, texts, texts, (0.2, 0.8), 0.5, SAME)
    assert table([chosen]).count("1.000±0.000") == 10  # five figures on texts, five on titles
    assert mistakes(documents(true), chosen) == []
    one_source = [replace(document, source="web") for document in documents(true)]
    assert list(sources(one_source, chosen)) == [SourceFigures("web", 2, 2, 1.0, 0.0, 1.0)]
    close = replace(chosen, texts=np.array([0.3, 0.5, 0.9, 0.85]))
    assert [m.probability for m in mistakes(documents(true), close)] == [0.5, 0.85]
    swapped = replace(chosen, thresholds=(0.6, 0.5))
    assert [m.probability for m in mistakes(documents(true), swapped)] == [0.7, 0.3]


def test_untitled_documents_are_left_out() -> None:
    perfect = replace(validation("svm", 0), texts=TRUE * 1.0, titles=np.where(TRUE, 1.0, np.nan))
    *_, titles = table([perfect]).splitlines()
    assert titles.split()[-5:-3] == ["1.000±0.000"] * 2


def test_mistakes_are_furthest_from_threshold() -> None:
    true = np.array([True, True, True, False, False, False])
    texts = np.array([0.1, 0.4, 0.9, 0.6, 0.95, 0.2])
    found = mistakes(documents(true), replace(validation("svm", 0, true=true), texts=texts))
    assert [m.probability for m in found] == [0.95, 0.6, 0.1, 0.4]
    assert [m.document.relevant for m in found] == [False, False, True, True]
    few = mistakes(documents(true), replace(validation("svm", 0, true=true), texts=texts), 1)
    assert [m.probability for m in few] == [0.95, 0.1]


def test_mistake_is_one_safe_line() -> None:
    true = np.array([False])
    document = Document("\x1b[31m\u202e\n\x9b", "", "web", "h\x1b]0;", False)
    (found,) = mistakes([document], replace(validation("svm", 0, true=true), texts=np.ones(1)))
    assert str(found).isprintable()
    assert len(str(found)) <= 100


def test_verdict_names_best_models() -> None:
    good, bad = (
        replace(validation(kind, 0), texts=texts)
        for kind, texts in (("svm", TRUE * 1.0), ("tfidf", 1.0 - TRUE))
    )
    said = verdict([validation("bilstm", 0), bad, good])
    assert said.startswith("The chosen model is bilstm")
    assert "svm, the best of the others, has 1.000" in said


@pytest.mark.parametrize(("times", "few"), [(16, True), (17, False)])
def test_verdict_warns_of_few_documents(times: int, few: bool) -> None:
    true = np.tile([True, True, True, False], times)
    said = verdict([validation("svm", 0, true=true)])
    assert ("With only 48 relevant documents, these figures are unreliable." in said) is few


def test_single_label_has_no_f_macro() -> None:
    true = np.array([True, False, False, False])
    texts = np.array([0.9, 0.8, 0.9, 0.1])
    chosen = replace(validation("svm", 0, true=true), texts=texts)
    assert list(sources(documents(true), chosen)) == [
        SourceFigures("s0", 1, 1, 1.0, 1.0, pytest.approx(1 / 3)),
        SourceFigures("s1", 0, 2, None, 0.5, None),
    ]


def test_a_single_fold_has_no_deviation() -> None:
    model = replace(validation("svm", 0), fold=np.zeros(60, dtype=int))
    assert "svm, texts, mean of 1" in table([model])
    assert "nan" not in table([model])
