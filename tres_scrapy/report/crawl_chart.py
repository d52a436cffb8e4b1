"""The charts of a crawl, from its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np

from tres_scrapy.report.chart import (
    BLUE,
    GREEN,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    PURPLE,
    Chart,
    Trace,
    bar_layout,
    bars,
    layout,
    line,
)
from tres_scrapy.report.learned_chart import (
    dependence_charts,
    prediction_charts,
    tree_chart,
    weight_charts,
)
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import HealthPoint, Point

WINDOW: Final = 20  # the recent harvest rate covers the last 1/20 of the pages,
FEWEST_PAGES: Final = 30  # and at least this many pages
DOMAINS: Final = 15
COLOURS: Final = (GREEN, BLUE, ORANGE, PURPLE, LIGHT_BLUE, GREY)
OK: Final = "200"
KINDS: Final = 5  # of errors, with an area of their own
ERROR_COLOURS: Final = (ORANGE, PURPLE, BLUE, GREEN, LIGHT_BLUE, GREY)
MIB: Final = 1024**2
PAGES: Final = "pages fetched"


def charts(record: Record) -> list[Chart]:
    """Return the charts for which a record has data."""
    curve, starts = [point for point in record.curve() if point.pages], record.starts()
    health = record.health()
    found: list[Chart | None] = []
    if curve:
        found += [_harvest(curve), _topics(record, curve), _domains_found(curve), _frontier(curve)]
        found.append(_speed(curve, starts))
    found += [errors_chart(health, starts), memory_chart(health, starts), _loss(curve)]
    found += [_outcomes(record), _domains(record), tree_chart(record), *dependence_charts(record)]
    found += [*prediction_charts(record), *weight_charts(record)]
    return [chart for chart in found if chart is not None]


def _lines(
    name: str, title: str, note: str, axes: tuple[str, str], data: list[Trace], **more: Any
) -> Chart:
    """Return a chart of lines from 0 up; `more` goes to its layout."""
    given = {"yaxis": {"rangemode": "tozero"}} | more
    return Chart(name, title, note, data, layout(*axes, **given))


def _harvest(curve: Sequence[Point]) -> Chart:
    pages = np.array([0, *(point.pages for point in curve)])
    relevant = np.array([0, *(point.relevant for point in curve)])
    window = np.maximum(FEWEST_PAGES, pages // WINDOW)
    first = np.maximum(0, np.searchsorted(pages, pages - window, "right") - 1)[1:]
    whole = relevant[1:] / pages[1:]
    recent = (relevant[1:] - relevant[first]) / (pages[1:] - pages[first])
    at = pages[1:].tolist()
    return _lines(
        "harvest",
        "Harvest rate",
        "Share of relevant pages: in the whole crawl, and in its last twentieth. The recent rate "
        "falls when the easy pages are found.",
        (PAGES, "relevant, %"),
        [
            line(at, (100 * whole).round(2).tolist(), "whole crawl", BLUE),
            line(at, (100 * recent).round(2).tolist(), "recent pages", ORANGE, 1.3),
        ],
        yaxis={"range": [0, 102]},
    )


def _topics(record: Record, curve: Sequence[Point]) -> Chart | None:
    found = record.relevant_steps()
    pages, steps = [point.pages for point in curve], [point.step for point in curve]
    if not found:
        return None
    return _lines(
        "topics",
        "Relevant pages by topic",
        "Pages that each of the topics finds relevant. A page can belong to several.",
        (PAGES, "pages"),
        [
            line(pages, np.searchsorted(own, steps, "right").tolist(), topic, colour)
            for (topic, own), colour in zip(found.items(), cycle(COLOURS), strict=False)
        ],
    )


def _domains_found(curve: Sequence[Point]) -> Chart:
    pages, domains = [point.pages for point in curve], [point.domains for point in curve]
    return _lines(
        "relevant_domains",
        "Relevant domains",
        "Registrable domains with at least one relevant page. A flat line means that the "
        "crawl stays on known sites: lower max_per_domain or raise breadth to change that.",
        (PAGES, "domains"),
        [line(pages, domains, "relevant domains", GREEN)],
    )


def _frontier(curve: Sequence[Point]) -> Chart:
    pages = [point.pages for point in curve]
    data = [line(pages, [point.frontier for point in curve], "links in the frontier", BLUE)]
    if curve[-1].leaves is not None:
        data.append(line(pages, [point.leaves for point in curve], "leaves of the tree", ORANGE))
    return _lines(
        "frontier",
        "Frontier and leaves",
        "Waiting links, and the leaves of the tree that group them, on a logarithmic scale. Q is "
        "computed for a few links of each leaf only: the gap between the lines is the work saved "
        "(Figure 4 of the paper).",
        (PAGES, "number"),
        data,
        yaxis={"type": "log", "dtick": 1},
    )


def _speed(curve: Sequence[Point], starts: Sequence[float]) -> Chart | None:
    if len(curve) < 2:
        return None
    times, rates = [point.time for point in curve], [point.rate for point in curve]
    return _lines(
        "speed",
        "Speed",
        "Pages per second. On the real web delays and slow hosts limit it. A gap is the "
        "time before a crawl was resumed.",
        ("minutes", "pages/s"),
        [line(*_with_gaps(times, rates, starts), "pages per second", GREY)],
    )


def _loss(curve: Sequence[Point]) -> Chart | None:
    found = [(point.pages, point.loss) for point in curve if point.loss is not None]
    if len(found) < 2:
        return None
    pages, losses = zip(*found, strict=True)
    return _lines(
        "loss",
        "Loss of the agent",
        "Squared error of Q in the last training batch. It does not reach zero: the result of a "
        "link is uncertain until it is fetched.",
        (PAGES, "loss"),
        [line(pages, losses, "loss", GREY)],
        height=220,
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
        bar_layout(len(found), "fetches"),
    )


def _domains(record: Record) -> Chart | None:
    found = record.domains(DOMAINS)
    if not found:
        return None
    names, pages, relevant = zip(*found, strict=True)
    others = [all_ - good for all_, good in zip(pages, relevant, strict=True)]
    return Chart(
        "domains",
        "Domains with most relevant pages",
        "A few long bars mean that the crawl depends on a few sites: lower max_per_domain.",
        [bars(names, relevant, "relevant", GREEN), bars(names, others, "not relevant", ORANGE)],
        bar_layout(len(found), "pages", barmode="stack"),
    )


def errors_chart(health: Sequence[HealthPoint], starts: Sequence[float]) -> Chart | None:
    """Return the shares of answers other than 200, and of errors, over time."""
    parts = list(_new_answers(health, starts))
    total = sum(parts, Counter[str]())
    kinds = [kind for kind, _ in total.most_common() if kind != OK]
    if not kinds:
        return None
    minutes = [round((point.time - health[0].time) / 60, 3) for point in health]
    named = {kind: [kind] for kind in kinds[:KINDS]} | {"others": kinds[KINDS:]}
    shares = {
        name: [
            round(100 * sum(part[kind] for kind in inside) / max(1, part.total()), 3)
            for part in parts
        ]
        for name, inside in named.items()
        if inside
    }
    return _lines(
        "errors",
        "Status codes and errors",
        f"Answers other than {OK}, by status code, and errors, by their name in Scrapy. "
        "Requests for robots.txt and repeated requests count too.",
        ("minutes", "of the requests, %"),
        [
            line(minutes, values, name, colour, 1) | {"stackgroup": "all"}
            for (name, values), colour in zip(shares.items(), ERROR_COLOURS, strict=False)
        ],
    )


def memory_chart(health: Sequence[HealthPoint], starts: Sequence[float]) -> Chart | None:
    """Return the memory of the crawl over time, with a gap before each later start."""
    values = [None if point.memory is None else round(point.memory / MIB, 1) for point in health]
    if sum(value is not None for value in values) < 2:
        return None
    return _lines(
        "memory",
        "Memory",
        "MiB of the crawl with its other processes: the judge, browsers, an offline web. A line "
        "that never stops rising will fill the machine.",
        ("minutes", "MiB"),
        [line(*_with_gaps([point.time for point in health], values, starts), "MiB", GREY)],
    )


def _new_answers(health: Sequence[HealthPoint], starts: Sequence[float]) -> Iterator[Counter[str]]:
    """Yield the answers since the note before; the counts of a resumed crawl begin at 0 again."""
    before = HealthPoint(0.0, None, {})
    for now in health:
        old = {} if _restarted(before.time, now.time, starts) else before.answers
        yield Counter(now.answers) - Counter(old)
        before = now


def _with_gaps(
    times: Sequence[float], values: Sequence[float | None], starts: Sequence[float]
) -> tuple[list[float], list[float | None]]:
    """Return minutes since the first time, and values, with a None before each later start."""
    minutes, found = list[float](), list[float | None]()
    for before, now, value in zip([times[0], *times], times, values, strict=False):
        if _restarted(before, now, starts):
            minutes.append(minutes[-1])  # no line from here to the next point
            found.append(None)
        minutes.append(round((now - times[0]) / 60, 3))
        found.append(value)
    return minutes, found


def _restarted(before: float, now: float, starts: Sequence[float]) -> bool:
    return any(before < start <= now for start in starts)
