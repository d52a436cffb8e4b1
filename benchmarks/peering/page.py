"""docs/peers.md and its plot, from the rows of finished runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from peering.count import relevant_at
from peering.measure import FULL
from peering.plot import draw
from peering.program import PROGRAMS

MARKS: Final = (12, 50, 100, 200, 500, 1_000)
WORDS, PACK = "TRES, ten words", "TRES, trained pack"
Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]  # by program, in the order of PROGRAMS

HEAD: Final = """\
# TRES beside other crawlers

How many relevant pages does a crawler bring for a number of requests, and for a second of processor
time? These programs crawl the same 70 real sites (10,256 pages, recorded), from a directory that
lists them. Each program that takes words gets the same ten; TRES runs with a trained pack too.

![Relevant pages by requests, and relevant pages for each second of processor time](peers.svg)
"""
METHOD: Final = """\
## How it is measured

- One web for all: `tres web recorded` serves the pages as an HTTP proxy, and its log is counted. A
  page is relevant if the labels of the web say so, whatever the crawler thinks. It counts once.
- Each answer to a request counts, also "not found", previews of links and repeated requests. Only
  those for robots.txt do not; the last table shows them. Addresses with https are refused before
  they count, for each program: this web has no https.
- Every program starts at the directory and is stopped after {limit:,} requests. Sixteen requests
  may be in flight where a program can do that. Answers come at once, and no program waits between
  requests.
- Processor time is that of all processes of a program, from its start to its last request, without
  the web's. Seconds of the clock are those of a machine of two cores that also serves the web, and
  depend on what else it does.
- Each program has the settings that its documentation names for such a crawl, as far as they exist.
- The packs food, sports and hardware are those of this repository. The command trains the pack
  course on other pages, of universities in 1997.
- The sites are those that TRES is developed on. No setting of another program was tuned on them.
- "Paper" marks our own code of a published method. It runs inside TRES, which judges each page for
  its report, so its processor time is more than the method needs.

