"""A record as figures of Plotly: plain data and layout, which any page can draw."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Any, Final

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.report.record import Node, Point, Record
from tres_scrapy.report.rule import MEANINGS, Condition

Trace = dict[str, Any]
Layout = dict[str, Any]

# Okabe and Ito's colours, apart for colour-blind readers, on white and on black
BLUE, ORANGE, GREEN, GREY = "#0a7abf", "#e08a00", "#009e73", "#8c8c8c"
HEIGHT: Final = 320
WINDOW: Final = 20  # a recent rate is that of the last part of the pages, one of so many,
LEAST: Final = 30  # and of so many pages at least
DOMAINS: Final = 15
NODES: Final = 300  # of the tree that are drawn, those with most experiences
NAMES: Final = {
    "parent_reward": "the page it is on is relevant",
    "path_closeness": "closeness of a relevant page",
    "path_relevance": "relevant share of its path",
    "keyword_in_url": "keyword in its URL",
    "keyword_in_anchor": "keyword in its text",
    "anchor_probability": "P(relevant) of its text",
    "domain_relevance": "relevant share of its domain or inlinks",
    "domain_known": "its domain was visited",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of Plotly, its title and a sentence of how to read it.

    Colours of text and grid are left to the page, which is light or dark.
    """

    name: str
    title: str
    note: str
    data: list[Trace]
    layout: Layout

    def as_figure(self) -> dict[str, Any]:
        """Return what Plotly draws."""
        return {"data": self.data, "layout": self.layout}


def pictures(record: Record) -> list[Picture]:
    """Return the figures that a record has something to show for."""
    curve, starts = [point for point in record.curve() if point.pages], record.starts()
    found = [
        *(_harvest(curve), _domains_found(curve), _frontier(curve)),
        *(_speed(curve, starts), _loss(curve)),
        *(_outcomes(record), _domains(record), _tree(record), *_dependence(record)),
    ]
    return [picture for picture in found if picture is not None]


def _harvest(curve: Sequence[Point]) -> Picture | None:
    if not curve:
        return None
    pages = [point.pages for point in curve]
    whole = [_share(point.relevant, point.pages) for point in curve]
    recent = list(_recent(curve))
    return Picture(
        "harvest",
        "Harvest rate",
        "Relevant pages among those fetched, in percent: of the whole crawl, and of its last "
        "twentieth, which falls when what is easy to find is found.",
        [
            _line(pages, whole, "whole crawl", BLUE),
            _line(pages, recent, "recent pages", ORANGE, 1.3),
        ],
        _layout("pages fetched", "relevant, %", yaxis={"range": [0, 102]}),
    )


