"""The page that tells how a crawl went: one file that asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from tres_scrapy.page.file import whole_file
from tres_scrapy.report.figure import Picture, pictures
from tres_scrapy.report.record import Page, Record

TEMPLATE: Final = "crawl_report.html.jinja"
SCRIPT: Final = "crawl_report.js"
SUFFIX: Final = ".html"
RECENT: Final = 60  # pages in the table
ENDS: Final = {
    "page_limit": "All pages that were asked for are fetched.",
    "frontier_exhausted": "It ran out of links.",
    "shutdown": "It was stopped, by Ctrl-C or a signal.",
    "no_page": "No seed brought a page.",
    "unreachable": "It stopped, as no host could be reached.",
}
GROUPS: Final = {  # the pictures by the heading they stand under
    "How it went": ("harvest", "relevant_domains", "frontier", "speed"),
    "What came of it": ("outcomes", "domains"),
    "What it has learned": ("tree", "loss"),
}


class Figure(NamedTuple):
    """A number of the headline and what it counts."""

    value: str
    name: str


def write_report(record: Record, path: Path) -> None:
    """Write the page of a record; it replaces an older one when it is all there."""
    with record.moment():
        text = render(record)
    with whole_file(path) as file:
        file.write(text.encode(errors="replace"))  # a title may be half a letter


def render(record: Record) -> str:
    """Return the page of a record."""
    drawn = {picture.name: picture for picture in pictures(record)}
    plotly, script = plotly_script(), _own(SCRIPT)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"web": web_link, "clock": _clock}
    meta = record.meta()
    return environment.from_string(_own(TEMPLATE)).render(
        meta=meta,
        verdict=_verdict(record, meta),
        begun=_begun(record),
        ending=_ending(meta),
        headline=_headline(record),
        groups={
            heading: [drawn[name] for name in names if name in drawn]
            for heading, names in GROUPS.items()
        },
        dependence=[picture for name, picture in drawn.items() if name.startswith("dependence_")],
        figures=_json(drawn.values()),
        pages=[(page, record.why(page)) for page in record.last(RECENT)],
        settings=record.settings(),
        hashes=[_hash(plotly), _hash(script)],
        plotly=Markup(plotly),  # noqa: S704 - it comes with the package
        script=Markup(script),  # noqa: S704 - our own
    )


def plotly_script() -> str:
    """Return plotly.js as the package plotly ships it; importing that takes longer than this."""
    found = find_spec("plotly")
    assert found is not None
    assert found.submodule_search_locations is not None
    script = Path(found.submodule_search_locations[0], "package_data", "plotly.min.js")
    return script.read_text(encoding="utf-8").replace("</script", "<\\/script")


def web_link(url: str) -> str:
    """Return a URL if it is one of the web, else "": nothing a click could run."""
    return url if url.startswith(("http://", "https://")) else ""


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return what the page's policy knows a script by."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _json(drawn: Sequence[Picture] | Any) -> Markup:
    """Return the figures as JSON that cannot end the element it stands in."""
    text = json.dumps({picture.name: picture.as_figure() for picture in drawn})
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - nothing is left that is HTML


def _verdict(record: Record, meta: dict[str, str]) -> str:
    last = next(iter(record.curve()[-1:]), None)
    if last is None or not last.pages:
        return "No page was fetched."
    share, topic = _percent(last.relevant / last.pages), meta.get("topic", "the topic")
    return (
        f"{last.relevant:,} of {last.pages:,} pages, {share}, are relevant to {topic}, "
        f"on {last.domains:,} domains."
    )


def _ending(meta: dict[str, str]) -> str:
    if "ended" not in meta:
        return "It had not ended when this was written, or was killed."
    reason = meta.get("reason", "")
    return ENDS.get(reason, f"It ended: {reason}." if reason else "It ended.")


def _headline(record: Record) -> list[Figure]:
    curve, count = record.curve(), record.count()
    if not curve:
        return []
    last = curve[-1]
    failures = sum(count.values()) - sum(
        count.get(kind, 0) for kind in ("relevant", "irrelevant", "copy", "query")
    )
    found = [
        Figure(f"{last.pages:,}", "pages"),
        Figure(_percent(last.relevant / max(1, last.pages)), "harvest rate"),
        Figure(f"{last.relevant:,}", "relevant pages"),
        Figure(f"{last.domains:,}", "relevant domains"),
        Figure(f"{last.frontier:,}", "links wait"),
    ]
    if last.leaves is not None:
        found.append(Figure(f"{last.leaves:,}", "leaves"))
    return [*found, Figure(f"{failures:,}", "failed fetches"), Figure(_duration(curve), "duration")]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _duration(curve: Sequence[Any]) -> str:
    seconds = round(curve[-1].time - curve[0].time)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _begun(record: Record) -> str:
    """Say when the crawl began and how often it was gone on with; "" if it is not known."""
    starts = record.starts()
    if not starts:
        return ""
    more = len(starts) - 1
    again = f", gone on with {'once' if more == 1 else f'{more:,} times'}" if more else ""
    begun = datetime.fromtimestamp(starts[0], UTC)
    return f"Begun {begun:%Y-%m-%d %H:%M:%S} UTC{again}."


def _clock(page: Page) -> str:
    return datetime.fromtimestamp(page.time, UTC).strftime("%H:%M:%S")
