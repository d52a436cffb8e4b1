"""The report of a refresh: freshness, requests by group of pages, and estimated change rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.refresh.page_table import group_name
from tres_scrapy.refresh.refresher import Refresher
from tres_scrapy.refresh.settings import DAY
from tres_scrapy.refresh.text_change import PageChange
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
    chart_page,
    layout,
    line,
    steps,
    write_page,
)
from tres_scrapy.report.crawl_report import web_link

COLOURS: Final = {
    "changed": BLUE,
    "minor": LIGHT_BLUE,
    "unchanged": GREEN,
    "new": PURPLE,
    "gone": GREY,
    "error": ORANGE,
}
BINS: Final = 40
NARROWEST: Final = 3.2  # the axis ends at least at so many times the middle of the rates,
WIDE: Final = 300  # and from so many times on has a tick only at each power of ten
TEMPLATE: Final = "refresh/report.html.jinja"
POINTS: Final = 80  # of the line of freshness
GROUPS: Final = 20  # in the chart, those with most requests
SHOWN_GROUPS: Final = 64  # in the table
PAGES: Final = 25  # in the table
GOOD: Final = ("unchanged", "minor", "changed", "new")


@dataclass(frozen=True, slots=True)
class PastVisit:
    """An answered request of the store's history."""

    place: int
    time: float
    change: str
    conditional: bool


@dataclass(frozen=True, slots=True)
class Group:
    """The pages of one host and first folder, and the results of their visits."""

    name: str
    pages: int
    weight: float
    rate: str  # changes a day of a page
    found: Counter[str]


def write_report(
    path: Path, refresher: Refresher, now: float, changes: Sequence[PageChange] = ()
) -> None:
    """Write the report, with these changes, as one HTML file that needs no network."""
    visits = history(refresher)
    groups = groups_of(refresher, visits)
    text = chart_page(
        TEMPLATE,
        _charts(refresher, visits, groups, now),
        refresher=refresher,
        now=_time(now),
        started=_time(refresher.run.started),
        counts=Counter(visit.change for visit in visits),
        kinds=list(COLOURS),
        not_modified=sum(visit.conditional and visit.change == "unchanged" for visit in visits),
        fresh=expected_freshness(refresher, visits, np.array([now]))[0] if visits else None,
        groups=groups[:SHOWN_GROUPS],
        left_out=max(0, len(groups) - SHOWN_GROUPS),
        pages=_pages(refresher, now),
        changes=changes,
        web_link=web_link,
    )
    write_page(path, text)


def history(refresher: Refresher) -> list[PastVisit]:
    """Return all answered visits of the collection in order of time."""
    places = {row.id: place for place, row in enumerate(refresher.rows)}
    return [
        PastVisit(places[page], time, change, bool(conditional))
        for page, time, change, conditional in refresher.store.history()
        if page in places
    ]


