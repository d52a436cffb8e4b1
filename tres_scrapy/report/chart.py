"""Charts, and pages with charts: one HTML file that loads nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tres_scrapy.url.whole_file import whole_file

Trace = dict[str, Any]
Layout = dict[str, Any]

# Okabe and Ito's colours: distinct for colour-blind readers, on white and on black
BLUE, ORANGE, GREEN, GREY = "#0a7abf", "#e08a00", "#009e73", "#8c8c8c"
LIGHT_BLUE, PURPLE = "#56b4e9", "#c46da0"
HEIGHT: Final = 320


@dataclass(frozen=True, slots=True)
class Chart:
    """A Plotly figure with a title and a sentence that says how to read it.

    The page sets the colours of text and grid, light or dark.
    """

    name: str
    title: str
    note: str
    data: list[Trace]
    layout: Layout

    def as_figure(self) -> dict[str, Any]:
        """Return the figure for plotly.js."""
        return {"data": self.data, "layout": self.layout}


def plotly_file() -> Path:
    """Return the path of plotly.js in the package plotly, without the slow import."""
    found = find_spec("plotly")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0], "package_data", "plotly.min.js")


def line(
    x: Sequence[float], y: Sequence[float | None], name: str, colour: str, width: float = 2.2
) -> Trace:
    """Return a line through points."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": colour, "width": width},
    }


def steps(edges: Sequence[float], heights: Sequence[float], name: str, colour: str) -> Trace:
    """Return the outline of a histogram: `heights` [n] between `edges` [n + 1]."""
    x, y = [edges[0], *edges, edges[-1]], [0, *heights, heights[-1], 0]
    outline = line(x, y, name, colour, 1.6)
    return outline | {"line": outline["line"] | {"shape": "hv"}}


def bars(names: Sequence[str], values: Sequence[float], name: str, colours: Any) -> Trace:
    """Return horizontal bars, the first name on top; `colours` is one colour or a list."""
    return {
        "type": "bar",
        "orientation": "h",
        "y": [escape(each) for each in names],
        "x": values,
        "name": name,
        "marker": {"color": colours},
        "hovertemplate": f"%{{y}}: %{{x:,}} {name}<extra></extra>",
    }


def layout(x: str, y: str, **more: Any) -> Layout:
    """Return the layout of a chart with titled axes; `more` goes to Plotly as it is."""
    margin = {"l": 60, "r": 12, "t": 8, "b": 48}
    given = {"height": HEIGHT, "margin": margin, "hovermode": "x unified", **more}
    return given | {
        "xaxis": {"title": {"text": x}, "zeroline": False} | more.get("xaxis", {}),
        "yaxis": {"title": {"text": y}, "zeroline": False} | more.get("yaxis", {}),
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
        },
    }


def bar_layout(count: int, x: str, **more: Any) -> Layout:
    """Return the layout of `count` horizontal bars."""
    return layout(
        x,
        "",
        height=max(160, 70 + 24 * count),
        hovermode="closest",
        margin={"l": 60, "r": 40, "t": 8, "b": 48},
        yaxis={"automargin": True, "autorange": "reversed"},
        bargap=0.25,
        **more,
    )


def templates_in(folder: str) -> Environment:
    """Return the templates of a folder of the package; what they show is escaped."""
    return Environment(
        loader=PackageLoader("tres_scrapy", folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def chart_page(template: str, charts: Sequence[Chart], **values: Any) -> str:
    """Render a template of the package, such as "report/crawl_report.html.jinja".

    The template extends report/chart_page.html.jinja and gets `charts` and `values`.
    """
    environment = templates_in(".")
    drawing = files(__package__).joinpath("chart_page.js").read_text(encoding="utf-8")
    scripts = [plotly_script(), drawing] if charts else []
    return environment.get_template(template).render(
        charts=charts,
        figures=script_json({chart.name: chart.as_figure() for chart in charts}),
        hashes=[script_hash(script) for script in scripts],
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - plotly's and our own
        **values,
    )


def write_page(path: Path, text: str) -> None:
    """Write a page; it replaces an older page only when it is complete."""
    with whole_file(path) as file:
        file.write(text.encode(errors="replace"))  # a title may hold half a surrogate pair


def plotly_script() -> str:
    """Return plotly.js, escaped for a script element."""
    return plotly_file().read_text(encoding="utf-8").replace("</script", "<\\/script")


def script_hash(script: str) -> str:
    """Return the hash by which the page's content security policy allows a script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def script_json(value: object) -> Markup:
    """Return a value as JSON that cannot close its script element."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - no character of HTML is left
