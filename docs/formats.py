"""Writes docs/formats.md from the code: `python docs/formats.py`."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import get_args

from tres_scrapy.export.csv_table import COLUMNS, DOMAIN_COLUMNS
from tres_scrapy.export.metrics import FAILED, INFO, LAG, METRICS
from tres_scrapy.frontier.feature import TABLE, Feature
from tres_scrapy.items import CHOSEN, RelevantPage
from tres_scrapy.lab.webs.recorded import KINDS
from tres_scrapy.lab.webs.web import Answer, Count

ITEM = {  # what the fields of an item hold
    "url": "the URL that was chosen",
    "final_url": "the URL that answered, after redirects",
    "title": "title of the page",
    "text": "main text of the page, without menus and footers",
    "language": "ISO 639-1; empty if unknown",
    "probability": "P(relevant), calibrated",
    "depth": "number of links from the seed",
    "path": "URLs from the seed to this page, the last hundred at most",
    "anchor": "text of the link that was followed",
    "q_value": "Q(s, a) when it was chosen; null during exploration and for seeds",
    "leaf": "number of its leaf at that time; null for seeds",
    "fetched_at": "time of the answer, ISO 8601, UTC",
    "status": "HTTP status",
    "why": "why it was chosen, and what spoke for its link",
    "rendered": "whether a browser ran the scripts of the page",
    "content_type": "`text/html` or `application/pdf`, by the content",
    "rights": "what was said about the use of the page: `signal`, `value`, `where` it stood, "
    "`when` it was read ([rights](rights.md)); empty only in items of jobs begun before this field",
    "domain": "registrable domain of `final_url`",
    "new": "whether neither URL is in the files of `TRES_KNOWN`",
    "new_domain": "whether its domain is not in these files",
}
CHOSEN_ITEM = {  # what the fields hold that `fields` names
    "html": "the page as it was read; empty for a PDF",
    "markdown": "main text in Markdown, by trafilatura; of a PDF its pages as paragraphs; empty if "
    "nothing was found",
    "date": "when the page was published, `2026-05-31`, as it says; empty if unknown",
    "headings": "the texts of its headings, the first 200",
    "scores": "not by `fields`, but of each crawl with several topics: P(relevant) by topic, moved "
    "so that 0.5 is the threshold of each; `probability` is the largest",
}
VERDICT = {  # what a metadata record of a WARC file holds
    "relevant": "whether the page was judged relevant",
    "probability": "P(relevant)",
    "duplicate": "whether it is a near-duplicate of an earlier page; then it is not an item",
    "language": "ISO 639-1",
    "depth": "links from the seed",
    "via": "the page with the link",
    "failure": "why the fetch failed: robots, http_404, soft_404, DownloadTimeoutError, ...",
    "again": "`true` if the crawl was killed while it fetched this page before: then earlier "
    "responses of this URL, if any, have no verdict",
}
LOG = {  # what a line of the log of an offline web holds
    "time": "seconds since 1970",
    "url": "requested URL",
    "status": "HTTP status of the answer",
    "kind": "kind of the answer, see below",
    "relevant": "the true label",
    "site_kind": "`off`, `pure`, `mixed`, `hub`, `corpus`, `recorded`",
    "duplicate": "whether it was requested before",
}


def _kind(metric: str) -> str:
    return "counter" if metric.endswith("_total") else "gauge"


def page() -> str:
    """Return the page; KeyError if the code writes something that is not described here."""
    template = Path(__file__).with_name("formats.txt").read_text(encoding="utf-8")
    item = [spec.name for spec in fields(RelevantPage)]
    types = {spec.name: str(spec.type) for spec in fields(RelevantPage)}
    kinds = {name: str(kind) if get_args(kind) else kind.__name__ for name, kind in CHOSEN.items()}
    known = (*METRICS, FAILED, LAG, INFO)
    metrics = {metric.name: f"{_kind(metric.name)}: {metric.meaning}" for metric in known}
    tables = {
        "ITEM": _table({name: f"{types[name]}: {ITEM[name]}" for name in item}),
        "CHOSEN": _table({name: f"{kinds[name]}: {CHOSEN_ITEM[name]}" for name in CHOSEN}),
        "PAGES": _table(COLUMNS),
        "DOMAINS": _table(DOMAIN_COLUMNS),
        "VERDICT": _table(VERDICT),
        "METRICS": _table(metrics),
        "FEATURES": "\n".join(map(_feature, TABLE)),
        "LOG": _table({name: LOG[name] for name in _logged()}),
        "KINDS": ", ".join(f"`{kind}`" for kind in (*KINDS, "trap", "search", "unrecorded")),
    }
    for name, table in tables.items():
        template = template.replace(f"{{{name}}}", table)
    return template


def _table(rows: Mapping[str, str]) -> str:
    lines = [
        f"| `{name}` | {meaning} |".replace(" | None", " or null") for name, meaning in rows.items()
    ]
    return "\n".join(["| name | meaning |", "|---|---|", *lines])


def _feature(feature: Feature) -> str:
    kind = "live" if feature.live else "static"
    words = (feature.meaning, feature.unit.value, f"{feature.origin.value}, {kind}")
    return f"| {feature.number or ''} | `{feature.name}` | {' | '.join(words)} |"


def _logged() -> list[str]:
    log = io.StringIO()
    Count(log).add("http://a.test/", Answer(200, b"", (), "page"))
    return list(json.loads(log.getvalue()))


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