## Programs and settings
"""
LEFT_OUT: Final = """
Looked at and left out: Crawlee for Python (breadth-first within rules that you write, no topic: as
Scrapy here), trafilatura's `focused_crawler` (one site, prefers navigation pages, no topic),
Frontera (last release 2019), ACHE and Apache Nutch (Java, not in the package indexes used here;
ACHE's strategy is [compared in one process](../benchmarks/results/policies.md)).
"""


def write_page(folder: Path, rows: Sequence[Row], command: str, note: str = "") -> None:
    """Write peers.md and peers.svg of the longest crawls, newest versions only.

    `note` is a sentence about the times.
    """
    limit = max(row["limit"] for row in rows)
    rows = [row for row in rows if row["limit"] == limit]
    version = {(row["program"], row["topic"]): row["version"] for row in rows}
    rows = [row for row in rows if row["version"] == version[row["program"], row["topic"]]]
    rows = list({(row["program"], row["topic"], row["run"]): row for row in rows}.values())
    topics = list(dict.fromkeys(row["topic"] for row in rows))
    of = {each.name: [row for row in rows if row["program"] == each.name] for each in PROGRAMS}
    found = {name: chosen for name, chosen in of.items() if chosen}
    curves = {name: curve(chosen, topics, limit) for name, chosen in found.items()}
    draw(folder / "peers.svg", curves, found)
    lines = page_of(found, topics, limit, command, note)
    folder.joinpath("peers.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def page_of(
    found: Rows, topics: Sequence[str], limit: int, command: str, note: str
) -> Iterator[str]:
    """Yield the lines of the page."""
    marks = [mark for mark in MARKS if mark <= limit]
    yield HEAD
    yield "## Relevant pages by requests"
    yield f"\nThe sum of {', '.join(topics)}; means of the runs. The best of a column is bold.\n"
    yield from marks_table(found, topics, marks)
    yield from ahead(found, topics, marks)
    for topic in topics:
        yield f"\n### {topic.capitalize()}\n"
        yield from marks_table(found, [topic], marks)
    yield f"\n## Time\n\n{note}".rstrip() + "\n"
    yield from time_table(found)
    yield "\n" + METHOD.format(limit=limit)
    yield from settings(found)
    yield LEFT_OUT
    newest = max(row["date"] for rows in found.values() for row in rows)
    yield f"The newest run is of {newest}. Written by\n\n    {command}"


def at(rows: Sequence[Row], topics: Sequence[str], requests: int) -> float:
    """Return the relevant pages after some requests: the sum over topics of the means of runs.

    NaN if a topic has no run.
    """
    means = []
    for topic in topics:
        runs = [relevant_at(row["found"], requests) for row in rows if row["topic"] == topic]
        means.append(fmean(runs) if runs else float("nan"))
    return sum(means)


def curve(rows: Sequence[Row], topics: Sequence[str], limit: int) -> list[float]:
    """Return the relevant pages after 0, 10, 20, ... requests, the sum over topics."""
    return [at(rows, topics, requests) for requests in range(0, limit + 1, 10)]


def marks_table(found: Rows, topics: Sequence[str], marks: Sequence[int]) -> Iterator[str]:
    """Yield a table: a line for each program, a column for each number of requests."""
    values = {name: [at(rows, topics, mark) for mark in marks] for name, rows in found.items()}
    best = [
        max(value for value in column if not math.isnan(value))
        for column in zip(*values.values(), strict=True)
    ]
    yield f"| requests | {' | '.join(f'{mark:,}' for mark in marks)} |"
    yield "|---" * (len(marks) + 1) + "|"
    for name, row in values.items():
        cells = [_cell(value, best=value == top > 0) for value, top in zip(row, best, strict=True)]
        yield f"| {name} | {' | '.join(cells)} |"


def ahead(found: Rows, topics: Sequence[str], marks: Sequence[int]) -> Iterator[str]:
    """Yield how TRES with ten words compares with the best program that is not TRES."""
    if WORDS not in found or not set(found) - {WORDS, PACK}:
        return
    yield "\nTRES with ten words, beside the best other program at that point:\n"
    yield "| requests | TRES, ten words | best other | factor |"
    yield "|---|---|---|---|"
    for mark in marks:
        ours, value, name = best_other(found, topics, mark)
        ratio = f"{ours / value:.2f}" if value else ""
        yield f"| {mark:,} | {ours:.0f} | {name}, {value:.0f} | {ratio} |"
    behind = [
        f"{topic} at {mark:,} ({name} {value:.0f}, TRES {ours:.0f})"
        for topic in topics
        for mark in marks
        for ours, value, name in [best_other(found, [topic], mark)]
        if value > ours
    ]
    yield f"\nBy topic, another program is ahead here: {'; '.join(behind) or 'nowhere'}."


def best_other(found: Rows, topics: Sequence[str], mark: int) -> tuple[float, float, str]:
    """Return the pages of TRES with ten words, and pages and name of the best other program."""
    values = {name: at(rows, topics, mark) for name, rows in found.items()}
    others = [
        (value, name)
        for name, value in values.items()
        if name not in {WORDS, PACK} and not math.isnan(value)
    ]
    return values[WORDS], *max(others, default=(0.0, "none"))


def time_table(found: Rows) -> Iterator[str]:
    """Yield a table of times: means of the crawls, and relevant pages for each second."""
    yield "Means of the crawls. The start is the time before the first request.\n"
    columns = (
        "requests",
        "processor, s",
        "of it start",
        "clock, s",
        "relevant for a processor second",
        "without the start",
        "relevant for a second",
        "robots.txt",
    )
    yield f"| | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for name, rows in found.items():
        pages, spent = sum(len(row["found"]) for row in rows), total(rows, "processor")
        early = sum(row["ended"] != FULL for row in rows)
        cells = (
            f"{fmean(row['requests'] for row in rows):,.0f}"
            + (f" ({early} of {len(rows)} ended before)" if early else ""),
            f"{spent / len(rows):.1f}",
            f"{total(rows, 'start_processor') / len(rows):.1f}",
            f"{total(rows, 'wall') / len(rows):.1f}",
            f"{pages / spent:.1f}",
            f"{pages / (spent - total(rows, 'start_processor')):.1f}",
            f"{pages / total(rows, 'wall'):.1f}",
            f"{fmean(row['robots'] for row in rows):.0f}",
        )
        yield f"| {name} | {' | '.join(cells)} |"


def total(rows: Sequence[Row], name: str) -> float:
    """Return the sum of a column."""
    return sum(float(row[name]) for row in rows)


def settings(found: Rows) -> Iterator[str]:
    """Yield a line for each program: its version, runs and settings."""
    for program in PROGRAMS:
        if rows := found.get(program.name):
            versions = ", ".join(dict.fromkeys(row["version"].split()[0] for row in rows))
            runs = max(row["run"] for row in rows)
            said = f"version {versions}, {runs} {'run' if runs == 1 else 'runs'} a topic"
            yield f"- **{program.name}** ({said}): {program.settings}."


def _cell(value: float, *, best: bool) -> str:
    if math.isnan(value):
        return ""
    return f"**{value:.0f}**" if best else f"{value:.0f}"
