"""The charts of the link model: its strongest weights, and how true its predictions were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.report.chart import BLUE, GREEN, GREY, ORANGE, Chart, bar_layout, layout, line
from tres_scrapy.report.link_part import FEATURE, label_of
from tres_scrapy.report.link_weight import LinkWeight
from tres_scrapy.report.record import Record

PREFIX: Final = "links_"  # of the names of charts of weights
LEAST: Final = 30  # fetches that say something about predictions
BINS: Final = 10
WINDOWS: Final = 20
SHOWN: Final = 36  # characters of a text beside its bar
TITLES: Final = {  # by group: title and note
    "anchor": ("Words of the anchor text", "The text of the link itself."),
    "heading": ("Words of the heading", "The nearest heading above the link."),
    "around": ("Words around the link", "Twenty words on each side, in the same block."),
    "url": ("Runs of the URL", "Three to five characters. 0 is any digit, $ the end of the URL."),
    "host": ("Hosts and folders", "Of the URL of the link."),
    "path": ("Paths of tags", "Tags with their classes that end at the link."),
    "page": ("The page of the link", "Words of its title, and with / those of its URL."),
    "fact": ("Facts of any topic", "They mean the same on every web."),
    FEATURE: ("Features", "A weight is multiplied by the value of its feature."),
}


def weight_charts(record: Record) -> Iterator[Chart]:
    """Yield a chart for each group of what links say: the strongest weights for and against."""
    found = record.link_weights()
    for group, (title, note) in TITLES.items():
        if weights := found.get(group):
            yield _weights(group, title, note, weights)


def _weights(group: str, title: str, note: str, weights: Sequence[LinkWeight]) -> Chart:
    texts = [_short(each.text) for each in weights]
    counts = [_counts(each) for each in weights]
    return Chart(
        f"{PREFIX}{group}",
        title,
        note,
        [
            {
                "type": "bar",
                "orientation": "h",
                "y": list(range(len(weights))),
                "x": [each.weight for each in weights],
                "marker": {"color": [GREEN if each.weight > 0 else ORANGE for each in weights]},
                "customdata": [
                    [escape(label_of(group, each.text)), count]
                    for each, count in zip(weights, counts, strict=True)
                ],
                "hovertemplate": "%{customdata[0]}: %{x:+.2f}%{customdata[1]}<extra></extra>",
            }
        ],
        bar_layout(len(weights), "weight", showlegend=False)
        | {
            "height": 60 + 21 * len(weights),
            "margin": {"l": 60, "r": 12, "t": 8, "b": 40},
            "xaxis": {"title": {"text": "weight"}, "nticks": 5, "tickangle": 0},
            "yaxis": {
                "automargin": True,
                "tickfont": {"size": 12},
                "autorange": "reversed",
                "tickvals": list(range(len(weights))),
                "ticktext": [escape(text) for text in texts],
            },
        },
    )


def _counts(weight: LinkWeight) -> str:
    if not weight.fetched:
        return ""
    return f"<br>{weight.relevant:,} of {weight.fetched:,} fetched links were relevant"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"…{text[1 - SHOWN :]}"


def prediction_charts(record: Record) -> Iterator[Chart]:
    """Yield two charts of how true P(relevant) of links was, none without a link model."""
    predicted, relevant = record.predictions()
    if len(predicted) >= LEAST:
        yield _calibration(predicted, relevant)
        yield _precision(predicted, relevant)


def _calibration(predicted: NDArray[np.float32], relevant: NDArray[np.bool_]) -> Chart:
    bins = np.minimum((predicted * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    filled = counts > 0
    x, y = (
        (np.bincount(bins, values, BINS)[filled] / counts[filled]).round(4).tolist()
        for values in (predicted, relevant)
    )
    sizes = counts[filled].tolist()
    points = line(x, y, "fetched links", BLUE) | {
        "mode": "lines+markers",
        "marker": {"size": (6 + 24 * np.sqrt(counts[filled] / counts.max())).round(1).tolist()},
        "customdata": [f"{size:,}" for size in sizes],
        "hovertemplate": "%{customdata} links, predicted %{x:.0%}, relevant %{y:.0%}"
        "<extra></extra>",
    }
    ideal = line([0, 1], [0, 1], "as predicted", GREY, 1.2)
    axes = {"range": [-0.05, 1.08], "tickformat": ".0%"}
    return Chart(
        "calibration",
        "What links promised",
        "P(relevant) of the links when they were chosen, and how many led to a relevant page. "
        "Larger points stand for more links. Above the grey line, links were better than promised.",
        [ideal | {"hoverinfo": "skip"}, points],
        layout(
            "P(relevant) of the link",
            "relevant",
            hovermode="closest",
            xaxis=axes,
            yaxis=axes,
        ),
    )


def _precision(predicted: NDArray[np.float32], relevant: NDArray[np.bool_]) -> Chart:
    count = min(WINDOWS, len(predicted) // LEAST)
    edges = np.linspace(0, len(predicted), count + 1).astype(int)
    parts = [slice(*pair) for pair in pairwise(edges.tolist())]
    precisions = [_percent(average_precision(predicted[p], relevant[p])) for p in parts]
    shares = [_percent(float(relevant[p].mean())) for p in parts]
    at = [part.stop for part in parts]
    whole = _percent(average_precision(predicted, relevant))
    return Chart(
        "precision",
        "How well P(relevant) of links sorts them",
        "Average precision of the fetched links, sorted by their P(relevant), in parts of the "
        f"crawl; in the whole crawl {whole:.0f} %. 100 % if all relevant ones come first; by "
        "chance it is their share.",
        [
            line(at, precisions, "average precision", BLUE) | {"mode": "lines+markers"},
            line(at, shares, "share of relevant ones", GREY, 1.3),
        ],
        layout("links fetched", "%", yaxis={"range": [0, 102]}),
    )


def average_precision(predicted: NDArray[np.float32], relevant: NDArray[np.bool_]) -> float:
    """Return the mean precision at each relevant link, in order of `predicted`, 0 without one."""
    good = relevant[np.argsort(-predicted, kind="stable")]
    if not good.any():
        return 0.0
    precision = np.cumsum(good) / np.arange(1, len(good) + 1)
    return float(precision[good].mean())


def _percent(share: float) -> float:
    return round(100 * share, 1)
