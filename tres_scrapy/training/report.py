"""The HTML report of a training: scores, mistakes and charts of its cross-validation (P 3.3)."""

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
    Layout,
    chart_page,
    layout,
    line,
    steps,
    write_page,
)
from tres_scrapy.training.summary import COLUMNS, mistakes, rows, sources, verdict
from tres_scrapy.training.validation import best_epoch, interval, score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.validation import Epoch, Validation

TEMPLATE: Final = "training/report.html.jinja"
COLOURS: Final = (BLUE, ORANGE, GREEN, PURPLE, GREY)
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")  # for readers who see no colours
BINS: Final = np.linspace(0, 1, 11)
EDGES: Final = np.linspace(0, 1, 26)
LINEAR: Final = 10  # a count axis is linear up to this, then logarithmic


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
        _charts(validations),
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


def _charts(validations: Sequence[Validation]) -> list[Chart]:
    """Return the charts; the first model is the chosen one, most charts show only it."""
    chosen = validations[0]
    charts = [_curves(validations), _thresholds(chosen), _distribution(chosen)]
    charts.append(_calibration(chosen))
    if any(chosen.histories):
        charts.append(_learning(chosen.histories))
    return charts


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


def _thresholds(chosen: Validation) -> Chart:
    at = np.linspace(0, 1, 51)
    figures = np.array([score(chosen.true, chosen.texts, each)[:3] for each in at.tolist()])
    names = ("precision", "recall", "F-macro")
    return Chart(
        "thresholds",
        "What would another threshold do?",
        "A higher threshold lets fewer wrong documents through and misses more relevant ones. The "
        "dotted line is the chosen threshold.",
        [
            _line(at, values, name, colour, dash=dash)
            for name, values, colour, dash in zip(names, figures.T, COLOURS, DASHES, strict=False)
        ],
        layout(
            "threshold",
            "figure at that threshold",
            height=400,
            xaxis={"range": [0, 1]},
            yaxis={"range": [0, 1.02]},
        )
        | _marked(chosen.threshold),
    )


def _distribution(chosen: Validation) -> Chart:
    data, highest = [], 0
    for relevant, name, colour in ((True, "relevant", BLUE), (False, "irrelevant", ORANGE)):
        values = chosen.texts[chosen.true == relevant]
        counts, _ = np.histogram(values, EDGES)
        outline = steps(EDGES.tolist(), _heights(counts), f"{name} ({len(values):,})", colour)
        outline |= {"customdata": [0, *counts.tolist(), int(counts[-1]), 0]}
        outline |= {"hovertemplate": "%{customdata:,}"}
        data.append(outline | ({"fill": "tozeroy"} if relevant else {}))
        highest = max(highest, int(counts.max()))
    return Chart(
        "distribution",
        "Does the model separate the two kinds?",
        "Documents by the probability they got. Blue right of the dotted line and orange left of "
        "it are correct. The scale is logarithmic from 10 documents on, so that a few wrong ones "
        "are visible.",
        data,
        layout(
            "probability the model gave",
            "",
            height=400,
            xaxis={"range": [0, 1]},
            yaxis=_document_axis(highest),
        )
        | _marked(chosen.threshold),
    )


