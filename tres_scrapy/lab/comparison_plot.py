"""Plots of the results, each an SVG file: the harvest, and the paper's Figures 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from tres_scrapy.lab.result import Result
from tres_scrapy.lab.table import (
    ORACLE,
    TRES,
    Cell,
    Cells,
    Key,
    caps_of,
    cells_of,
    name_of,
    policies_of,
    rank_of,
    topics_of,
)
from tres_scrapy.url.whole_file import whole_file

Floats = NDArray[np.float64]
Look = dict[str, Any]

INK: Final = "#333333"
# Okabe and Ito's colours, distinct for colour-blind readers. The lists of dashes and markers have
# other lengths, so no two policies look the same.
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c8c8c")
DASHES: Final = ("-", "--", "-.", ":")
MARKERS: Final = "osD^vPX*"
STYLE: Final[Any] = {
    "svg.hashsalt": "tres",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}
NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
WIDTH, HEIGHT = 3.8, 2.9  # of a panel, inches
MARKS: Final = 50  # points of a line
NEAR: Final = 5.0  # height of a label, in points of the harvest rate


class Picture(NamedTuple):
    """The file name of a plot, and its caption."""

    name: str
    caption: str


def draw(directory: Path, results: Sequence[Result], suffix: str) -> list[Picture]:
    """Draw the plots that have data as SVG files; the same results give the same bytes."""
    cells = cells_of(results)
    painters: dict[str, tuple[str, Callable[[Cells], Figure | None]]] = {
        "harvest": (
            "Harvest rate over pages: mean, lowest and highest of runs, up to the shortest crawl",
            _harvest,
        ),
        "pareto": (
            "Harvest rate against relevant domains, by MAX (Figure 3); if links ran out, pages "
            "not fetched count as irrelevant",
            _pareto,
        ),
        "frontier": ("Frontier and leaves of TRES over pages (Figure 4)", _frontier),
    }
    pictures = []
    with mpl.rc_context(STYLE):
        for name, (caption, paint) in painters.items():
            figure = paint(cells)
            if figure is not None:
                picture = Picture(f"{name}{suffix}.svg", caption)
                with whole_file(directory / picture.name) as file:
                    file.write(_svg(figure).encode())
                pictures.append(picture)
    return pictures


def look_of(policy: str) -> Look:
    """Return the line style of a policy, the same in every plot; TRES has a thicker line."""
    if policy == ORACLE:
        return {"label": name_of(policy), "color": "black", "linestyle": (0, (1, 1))}
    rank = rank_of(policy)
    return {
        "label": name_of(policy),
        "color": COLOURS[rank % len(COLOURS)],
        "linestyle": DASHES[rank % len(DASHES)],
        "linewidth": 2.4 if policy == TRES else 1.2,
    }


def _svg(figure: Figure) -> str:
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    return re.sub(r"(\d\.\d\d)\d+", r"\1", buffer.getvalue())  # half the size, the same picture


def _harvest(cells: Cells) -> Figure | None:
    """Draw a panel for each topic and MAX: mean, lowest and highest of the runs."""
    drawn = {key: [each for each in cells[key].results if each.series.pages] for key in cells}
    cells = {key: Cell(tuple(results)) for key, results in drawn.items() if results}
    if not cells:
        return None
    topics, caps = topics_of(cells), caps_of(cells)
    figure, panels = _panels(len(caps), len(topics))
    for cap, row in zip(caps, panels, strict=True):
        for topic, axes in zip(topics, row, strict=True):
            axes.set(title=f"{topic}, MAX {cap}", xlabel="pages", ylabel="harvest rate, %")
            for policy in policies_of(cells):
                if (cell := cells.get(Key(topic, policy, cap))) is not None:
                    _draw_course(axes, cell, look_of(policy))
            axes.set_visible(bool(axes.lines))
    _legend(figure, map(look_of, policies_of(cells)))
    return figure


def _draw_course(axes: Axes, cell: Cell, look: Look) -> None:
    pages, relevant = _courses(cell, "relevant")
    harvest = 100 * relevant / pages
    axes.plot(pages, harvest.mean(axis=0), **look)
    low, high = harvest.min(axis=0), harvest.max(axis=0)
    axes.fill_between(pages, low, high, color=look["color"], alpha=0.12, linewidth=0)


def _courses(cell: Cell, name: str) -> tuple[Floats, Floats]:
    """Return page numbers [n] that every run reached, and the values of a column [runs, n]."""
    series = [result.series for result in cell.results]
    last = min(each.pages[-1] for each in series)
    marks = np.unique(np.ceil(np.linspace(last / MARKS, last, MARKS)))
    columns = [np.interp(marks, [0, *each.pages], [0, *getattr(each, name)]) for each in series]
    return marks, np.array(columns)


def _pareto(cells: Cells) -> Figure | None:
    """Draw a panel for each topic: a point for each policy and MAX, joined by policy."""
    if not cells:
        return None
    topics = topics_of(cells)
    figure, (panels,) = _panels(1, len(topics))
    for topic, axes in zip(topics, panels, strict=True):
        axes.set(title=topic, ylabel="harvest rate, %", xlabel="relevant domains")
        if any(cell.domains.mean for key, cell in cells.items() if key.topic == topic):
            axes.set(xlabel="relevant domains, logarithmic")
            axes.set_xscale("log", subs=())
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:,.0f}")
        for policy in policies_of(cells):
            keys = [Key(topic, policy, cap) for cap in caps_of(cells)]
            points = {
                key.cap: (cells[key].domains.mean, cells[key].reach) for key in keys if key in cells
            }
            if points:
                axes.plot(*zip(*points.values(), strict=True), **_marked(policy))
            if policy == TRES:
                _label_points(axes, points)
    _legend(figure, map(_marked, policies_of(cells)))
    return figure


def _label_points(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Write each MAX above its point, or below if another point is just above."""
    for cap, (x, y) in points.items():
        below = any(
            y < top <= y + NEAR and max(x, other) < 1.2 * min(x, other)
            for other, top in points.values()
        )
        axes.annotate(
            cap,
            (x, y),
            xytext=(0, -13 if below else 5),
            textcoords="offset points",
            ha="center",
        )