def _recent(curve: Sequence[Point]) -> Iterator[float]:
    """Yield at each point the harvest rate of the last pages until then."""
    start = 0
    for end, point in enumerate(curve):
        width = max(LEAST, point.pages // WINDOW)
        while start < end and point.pages - curve[start + 1].pages >= width:
            start += 1
        first = curve[start] if point.pages - curve[start].pages >= width else None
        pages, relevant = (first.pages, first.relevant) if first is not None else (0, 0)
        yield _share(point.relevant - relevant, point.pages - pages)


def _domains_found(curve: Sequence[Point]) -> Picture | None:
    if not curve:
        return None
    pages = [point.pages for point in curve]
    return Picture(
        "relevant_domains",
        "Relevant domains",
        "Registrable domains with at least one relevant page. A line that flattens says that the "
        "crawl harvests the sites it knows; MAX and new_domains push it on.",
        [_line(pages, [point.domains for point in curve], "relevant domains", GREEN)],
        _layout("pages fetched", "domains", yaxis={"rangemode": "tozero"}, showlegend=False),
    )


def _frontier(curve: Sequence[Point]) -> Picture | None:
    if not curve:
        return None
    pages = [point.pages for point in curve]
    data = [_line(pages, [point.frontier for point in curve], "links in the frontier", BLUE)]
    if curve[-1].leaves is not None:
        data.append(_line(pages, [point.leaves for point in curve], "leaves of the tree", ORANGE))
    return Picture(
        "frontier",
        "Frontier and leaves",
        "Links that wait and, far fewer, the leaves that they are sorted into; the scale is "
        "logarithmic. The gap between the lines is the work that the tree saves: Q is asked for a "
        "few links of each leaf, not for all (Figure 4 of the paper).",
        data,
        _layout("pages fetched", "number", yaxis={"type": "log", "dtick": 1}),
    )


def _speed(curve: Sequence[Point], starts: Sequence[float]) -> Picture | None:
    if len(curve) < 2:
        return None
    minutes, rates = list[float](), list[float | None]()
    for before, point in zip([curve[0], *curve], curve, strict=False):
        if any(before.time < start <= point.time for start in starts):
            minutes.append(minutes[-1])  # no line leads from here to the next point
            rates.append(None)
        minutes.append(round((point.time - curve[0].time) / 60, 3))
        rates.append(point.rate)
    return Picture(
        "speed",
        "Speed",
        "Pages a second since the crawl began. Delays and slow hosts set it on the real web; gaps "
        "are the times when a crawl that was gone on with did not run.",
        [_line(minutes, rates, "pages a second", GREY)],
        _layout("minutes", "pages/s", yaxis={"rangemode": "tozero"}, showlegend=False),
    )


def _loss(curve: Sequence[Point]) -> Picture | None:
    found = [(point.pages, point.loss) for point in curve if point.loss is not None]
    if len(found) < 2:
        return None
    return Picture(
        "loss",
        "Loss of the agent",
        "How far Q is from reward and discounted future reward, squared, in the last batch. It "
        "need not reach zero: a link cannot be known for sure before it is fetched.",
        [_line([at for at, _ in found], [loss for _, loss in found], "loss", GREY)],
        _layout(
            *("pages fetched", "loss"), yaxis={"rangemode": "tozero"}, showlegend=False, height=220
        ),
    )


def _outcomes(record: Record) -> Picture | None:
    found = record.count()
    if not found:
        return None
    colours = {"relevant": GREEN, "irrelevant": ORANGE, "copy": ORANGE}
    names = [name.replace("_", " ") for name in found]
    return Picture(
        "outcomes",
        "What came of the fetches",
        "Pages by verdict, a copy being a page with the text of an earlier one, and fetches that "
        "brought none by their reason; these are no pages of the harvest rate.",
        [
            {
                "type": "bar",
                "orientation": "h",
                "y": [escape(name) for name in names][::-1],
                "x": list(found.values())[::-1],
                "marker": {"color": [colours.get(name, GREY) for name in found][::-1]},
                "texttemplate": "%{x:,}",
                "textposition": "outside",
                "cliponaxis": False,
                "hovertemplate": "%{y}: %{x:,}<extra></extra>",
            }
        ],
        _bars(len(found), "fetches"),
    )


def _domains(record: Record) -> Picture | None:
    found = record.domains(DOMAINS)[::-1]
    if not found:
        return None
    names = [escape(domain.name) for domain in found]
    relevant = [domain.relevant for domain in found]
    others = [domain.pages - domain.relevant for domain in found]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": values,
            "name": name,
            "marker": {"color": colour},
            "hovertemplate": f"%{{y}}: %{{x:,}} {name}<extra></extra>",
        }
        for name, values, colour in (
            ("relevant", relevant, GREEN),
            ("not relevant", others, ORANGE),
        )
    ]
    return Picture(
        "domains",
        "Domains with most relevant pages",
        "A few long bars mean that the crawl lives on a few sites: max_per_domain spreads it.",
        data,
        _bars(len(found), "pages") | {"barmode": "stack", "showlegend": True},
    )


def _tree(record: Record) -> Picture | None:
    root = record.tree()
    if root is None or not root.fetched:
        return None
    rows = list(_drawn(root))
    ids, parents, labels, nodes = zip(*rows, strict=True)
    rewards = [node.reward / node.fetched if node.fetched else 0.0 for node in nodes]
    return Picture(
        "tree",
        "The tree",
        "From left to right each box is parted by the question that tells reward best; its height "
        "is the number of fetches, its colour their mean reward. Links of a leaf look alike to the "
        "crawler. Click a box to go into it, and the one at the left to come back.",
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
                "<br>%{customdata[2]} links wait<br>%{customdata[3]} leaves<extra></extra>",
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
    """Yield id, parent's id, label and node of those with most experiences, parents first."""
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


def _dependence(record: Record) -> Iterator[Picture]:
    found = record.dependence()
    values = [q for curve in found.values() for _, q in curve]
    for name in FEATURES if found else ():
        margin = 0.05 * (max(values) - min(values)) or 0.1
        at, q = zip(*found[name], strict=True)
        mode = "lines+markers" if len(at) < 10 else "lines"
        yield Picture(
            f"dependence_{name}",
            NAMES[name],
            f"{MEANINGS[name]}.",
            [_line(at, q, "mean Q", BLUE) | {"mode": mode}],
            _layout(
                *("", "mean Q"),
                height=200,
                showlegend=False,
                margin={"l": 48, "r": 8, "t": 8, "b": 32},
                yaxis={"range": [min(values) - margin, max(values) + margin]},
            ),
        )


def _line(
    x: Sequence[float], y: Sequence[float | None], name: str, colour: str, width: float = 2.2
) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": colour, "width": width},
    }


def _layout(x: str, y: str, **more: Any) -> Layout:
    margin = {"l": 60, "r": 12, "t": 8, "b": 48}
    given = {"height": HEIGHT, "margin": margin, "hovermode": "x unified", **more}
    return given | {
        "xaxis": {"title": {"text": x}, "zeroline": False},
        "yaxis": {"title": {"text": y}, "zeroline": False} | more.get("yaxis", {}),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }


def _bars(count: int, x: str) -> Layout:
    layout = _layout(x, "", showlegend=False, hovermode="closest")
    return layout | {
        "height": max(160, 70 + 24 * count),
        "yaxis": {"automargin": True},
        "margin": {"l": 60, "r": 40, "t": 8, "b": 48},
        "bargap": 0.25,
    }


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