def _calibration(chosen: Validation) -> Chart:
    bins = np.clip(np.digitize(chosen.texts, BINS) - 1, 0, len(BINS) - 2)
    counts = np.bincount(bins, minlength=len(BINS) - 1)
    relevant = np.bincount(bins, chosen.true)
    filled = np.flatnonzero(counts)
    said = np.array([chosen.texts[bins == number].mean() for number in filled])
    share = relevant[filled] / counts[filled]
    ends = [interval(int(relevant[number]), int(counts[number])) for number in filled]
    low, _, high = np.array(ends).T
    name = f"{chosen.kind}, with the 95 % range of chance"
    model = _line(said, share, name, BLUE) | {"mode": "lines+markers"}
    model["error_y"] = {
        "array": (high - share).tolist(),
        "arrayminus": (share - low).tolist(),
        "symmetric": False,
        "color": BLUE,
    }
    documents = {
        "type": "bar",
        "x": (BINS[:-1] + 0.05).tolist(),
        "y": _heights(counts),
        "width": 0.09,
        "yaxis": "y2",
        "marker": {"color": BLUE},
        "customdata": counts.tolist(),
        "hovertemplate": "%{customdata:,} documents<extra></extra>",
        "showlegend": False,
    }
    return Chart(
        "calibration",
        "Can its probabilities be trusted?",
        "Of the documents with probability 0.8, eight in ten should be relevant: a dot on the "
        "straight line. Below the line the model says relevant too often, above it too rarely. "
        "Bars show the uncertainty, which is large where the lower chart has few documents.",
        [_line([0, 1], [0, 1], "ideal", GREY, width=1), model, documents],
        layout(
            "probability the model gave",
            "share truly relevant",
            height=460,
            hovermode="closest",
            xaxis={"range": [0, 1], "anchor": "y2"},
            yaxis={"range": [-0.02, 1.02], "domain": [0.34, 1]},
            yaxis2=_document_axis(int(counts.max())) | {"domain": [0, 0.24]},
        ),
    )


def _learning(histories: Sequence[Sequence[Epoch]]) -> Chart:
    data: list[dict[str, Any]] = []
    for fold, history in enumerate(histories, 1):
        if not history:
            continue
        loss, mcc = np.array(history).T
        epochs, best = np.arange(1, len(history) + 1), best_epoch(history)
        name = f"fold {fold}"
        data += [
            _line(epochs, loss, name, BLUE, width=1.2) | {"mode": "lines+markers"},
            _line(epochs, mcc, name, BLUE, width=1.2) | {"yaxis": "y2"},
            _dots([best + 1], [mcc[best]], ORANGE) | {"yaxis": "y2"},
        ]
    longest = max(map(len, histories))
    return Chart(
        "learning",
        "Was the training long enough?",
        "One line per fold. The loss falls as long as the model learns its own documents; the MCC "
        "on held-out documents says when to stop. The dot is the epoch kept.",
        data,
        layout(
            "epoch: passes over the training documents",
            "loss in training",
            height=460,
            hovermode="closest",
            showlegend=False,
            xaxis={"anchor": "y2", "tick0": 1, "dtick": 1 + longest // 12},
            yaxis={"domain": [0.55, 1]},
            yaxis2={"title": {"text": "MCC on held-out ones"}, "domain": [0, 0.45]},
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


def _heights(counts: NDArray[np.int64]) -> list[float]:
    """Return the heights of counts on the document axis: linear to LINEAR, then logarithmic."""
    heights: NDArray[np.float64] = np.where(
        counts <= LINEAR, counts / LINEAR, 1 + np.log10(np.maximum(counts, LINEAR) / LINEAR)
    )
    return [round(height, 4) for height in heights.tolist()]


def _document_axis(highest: int) -> Layout:
    """Return the axis for `_heights`."""
    counts = np.array([0, *(LINEAR**power for power in range(1, len(str(highest)) + 1))])
    heights = _heights(counts)
    top = max(1.0, _heights(np.array([highest]))[0])
    return {
        "title": {"text": "documents"},
        "range": [0, 1.05 * top],
        "tickvals": heights,
        "ticktext": [f"{count:,}" for count in counts],
    }


def _marked(threshold: float) -> Layout:
    """Return a dotted line at a threshold, with its number."""
    at = {"x0": threshold, "x1": threshold, "y0": 0, "y1": 1, "yref": "paper"}
    mark = {"type": "line", "line": {"color": GREY, "width": 1.5, "dash": "dot"}, **at}
    text = {"x": threshold, "y": 1, "yref": "paper", "text": f"{threshold:.2f}"}
    place = {"showarrow": False, "xanchor": "left", "yanchor": "top", "xshift": 3}
    return {"shapes": [mark], "annotations": [text | place]}
