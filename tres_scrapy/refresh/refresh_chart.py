"""The charts of a refresh report: freshness, requests by arm, change rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
    steps,
)

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


def arms_chart(arms: Mapping[str, Counter[str]]) -> Chart:
    """Return the requests of each arm by what they found."""
    data = []
    for kind, colour in COLOURS.items():
        counts = [found[kind] for found in arms.values()]
        if any(counts):
            data.append(bars([_short(name) for name in arms], counts, kind, colour))
    return Chart(
        "arms",
        "Where did the requests go?",
        "The arms with most requests. An arm is the pages of one host and folder, or several such "
        "groups with similar rates.",
        data,
        bar_layout(len(arms), "requests", barmode="stack", showlegend=True),
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