def _frontier(cells: Cells) -> Figure | None:
    """Draw a panel for each topic: the means of the runs, one colour per MAX."""
    measured = {
        key: cell
        for key, cell in cells.items()
        if key.policy == TRES and all(any(result.series.leaves) for result in cell.results)
    }
    if not measured:
        return None
    topics, looks = topics_of(measured), dict(zip(caps_of(measured), cycle(COLOURS), strict=False))
    figure, (panels,) = _panels(1, len(topics))
    for topic, axes in zip(topics, panels, strict=True):
        axes.set(title=topic, xlabel="pages", ylabel="samples, and leaves")
        axes.set_yscale("log")
        for cap, colour in looks.items():
            if (cell := measured.get(Key(topic, TRES, cap))) is not None:
                for name, dashes in (("frontier", "-"), ("leaves", "--")):
                    marks, columns = _courses(cell, name)
                    axes.plot(marks, columns.mean(axis=0), color=colour, linestyle=dashes)
    kinds = {"samples in the frontier": "-", "leaves": "--"}
    _legend(
        figure,
        [{"label": f"MAX {cap}", "color": colour} for cap, colour in looks.items()]
        + [{"label": name, "color": INK, "linestyle": dashes} for name, dashes in kinds.items()],
    )
    return figure


def _marked(policy: str) -> Look:
    """Return the style of a policy with markers, for lines of few points."""
    return look_of(policy) | {"marker": MARKERS[rank_of(policy) % len(MARKERS)]}


def _panels(rows: int, columns: int) -> tuple[Figure, Any]:
    """Return a figure and its axes [rows, columns], which share the y axis."""
    size = (max(2, columns) * WIDTH, rows * HEIGHT + 1)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=True)


def _legend(figure: Figure, looks: Iterable[Look]) -> None:
    handles = [Line2D([], [], **look) for look in looks]
    columns = int(figure.get_figwidth() // 1.5)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
