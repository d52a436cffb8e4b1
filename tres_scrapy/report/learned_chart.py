"""The charts of what a crawl has learned: its tree, and how Q depends on each feature."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Final

from tres_scrapy.frontier.feature import TABLE
from tres_scrapy.report.chart import BLUE, GREEN, ORANGE, Chart, layout, line
from tres_scrapy.report.record import Record
from tres_scrapy.report.rule import Condition
from tres_scrapy.report.snapshot import Node

NODES: Final = 300  # boxes of the tree: those with the most experiences


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
                showlegend=False,
                margin={"l": 48, "r": 8, "t": 8, "b": 32},
                yaxis={"range": [min(values) - margin, max(values) + margin]},
            ),
        )
