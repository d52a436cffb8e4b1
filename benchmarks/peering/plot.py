"""The plot of docs/peers.md: legible on a light and on a dark background."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK: Final = "#787878"  # contrast above 4 on white and on GitHub's dark background
COLOURS: Final = {
    "TRES, ten words": "#d55e00",
    "TRES, trained pack": "#e08a3c",
    "crawl4ai best-first": "#2a7fc0",
    "crawl4ai adaptive": "#5a9fd4",
    "bytecrawl Shark-Search": "#009e73",
    "bytecrawl OPIC": "#4fb897",
    "Shark-Search (paper)": "#a06cb5",
    "OPIC (paper)": "#bb90cb",
    "Scrapy breadth-first": "#8c8c8c",
}
DASHED: Final = {"TRES, trained pack", "crawl4ai adaptive", "bytecrawl OPIC", "OPIC (paper)"}
STYLE: Final[Any] = {
    "svg.hashsalt": "tres",
    "svg.fonttype": "none",
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.alpha": 0.25,
    "grid.color": INK,
    "legend.frameon": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}
NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(
    file: Path,
    curves: Mapping[str, Sequence[float]],
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    """Write an SVG file: pages by requests, ten requests a point, and pages by processor time."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        by_requests, by_time = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _draw_curves(by_requests, curves)
        _draw_bars(by_time, rows)
        text = StringIO()
        figure.savefig(text, format="svg", metadata=NO_METADATA)
    plain = re.sub(r"<!DOCTYPE[^>]*>\s*", "", text.getvalue())
    file.write_text(re.sub(r"[ \t]+$", "", plain, flags=re.MULTILINE), encoding="utf-8")


def _draw_curves(axes: Axes, curves: Mapping[str, Sequence[float]]) -> None:
    axes.set(title="Relevant pages by requests, four topics", xlabel="requests a topic")
    for name, curve in curves.items():
        axes.plot(
            range(0, 10 * len(curve), 10),
            curve,
            color=COLOURS[name],
            linestyle="--" if name in DASHED else "-",
            linewidth=2.2 if name.startswith("TRES") else 1.3,
            label=name,
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", fontsize=7)


def _draw_bars(axes: Axes, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    axes.set(title="Relevant pages for a second of processor time")
    axes.grid(visible=False, axis="y")
    names = list(rows)[::-1]
    values = [
        sum(len(row["found"]) for row in rows[name]) / sum(row["processor"] for row in rows[name])
        for name in names
    ]
    bars = axes.barh(names, values, color=[COLOURS[name] for name in names])
    axes.bar_label(bars, fmt="%.1f", padding=3, color=INK)
    axes.margins(x=0.12)
