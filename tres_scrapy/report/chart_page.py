"""HTML pages with charts: one file that loads nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tres_scrapy.report.chart import Chart, plotly_file
from tres_scrapy.url.whole_file import whole_file


def chart_page(template: str, charts: Sequence[Chart], **values: Any) -> str:
    """Render a template of the package, such as "report/crawl_report.html.jinja".

    The template extends report/chart_page.html.jinja and gets `charts` and `values`.
    """
    environment = Environment(
        loader=PackageLoader("tres_scrapy", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scripts = [plotly_script(), _drawing_script()] if charts else []
    return environment.get_template(template).render(
        charts=charts,
        figures=_json(charts),
        hashes=[_hash(script) for script in scripts],
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


def _drawing_script() -> str:
    return files(__package__).joinpath("chart_page.js").read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return the hash by which the page's content security policy allows a script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _json(charts: Sequence[Chart]) -> Markup:
    """Return the charts as JSON that cannot close its script element."""
    text = json.dumps({chart.name: chart.as_figure() for chart in charts})
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - no character of HTML is left
