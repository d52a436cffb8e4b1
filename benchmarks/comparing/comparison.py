"""The report of a benchmark: a CSV file of all runs, and a page with tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

from comparing.result import UNSEEDED, Result
from comparing.table import (
    COUNTS,
    cells_of,
    crawler_table,
    found_table,
    topics_of,
)
from tres_scrapy.url.message import plural
from tres_scrapy.url.whole_file import whole_file

CSV = "results.csv"
PAGE = "results.md"
COLUMNS = (
    f"{CSV} has one line per run. `pages` is the number of pages fetched of the `pages_asked`. "
    "`fetches` also counts redirects and failures, but not robots.txt. "
    "`exhausted` is 1 if links ran out. `seconds` is processor time. "
    "`start` has the URLs that a run started from; it is empty where the web "
    f"chose them. `found_{COUNTS[0]}` is the number of relevant pages that the first {COUNTS[0]} "
    "fetches found. `area` is the area under the curve of relevant pages over the first "
    "`pages_asked` fetches. Table numbers are those of the paper (Kontogiannis et al., "
    "Tree-based Focused Web Crawling with Reinforcement Learning)."
)

SCORES = (
    "Mean ± standard deviation over seeds and starts, counted by the web. The best crawler for "
    "each MAX is bold (no oracle, no lookahead). n: the number of runs, if other crawlers "
    "have more; such rows are never bold. †: links ran out after that many pages. Pages asked for "
    "but not fetched count as irrelevant for bold."
)
FOUND = (
    "Mean, lowest and highest of the runs, which differ in start and seed. A fetch is any request "
    "but that for a robots.txt: a dead link or a redirect counts. The column of pages counts only "
    "fetches that brought a page. `area` is the area under the curve of relevant pages over the "
    "first fetches, as many as pages were asked for, as a share of that of Lookahead, which knows "
    "the links and labels of the web."
)


def write_report(directory: Path, results: Sequence[Result], conditions: str) -> Path:
    """Write results.csv and results.md, and return the path of the page.

    Each table shows crawls of one length only.
    """
    results = sorted(results, key=lambda result: result.run)
    write_rows(directory / CSV, results)
    versions = len({result.code for result in results})
    by = f", by {versions} versions of the code" if versions > 1 else ""
    lines = ["# Every policy on the same web", "", f"{conditions}{by}.", "", COLUMNS, ""]
    for pages in sorted({result.run.pages for result in results}):
        chosen = [result for result in results if result.run.pages == pages]
        lines += _section(pages, chosen)
    path = directory / PAGE
    with whole_file(path) as file:
        file.write("\n".join(lines).encode())
    return path


def write_rows(path: Path, results: Sequence[Result]) -> None:
    """Write a CSV file with one line per run; there must be one."""
    rows = [_row(result) for result in results]
    text = StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def _row(result: Result) -> dict[str, object]:
    run = result.run
    found = {f"found_{n}": result.found_after(n) if run.pages >= n else "" for n in COUNTS}
    found["area"] = result.area
    return {
        "web": run.web,
        "topic": run.topic,
        "policy": run.policy,
        "max": run.cap,
        "start": run.start,
        "seed": run.seed,
        "pages_asked": run.pages,
        "pages": result.pages,
        "relevant": result.relevant,
        "harvest": round(result.harvest, 4),
        "domains": result.domains,
        "fetches": result.fetches,
        "exhausted": int(result.exhausted),
        "seconds": result.seconds,
        **found,
    }


def _section(pages: int, results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the section on crawls of one length."""
    seeds = sorted({result.run.seed for result in results})
    starts = len({result.run.start for result in results} - {""})
    of_starts = f"{starts} {plural(starts, 'start')}, " if starts else ""
    yield from (f"## T = {pages:,} pages, {of_starts}seeds {', '.join(map(str, seeds))}", "")
    scores = crawler_table(cells_of(results))
    first = "Harvest rate in % / relevant domains (Table 3)", SCORES, scores
    for title, text, lines in (first, *found_tables(pages, results)):
        if lines:
            yield from (f"### {title}", "", text, "", *lines, "")


def found_tables(pages: int, results: Sequence[Result]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a table for each topic of the webs that were not generated."""
    cells = cells_of(result for result in results if result.run.web in UNSEEDED)
    for number, topic in enumerate(topics_of(cells)):
        text = "As above." if number else FOUND
        yield f"Relevant pages found: {topic}", text, found_table(cells, topic, pages)
