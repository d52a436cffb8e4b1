"""The HTML report of a training: scores, mistakes and a chart of its cross-validation (P 3.3)."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.metrics import precision_recall_curve

from tres_scrapy.report.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    Chart,
    chart_page,
    layout,
    line,
    write_page,
)
from tres_scrapy.training.summary import COLUMNS, mistakes, rows, sources, verdict
from tres_scrapy.training.validation import score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.validation import Validation

TEMPLATE: Final = "training/report.html.jinja"
COLOURS: Final = (BLUE, ORANGE, GREEN, PURPLE, GREY)
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")  # for readers who see no colours


def write_report(
    path: Path,
    facts: Mapping[str, Any],
    documents: Sequence[Document],
    validations: Sequence[Validation],
    census: object,
) -> None:
    """Write the page as one file without network requests; same input, same bytes."""
    chosen = validations[0]
    text = chart_page(
        TEMPLATE,
        [_curves(validations)],
        facts=facts,
        columns=COLUMNS,
        rows=rows(validations),
        verdict=verdict(validations),
        chosen=chosen,
        sources=list(sources(documents, chosen)),
        mistakes=mistakes(documents, chosen),
        census=census,
    )
    write_page(path, text)


def _curves(validations: Sequence[Validation]) -> Chart:
    lowest, data = 1.0, []
    for validation, colour, dash in zip(validations, cycle(COLOURS), cycle(DASHES), strict=False):
        precision, recall, _ = precision_recall_curve(validation.true, validation.texts)
        precision[-1] = precision[-2]  # scikit-learn ends the curve at precision 1
        figures = score(validation.true, validation.texts, validation.threshold)
        name = f"{validation.kind} (area {figures.pr_auc:.3f})"
        data += [
            _line(recall, precision, name, colour, dash=dash),
            _dots([figures.recall], [figures.precision], colour),
        ]
        lowest = min(lowest, figures.precision, figures.recall)
    start = float(max(0, np.floor(lowest * 10 - 2) / 10))
    return Chart(
        "curves",
        "How much precision does finding more cost?",
        "The nearer to the upper right corner, the better. The dots are the models at their "
        f"thresholds; the chosen model's is {validations[0].threshold:.2f}. The axes need not "
        "start at 0.",
        data,
        layout(
            "recall: share of the relevant documents found",
            "precision: share of those found that are relevant",
            height=440,
            hovermode="closest",
            xaxis={"range": [start, 1.01]},
            yaxis={"range": [start, 1.01]},
        ),
    )


def _line(
    x: NDArray[Any] | Sequence[float],
    y: NDArray[Any] | Sequence[float],
    name: str,
    colour: str,
    *,
    dash: str = "solid",
    width: float = 2,
) -> dict[str, Any]:
    across, up = (np.round(np.asarray(each, float), 5).tolist() for each in (x, y))
    drawn = line(across, up, name, colour, width)
    return drawn | {"line": drawn["line"] | {"dash": dash}}


def _dots(x: Sequence[float], y: Sequence[float], colour: str) -> dict[str, Any]:
    dots = _line(x, y, "", colour) | {"mode": "markers", "showlegend": False}
    return dots | {"marker": {"color": colour, "size": 9}, "hoverinfo": "x+y"}
