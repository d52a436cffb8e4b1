"""The results of a validation as tables and sentences (P 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.training.validation import Score, score
from tres_scrapy.url.message import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.validation import Validation

COLUMNS: Final = ("precision", "recall", "F-macro", "MCC", "PR-AUC")
NAME_WIDTH: Final = 34
FEW: Final = 50  # relevant documents; each fold tests a fifth of them
EXCERPT: Final = 12  # words of a text without title


class FigureRow(NamedTuple):
    """A row of the table: the figures of one fold, or the mean of all and its deviation."""

    name: str
    figures: Score
    deviation: Score | None = None


class Mistake(NamedTuple):
    """A document on the wrong side of the threshold."""

    probability: float
    document: Document

    @property
    def name(self) -> str:
        """Name the document, without control characters."""
        words = self.document.title.split() or self.document.text.split(maxsplit=EXCERPT)
        return printable(" ".join(words[:EXCERPT]))

    def __str__(self) -> str:
        kind = "missed" if self.document.relevant else "false"
        place = printable(f"{self.document.source} {self.document.host}")
        return f"{self.probability:5.3f} {kind:7}{place[:36]:37}{self.name[:50]}"


class SourceFigures(NamedTuple):
    """Results of the chosen model on one source; a share is None without documents."""

    source: str
    relevant: int
    irrelevant: int
    found: float | None
    let_through: float | None
    f_macro: float | None


def table(validations: Sequence[Validation]) -> str:
    """Return a text table of the chosen model, which is the first, and of the others."""
    lines = [" " * NAME_WIDTH + "".join(f"{column:>13}" for column in COLUMNS)]
    for row in rows(validations):
        if row.deviation is None:
            cells = [f"{value:13.3f}" for value in row.figures]
        else:
            pairs = zip(row.figures, row.deviation, strict=True)
            cells = [f"{value:7.3f}±{sd:.3f}" for value, sd in pairs]
        lines.append(f"{row.name:{NAME_WIDTH}}{''.join(cells)}")
    return "\n".join(lines)


def rows(validations: Sequence[Validation]) -> list[FigureRow]:
    """Return all folds of the first model, then means of all models on texts and titles."""
    chosen = validations[0]
    texts = _folds(chosen, chosen.texts)
    result = [FigureRow(f"{chosen.kind}, {name}", figures) for name, figures in texts.items()]
    for part in ("texts", "titles"):
        for validation in validations:
            folds = _folds(validation, getattr(validation, part))
            if folds:
                result.append(
                    _mean(f"{validation.kind}, {part}, mean of {len(folds)}", list(folds.values()))
                )
    return result


def means(validation: Validation) -> dict[str, dict[str, float]]:
    """Return the mean figures of the folds and their deviation, for texts and for titles."""
    result = {}
    for part in ("texts", "titles"):
        folds = list(_folds(validation, getattr(validation, part)).values())
        if folds:
            row = _mean(part, folds)
            result[part] = {k: round(v, 4) for k, v in row.figures._asdict().items()}
            if row.deviation is not None:
                result[part]["f_macro_deviation"] = round(row.deviation.f_macro, 4)
    return result


def mistakes(
    documents: Sequence[Document], validation: Validation, count: int = 10
) -> list[Mistake]:
    """Return up to `count` false and then missed documents, furthest from the threshold first."""
    distance = np.abs(validation.texts - np.array(validation.thresholds)[validation.fold])
    wrong = validation.called != validation.true
    result = []
    for kind in (~validation.true, validation.true):
        chosen = np.flatnonzero(wrong & kind)
        chosen = chosen[np.argsort(-distance[chosen], kind="stable")][:count]
        result += [Mistake(float(validation.texts[n]), documents[n]) for n in chosen.tolist()]
    return result


def verdict(validations: Sequence[Validation]) -> str:
    """Return a sentence on the chosen model and the best other; warn if documents are few."""
    figures = {v.kind: _mean("", list(_folds(v, v.texts).values())).figures for v in validations}
    chosen = figures.pop(validations[0].kind)
    precision, recall = round(100 * chosen.precision), round(100 * chosen.recall)
    text = (
        f"The chosen model is {validations[0].kind}: on hosts it was not trained on, {precision} % "
        f"of the documents it calls relevant are relevant, and it finds {recall} % of the relevant "
        f"ones (F-macro {chosen.f_macro:.3f}"
    )
    if figures:
        best = max(figures, key=lambda kind: figures[kind].f_macro)
        text += f"; {best}, the best of the others, has {figures[best].f_macro:.3f}"
    relevant = int(validations[0].true.sum())
    few = f" With only {relevant} relevant documents, these figures are unreliable."
    return f"{text}).{few if relevant < FEW else ''}"


def _folds(validation: Validation, answers: NDArray[np.float64]) -> dict[str, Score]:
    """Return the figures of each fold with answers; its name contains its size."""
    result = {}
    for fold in np.unique(validation.fold).tolist():
        held = (validation.fold == fold) & ~np.isnan(answers)
        if held.any():
            true = validation.true[held]
            name = f"fold {fold + 1}: {true.sum()} of {len(true)}"
            result[name] = score(true, answers[held], validation.thresholds[fold])
    return result


def _mean(name: str, folds: Sequence[Score]) -> FigureRow:
    spread = np.std(folds, axis=0, ddof=min(1, len(folds) - 1)).tolist()
    return FigureRow(name, Score(*np.mean(folds, axis=0).tolist()), Score(*spread))


def sources(documents: Sequence[Document], chosen: Validation) -> Iterator[SourceFigures]:
    """Yield the figures of each source; F-macro needs documents of both labels."""
    names = np.array([document.source for document in documents])
    called = chosen.called.astype(np.float64)  # 1 and 0, since thresholds differ by fold
    for source in dict.fromkeys(names.tolist()):
        here = names == source
        true = chosen.true[here]
        relevant, irrelevant = int(true.sum()), int((~true).sum())
        yield SourceFigures(
            source,
            relevant,
            irrelevant,
            float(called[here][true].mean()) if relevant else None,
            float(called[here][~true].mean()) if irrelevant else None,
            score(true, called[here], 1.0).f_macro if relevant and irrelevant else None,
        )
