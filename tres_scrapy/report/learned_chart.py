"""The charts of what a crawl has learned: its tree, how Q depends on features, its link model."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from html import escape
from itertools import count, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.feature import TABLE
from tres_scrapy.report.chart import BLUE, GREEN, GREY, ORANGE, Chart, bar_layout, layout, line
from tres_scrapy.report.record import Record
from tres_scrapy.run.reason import FEATURE, Condition, label_of
from tres_scrapy.run.snapshot import LinkWeight, Node

NODES: Final = 300  # boxes of the tree: those with the most experiences
PREFIX: Final = "links_"  # of the names of charts of weights
FEWEST: Final = 30  # fetches that say something about predictions
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


def tree_chart(record: Record) -> Chart | None:
    """Return the tree as nested boxes, None if the record has no tree."""
    root = record.tree()
    if root is None or not root.fetched:
        return None
    rows = list(_drawn(root))
    ids, parents, labels, nodes = zip(*rows, strict=True)
    rewards = [node.reward / node.fetched if node.fetched else 0.0 for node in nodes]
    return Chart(
        "tree",
        "The tree",
        "From left to right, each box is split by the feature that separates rewards best. Height: "
        "fetches; colour: their mean reward. Links of one leaf look alike to the crawler. Click a "
        "box to enlarge it, and the leftmost box to go back.",
        [
            {
                "type": "icicle",
                "ids": ids,
                "parents": parents,
                "labels": labels,
                "values": [node.fetched for node in nodes],
                "branchvalues": "total",
                "maxdepth": 6,
                "sort": False,
                "marker": {
                    "colors": rewards,
                    "cmin": 0,
                    "cmax": 1,
                    "colorscale": [[0, ORANGE], [0.5, "#d9d9d9"], [1, GREEN]],
                    "colorbar": {"title": {"text": "reward"}, "thickness": 10, "len": 0.9},
                    "line": {"width": 1},
                },
                "customdata": [
                    [f"{100 * reward:.0f} %", *_numbers(node)]
                    for reward, node in zip(rewards, nodes, strict=True)
                ],
                "texttemplate": "%{label}<br>%{customdata[0]} of %{customdata[1]}",
                "textfont": {"color": "#111111"},
                "hovertemplate": "%{label}<br>reward %{customdata[0]} of %{customdata[1]} fetches"
                "<br>%{customdata[2]} waiting links<br>%{customdata[3]} leaves<extra></extra>",
                "pathbar": {"visible": True},
            }
        ],
        {
            "height": 560,
            "margin": {"l": 4, "r": 4, "t": 28, "b": 4},
            "uniformtext": {"minsize": 10, "mode": "hide"},
        },
    )


def _numbers(node: Node) -> list[str]:
    return [f"{number:,}" for number in (node.fetched, node.samples, node.leaves)]


def _drawn(root: Node) -> Iterator[tuple[str, str, str, Node]]:
    """Yield id, parent's id, label and node of the nodes with most experiences, parents first."""
    numbers, shown = count(), 1
    waiting = [(-root.fetched, next(numbers), "0", root)]
    yield "0", "", "all links", root
    while waiting and shown < NODES:
        _, _, own, node = heapq.heappop(waiting)
        if node.split is None:
            continue
        feature, threshold, _ = node.split
        below, above = Condition(feature, high=threshold), Condition(feature, low=threshold)
        for condition, child in zip((below, above), node.children, strict=True):
            number = next(numbers)
            yield str(number), own, condition.brief(), child
            heapq.heappush(waiting, (-child.fetched, number, str(number), child))
            shown += 1


def dependence_charts(record: Record) -> Iterator[Chart]:
    """Yield a chart for each feature: the mean Q over its values."""
    found = record.dependence()
    values = [q for curve in found.values() for _, q in curve]
    for feature in TABLE if found else ():
        margin = 0.05 * (max(values) - min(values)) or 0.1
        at, q = zip(*found[feature.name], strict=True)
        mode = "lines+markers" if len(at) < 10 else "lines"
        yield Chart(
            f"dependence_{feature.name}",
            feature.label[0].upper() + feature.label[1:],
            f"{feature.meaning[0].upper()}{feature.meaning[1:]}.",
            [line(at, q, "mean Q", BLUE) | {"mode": mode}],
            layout(
                "",
                "mean Q",
                height=200,
                margin={"l": 48, "r": 8, "t": 8, "b": 32},
                yaxis={"range": [min(values) - margin, max(values) + margin]},
            ),
        )


def weight_charts(record: Record) -> Iterator[Chart]:
    """Yield a chart for each group of what links say: the strongest weights for and against."""
    found = record.link_weights()
    for group, (title, note) in TITLES.items():
        if weights := found.get(group):
            yield _weight_chart(group, title, note, weights)


def _weight_chart(group: str, title: str, note: str, weights: Sequence[LinkWeight]) -> Chart:
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
        bar_layout(len(weights), "weight")
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
    if len(predicted) >= FEWEST:
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
    count = min(WINDOWS, len(predicted) // FEWEST)
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