def expected_freshness(
    refresher: Refresher,
    visits: list[PastVisit],
    moments: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the expected share of fresh copies at each moment, [m], in rising order.

    A copy of age t is fresh with probability exp(-rate t) by the estimated rate. Pages are weighted
    by importance.
    """
    rates, weights = refresher.rates(), refresher.pages.weights
    seen = np.array([row.first_seen for row in refresher.rows])
    has = np.array([row.copy is not None for row in refresher.rows])
    good = [visit for visit in visits if visit.change in GOOD]
    shares, place = np.zeros(len(moments)), 0
    for number, moment in enumerate(moments):
        while place < len(good) and good[place].time <= moment:
            seen[good[place].place] = good[place].time
            place += 1
        fresh = np.exp(-rates * np.maximum(moment - seen, 0)) * has
        shares[number] = (weights * fresh).sum() / weights.sum()
    return shares


def groups_of(refresher: Refresher, visits: list[PastVisit]) -> list[Group]:
    """Return the groups of pages, those with most requests first."""
    pages, rates = refresher.pages, refresher.rates() * DAY
    names = [group_name(row.url) for row in refresher.rows]
    found = {name: Counter[str]() for name in names}
    for visit in visits:
        found[names[visit.place]][visit.change] += 1
    count, weights, sums = (
        np.bincount(pages.levels[-1], column) for column in (None, pages.weights, rates)
    )
    groups = [
        Group(
            name,
            int(count[number]),
            float(weights[number] / count[number]),
            _number(float(sums[number] / count[number])),
            found[name],
        )
        for name, number in dict(zip(names, pages.levels[-1].tolist(), strict=True)).items()
    ]
    return sorted(groups, key=lambda group: (-group.found.total(), group.name))


def _pages(refresher: Refresher, now: float) -> list[dict[str, Any]]:
    """Return the pages that are due first, with their state."""
    rates = refresher.rates() * DAY
    intervals = refresher.policy.intervals
    due = refresher.pages.fetched + intervals
    due = np.maximum(due, [row.retry_at for row in refresher.rows])
    return [
        {
            "url": refresher.rows[place].url,
            "last": _time(refresher.rows[place].last_seen),
            "due": _time(float(due[place])),
            "interval": _span(float(intervals[place])),
            "rate": _number(float(rates[place])),
            "changes": refresher.rows[place].changes,
            "visits": refresher.rows[place].visits,
            "state": _state(refresher, int(place), now),
        }
        for place in np.argsort(due, kind="stable")[:PAGES]
    ]


def _state(refresher: Refresher, place: int, now: float) -> str:
    row = refresher.rows[place]
    if row.gone:
        return f"gone; next request from {_time(row.retry_at)}"
    if row.misses:
        return f"not found {row.misses} times; next request from {_time(row.retry_at)}"
    if row.errors:
        return f"failed {row.errors} times; next request from {_time(row.retry_at)}"
    if row.copy is None:
        return "never fetched"
    return "older than max_age" if now - row.last_seen > refresher.options.max_age else ""


def _charts(
    refresher: Refresher, visits: list[PastVisit], groups: list[Group], now: float
) -> list[Chart]:
    if not visits:
        return []
    start = min(row.first_seen for row in refresher.rows)
    moments = np.linspace(min(start, visits[0].time), max(now, visits[-1].time), POINTS)
    unit, name = _unit(float(moments[-1] - moments[0]))
    freshness = expected_freshness(refresher, visits, moments)
    return [
        freshness_chart((moments - moments[0]) / unit, name, freshness),
        groups_chart({group.name: group.found for group in groups[:GROUPS]}),
        rates_chart(refresher.rates() * DAY),
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _unit(seconds: float) -> tuple[float, str]:
    units = ((2 * DAY, DAY, "days"), (7_200.0, 3_600.0, "hours"), (120.0, 60.0, "minutes"))
    return next(((unit, name) for least, unit, name in units if seconds >= least), (1.0, "seconds"))


def _span(seconds: float) -> str:
    unit, name = _unit(seconds)
    return f"{seconds / unit:.3g} {name}"


def freshness_chart(ages: NDArray[np.float64], unit: str, freshness: NDArray[np.float64]) -> Chart:
    """Return the share of fresh copies over the age of the collection, in a unit of time."""
    percent = np.round(100 * freshness, 2).tolist()
    return Chart(
        "freshness",
        "How fresh were the copies?",
        "Share of the copies that were still the same as their page, weighted by importance and "
        "estimated from the present change rates.",
        [line(np.round(ages, 4).tolist(), percent, "fresh copies", BLUE)],
        layout(
            f"{unit} since the collection began",
            "fresh copies, % (estimated)",
            height=400,
            yaxis={"range": [0, 101]},
        ),
    )


def groups_chart(groups: Mapping[str, Counter[str]]) -> Chart:
    """Return the requests of each group by what they found."""
    data = []
    for kind, colour in COLOURS.items():
        counts = [found[kind] for found in groups.values()]
        if any(counts):
            data.append(bars([_short(name) for name in groups], counts, kind, colour))
    return Chart(
        "groups",
        "Where did the requests go?",
        "The groups with most requests. A group is the pages of one host and first folder.",
        data,
        bar_layout(len(groups), "requests", barmode="stack", showlegend=True),
    )


def rates_chart(rates: NDArray[np.float64]) -> Chart:
    """Return the number of pages by changes a day."""
    middle, ratio = np.sqrt(rates.max() * rates.min()), np.sqrt(rates.max() / rates.min())
    ratio = max(ratio, NARROWEST)
    edges = np.geomspace(middle / ratio, middle * ratio, BINS + 1)
    counts, _ = np.histogram(rates, edges)
    shown = [float(f"{edge:.4g}") for edge in edges.tolist()]
    powers = range(int(np.log10(edges[0])) - 1, int(np.log10(edges[-1])) + 2)
    digits = (1, 3) if ratio < WIDE else (1,)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return Chart(
        "rates",
        "How often do pages change?",
        "Pages by estimated changes a day, on a logarithmic axis. A page with few visits borrows "
        "from the other pages of its folder.",
        [steps(shown, counts.tolist(), "pages", BLUE) | {"fill": "tozeroy"}],
        layout(
            "changes a day, estimated",
            "pages",
            height=400,
            showlegend=False,
            xaxis={"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]},
            yaxis={"rangemode": "tozero"},
        ),
    )


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:20]}…{name[-13:]}"
