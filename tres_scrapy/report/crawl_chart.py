"""The charts of a crawl, from its record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Final

import numpy as np

from tres_scrapy.report.chart import (
    BLUE,
    GREEN,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    PURPLE,
    Chart,
    bar_layout,
    bars,
    layout,
    line,
)
from tres_scrapy.report.health_chart import errors_chart, memory_chart
from tres_scrapy.report.learned_chart import dependence_charts, tree_chart
from tres_scrapy.report.link_chart import prediction_charts, weight_charts
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_row import Point

WINDOW: Final = 20  # the recent harvest rate covers the last 1/20 of the pages,
LEAST: Final = 30  # and at least this many pages
DOMAINS: Final = 15
COLOURS: Final = (GREEN, BLUE, ORANGE, PURPLE, LIGHT_BLUE, GREY)


def charts(record: Record) -> list[Chart]:
    """Return the charts for which a record has data."""
    curve, starts = [point for point in record.curve() if point.pages], record.starts()
    health = record.health()
    found = [
        _harvest(curve),
        _topics(record, curve),
        _domains_found(curve),
        _frontier(curve),
        _speed(curve, starts),
        errors_chart(health, starts),
        memory_chart(health, starts),
        _loss(curve),
        *(_outcomes(record), _domains(record), tree_chart(record), *dependence_charts(record)),
        *(*prediction_charts(record), *weight_charts(record)),
    ]
    return [chart for chart in found if chart is not None]


def _harvest(curve: Sequence[Point]) -> Chart | None:
    if not curve:
        return None
    pages = [point.pages for point in curve]
    whole = [_share(point.relevant, point.pages) for point in curve]
    recent = list(_recent(curve))
    return Chart(
        "harvest",
        "Harvest rate",
        "Share of relevant pages: in the whole crawl, and in its last twentieth. The recent rate "
        "falls when the easy pages are found.",
        [
            line(pages, whole, "whole crawl", BLUE),
            line(pages, recent, "recent pages", ORANGE, 1.3),
        ],
        layout("pages fetched", "relevant, %", yaxis={"range": [0, 102]}),
    )


def _topics(record: Record, curve: Sequence[Point]) -> Chart | None:
    found = record.relevant_steps()
    if not found or not curve:
        return None
    pages, steps = [point.pages for point in curve], [point.step for point in curve]
    return Chart(
        "topics",
        "Relevant pages by topic",
        "Pages that each of the topics finds relevant. A page can belong to several.",
        [
            line(pages, np.searchsorted(own, steps, "right").tolist(), topic, colour)
            for (topic, own), colour in zip(found.items(), cycle(COLOURS), strict=False)
        ],
        layout("pages fetched", "pages", yaxis={"rangemode": "tozero"}),
    )


def _recent(curve: Sequence[Point]) -> Iterator[float]:
    """Yield the harvest rate of the most recent pages at each point."""
    start = 0
    for end, point in enumerate(curve):
        width = max(LEAST, point.pages // WINDOW)
        while start < end and point.pages - curve[start + 1].pages >= width:
            start += 1
        first = curve[start] if point.pages - curve[start].pages >= width else None
        pages, relevant = (first.pages, first.relevant) if first is not None else (0, 0)
        yield _share(point.relevant - relevant, point.pages - pages)


def _domains_found(curve: Sequence[Point]) -> Chart | None:
    if not curve:
        return None
    pages = [point.pages for point in curve]
    return Chart(
        "relevant_domains",
        "Relevant domains",
        "Registrable domains with at least one relevant page. A flat line means that the "
        "crawl stays on known sites: lower max_per_domain or raise breadth to change that.",
        [line(pages, [point.domains for point in curve], "relevant domains", GREEN)],
        layout("pages fetched", "domains", yaxis={"rangemode": "tozero"}, showlegend=False),
    )


def _frontier(curve: Sequence[Point]) -> Chart | None:
    if not curve:
        return None
    pages = [point.pages for point in curve]
    data = [line(pages, [point.frontier for point in curve], "links in the frontier", BLUE)]
    if curve[-1].leaves is not None:
        data.append(line(pages, [point.leaves for point in curve], "leaves of the tree", ORANGE))
    return Chart(
        "frontier",
        "Frontier and leaves",
        "Waiting links, and the leaves of the tree that group them, on a logarithmic scale. Q is "
        "computed for a few links of each leaf only: the gap between the lines is the work saved "
        "(Figure 4 of the paper).",
        data,
        layout("pages fetched", "number", yaxis={"type": "log", "dtick": 1}),
    )


def _speed(curve: Sequence[Point], starts: Sequence[float]) -> Chart | None:
    if len(curve) < 2:
        return None
    minutes, rates = list[float](), list[float | None]()
    for before, point in zip([curve[0], *curve], curve, strict=False):
        if any(before.time < start <= point.time for start in starts):
            minutes.append(minutes[-1])  # no line from here to the next point
            rates.append(None)
        minutes.append(round((point.time - curve[0].time) / 60, 3))
        rates.append(point.rate)
    return Chart(
        "speed",
        "Speed",
        "Pages per second. On the real web delays and slow hosts limit it. A gap is the "
        "time before a crawl was resumed.",
        [line(minutes, rates, "pages per second", GREY)],
        layout("minutes", "pages/s", yaxis={"rangemode": "tozero"}, showlegend=False),
    )


def _loss(curve: Sequence[Point]) -> Chart | None:
    found = [(point.pages, point.loss) for point in curve if point.loss is not None]
    if len(found) < 2:
        return None
    return Chart(
        "loss",
        "Loss of the agent",
        "Squared error of Q in the last training batch. It does not reach zero: the result of a "
        "link is uncertain until it is fetched.",
        [line([at for at, _ in found], [loss for _, loss in found], "loss", GREY)],
        layout(
            *("pages fetched", "loss"), yaxis={"rangemode": "tozero"}, showlegend=False, height=220
        ),
    )


def _outcomes(record: Record) -> Chart | None:
    found = record.count()
    if not found:
        return None
    colours = {"relevant": GREEN, "irrelevant": ORANGE, "copy": ORANGE}
    names = [name.replace("_", " ") for name in found]
    data = bars(names, list(found.values()), "", [colours.get(name, GREY) for name in found])
    shown = {"texttemplate": "%{x:,}", "textposition": "outside", "cliponaxis": False}
    return Chart(
        "outcomes",
        "Results of the fetches",
        "Pages by verdict; a copy has the text of an earlier page. Failed fetches stand below by "
        "reason and do not count in the harvest rate.",
        [data | shown],
        bar_layout(len(found), "fetches", showlegend=False),
    )


def _domains(record: Record) -> Chart | None:
    found = record.domains(DOMAINS)
    if not found:
        return None
    names = [domain.name for domain in found]
    relevant = [domain.relevant for domain in found]
    others = [domain.pages - domain.relevant for domain in found]
    return Chart(
        "domains",
        "Domains with most relevant pages",
        "A few long bars mean that the crawl depends on a few sites: lower max_per_domain.",
        [bars(names, relevant, "relevant", GREEN), bars(names, others, "not relevant", ORANGE)],
        bar_layout(len(found), "pages", barmode="stack"),
    )


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
