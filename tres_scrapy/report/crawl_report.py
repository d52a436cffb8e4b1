"""The report of a crawl: one HTML file that loads nothing from the network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from tres_scrapy.crawl.crawl import DATA
from tres_scrapy.page.kind import WALLS
from tres_scrapy.report.audit import Audit, checked, identity_of
from tres_scrapy.report.chart import chart_page, write_page
from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.learned_chart import PREFIX
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import ENDS, REPORT
from tres_scrapy.report.share import Totals, holder_of, independent, sentence, shares, totals
from tres_scrapy.run.forgotten import DISTRUSTED, FORGOTTEN
from tres_scrapy.run.run_file import FINAL, Fetch, Point, reading
from tres_scrapy.url.message import counted

TEMPLATE: Final = "report/crawl_report.html.jinja"
RECENT_PAGES: Final = 60  # pages in the table
SEARCHED_PAGES: Final = 1_000  # pages in the list to search
BEST_PAGES: Final = 20  # pages at the top
SHARES: Final = 10  # sites and bodies in the table of their shares
KINDS: Final = {
    "greedy": "highest Q",
    "uncertain": "little explored",
    "explored": "exploration",
    "seed": "seed",
    "other": "policy",
}
BLIND: Final = " The trained topic hardly knew these pages: its keywords counted more than it."
TAKEN_OUT: Final = {
    DISTRUSTED: "fetches of distrusted sites",
    FORGOTTEN: "forgotten fetches",
}
GROUPS: Final = {  # charts by heading
    "Harvest over time": ("harvest", "topics", "relevant_domains"),
    "What was fetched": ("outcomes", "domains"),
    "How the crawl ran": ("frontier", "speed", "errors", "memory"),
    "What it has learned": ("tree", "calibration", "precision"),
}


def write_report(record: Record, path: Path) -> None:
    """Write the report of a record; it replaces an older report only when it is complete."""
    with record.moment():
        text = render(record)
    write_page(path, text)


def report_beside(path: Path) -> Path:
    """Write the report of the record at `path` beside it; return the page."""
    page = path.with_suffix(REPORT)
    with Record(path) as record:
        write_report(record, page)
    return page


def render(record: Record) -> str:
    """Return the report of a record as HTML."""
    drawn = {chart.name: chart for chart in charts(record)}
    meta, holder = record.meta(), holder_of(record)
    final = _final(record, meta)
    left = totals(record)
    return chart_page(
        TEMPLATE,
        list(drawn.values()),
        meta=meta,
        verdict=_verdict(record, meta, final, left),
        begun=_begun(record),
        ending=_ending(meta, record.count()),
        holder=holder,
        held="" if holder is None else sentence(holder),
        shares=shares(record, SHARES),
        fetched=left.pages,
        shards=record.shards(),
        headline=_headline(record, left),
        refused=record.refused(),
        groups={
            heading: [drawn[name] for name in names if name in drawn]
            for heading, names in GROUPS.items()
        },
        dependence=[chart for name, chart in drawn.items() if name.startswith("dependence_")],
        loss=drawn.get("loss"),
        links=[chart for name, chart in drawn.items() if name.startswith(PREFIX)],
        pages=[(page, record.why(page)) for page in record.last(RECENT_PAGES)],
        best=_with_reasons(record, _best(record)),
        relevant=_with_reasons(record, record.relevant(SEARCHED_PAGES)),
        found=left.relevant,
        output=output.name if (output := Path(meta.get("output", ""))).exists() else "",
        brief=_brief,
        kinds=KINDS,
        by_web=_by_web(record),
        settings=record.settings(),
        changed=record.changed_settings(),
        web_link=web_link,
        clock=_clock,
    )


def web_link(url: str) -> str:
    """Return a URL if it is http or https, else "", so that a click never runs a script."""
    return url if url.startswith(("http://", "https://")) else ""


def _best(record: Record) -> list[Fetch]:
    """Return a fair selection of the relevant pages: of all domains, and of all topics."""
    topics = sorted(record.relevant_steps()) or [""]
    lists = [record.best(BEST_PAGES, topic) for topic in topics]
    turns = (page for turn in zip_longest(*lists) for page in turn if page is not None)
    return list({page.step: page for page in turns}.values())[:BEST_PAGES]


def _with_reasons(
    record: Record, pages: Sequence[Fetch]
) -> list[tuple[Fetch, str, dict[str, float]]]:
    return [(page, record.why(page), record.scores(page)) for page in pages]


def _brief(page: Fetch) -> str:
    """Return why a page was chosen, in a few words."""
    said = KINDS.get(page.chosen, page.chosen)
    said += f" {page.q_value:.2f}" if page.chosen == "greedy" and page.q_value is not None else ""
    return f"{said}, link “{page.anchor}”" if page.anchor else said


def _final(record: Record, meta: dict[str, str]) -> dict[str, Any]:
    """Return what the last model has made of the output, {} if the topic did not learn."""
    with reading(record.path):
        return dict(json.loads(meta.get(FINAL, "{}")))


def _verdict(record: Record, meta: dict[str, str], final: dict[str, Any], left: Totals) -> str:
    pages, relevant, domains = left
    if not pages:
        is_empty = not any(point.pages for point in record.curve())
        return "No page was fetched." if is_empty else "No page is left."
    is_final = "rows" in final
    then = sum(1 for _ in record.pages()) if is_final else 0
    again = (
        f" The last model of the topic judged all pages again; when they were fetched, "
        f"{then:,} were judged relevant, and the curves show these."
    )
    again += BLIND if final.get("is_blind") else ""
    return (
        f"{relevant:,} of {counted(pages, 'page')}, {_percent(relevant / pages)}, "
        f"{'is' if relevant == 1 else 'are'} relevant to {meta.get('topic', 'the topic')}, on "
        f"{counted(domains, 'domain')}: "
        f"{_checked(record, final.get('identity'))}.{again if is_final else ''}"
    )


def _checked(record: Record, identity: str | None) -> str:
    """Return how far the output was checked; it has an identity if the last model wrote it."""
    audit = Audit.read(record.path)
    if audit is None:
        return checked(None)
    fetched = identity_of(page.row for page in record.pages())
    is_same = audit.output == (identity or audit.output) and audit.fetched == fetched  # not resumed
    is_same &= {row for row, _ in audit.drawn} <= {page.row for page in record.pages(0.0)}
    return checked(audit, is_same=is_same)


def _by_web(record: Record) -> str:
    """Return what the web itself counted by its true labels, "" if it has none."""
    found = record.web_count()
    if not found:
        return ""
    web = "Since the last start alone, the web" if len(record.starts()) > 1 else "The web"
    return (
        f"{web} sent {counted(found['pages'], 'page')}, "
        f"{found['relevant']:,.0f} relevant by its true labels, {_percent(found['harvest'])}, on "
        f"{counted(found['domains'], 'domain')}."
    )


def _ending(meta: dict[str, str], count: dict[str, int]) -> str:
    if "ended" not in meta:
        return "It was still running when this was written, or it was killed."
    reason = meta.get("reason", "")
    told = f"It ended: {ENDS.get(reason, reason)}." if reason else "It ended."
    left, gone, reserved = (meta.get(name) for name in ("left", "gone", "reserved"))
    told += f" {left}." if left else ""
    told += f" By the yields of its hosts, {reach}." if (reach := meta.get("reach")) else ""
    told += f" Kept out of the output, as reserved: {reserved}." if reserved else ""
    told += f" Hosts given up: {gone}." if gone else ""
    out = [f"{count[kind]:,} {words}" for kind, words in TAKEN_OUT.items() if kind in count]
    return told + (f" Taken out, but still in the curves: {', '.join(out)}." if out else "")


def _headline(record: Record, left: Totals) -> dict[str, str]:
    """Return the numbers at the top of the report, by name."""
    curve, count = record.curve(), record.count()
    if not curve:
        return {}
    last, others = curve[-1], ("relevant", "irrelevant", "copy", DATA, *TAKEN_OUT)
    walls = {kind: count[kind] for kind in WALLS if kind in count}
    failures = sum(count.values()) - sum(count.get(kind, 0) for kind in others)
    linked = independent(record)
    found = {
        "pages": f"{left.pages:,}",
        "harvest rate": _percent(left.relevant / max(1, left.pages)),
    }
    if linked is not None:
        found["relevant and independently linked"] = _percent(linked / max(1, left.pages))
    found |= {
        "relevant pages": f"{left.relevant:,}",
        "relevant domains": f"{left.domains:,}",
        "waiting links": f"{last.frontier:,}",
    }
    if last.leaves is not None:
        found["leaves"] = f"{last.leaves:,}"
    if walls:
        kinds = ", ".join(f"{kind.removeprefix('wall_')} {n:,}" for kind, n in walls.items())
        found["walls"] = f"{sum(walls.values()):,} ({kinds})"
    return found | {"failed fetches": f"{failures:,}", "duration": _duration(curve)}


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _duration(curve: Sequence[Point]) -> str:
    seconds = round(curve[-1].time - curve[0].time)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _begun(record: Record) -> str:
    """Return when the crawl started and how often it was resumed, "" if unknown."""
    starts = record.starts()
    if not starts:
        return ""
    more = len(starts) - 1
    again = f", resumed {'once' if more == 1 else f'{more:,} times'}" if more else ""
    begun = datetime.fromtimestamp(starts[0], UTC)
    return f"Started {begun:%Y-%m-%d %H:%M:%S} UTC{again}."


def _clock(page: Fetch) -> str:
    return datetime.fromtimestamp(page.time, UTC).strftime("%H:%M:%S")
