"""The report of a benchmark: a CSV file of all runs, and a page with tables and plots."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

from tres_scrapy.bench.comparison_plot import Picture, draw
from tres_scrapy.bench.mean import Cells, cells_of, pace_of
from tres_scrapy.bench.result import Result
from tres_scrapy.bench.table import (
    crawler_table,
    pace_table,
    pareto_table,
    ratio_table,
    variant_table,
)
from tres_scrapy.page.file import whole_file

CSV = "results.csv"
PAGE = "results.md"
FIELDS = (
    *("web", "topic", "policy", "max", "seed", "pages_asked", "pages", "relevant", "harvest"),
    *("domains", "fetches", "exhausted", "seconds", "decision_ms"),
)

COLUMNS = (
    f"{CSV} has one line per run. `pages` is the number of pages fetched of the `pages_asked`. "
    "`fetches` also counts redirects, failures and retries (over HTTP only), but not robots.txt. "
    "`exhausted` is 1 if links ran out. `seconds` is processor time, or clock time over HTTP. "
    "`decision_ms` is the median processor time of a choice in the last tenth of the pages (not "
    "measured over HTTP). Table and figure numbers are those of the paper (Kontogiannis et al., "
    "Tree-based Focused Web Crawling with Reinforcement Learning)."
)


def write_report(directory: Path, results: Sequence[Result], conditions: str) -> Path:
    """Write results.csv, the plots and results.md, and return the path of the page.

    Each table or plot shows crawls of one length only.
    """
    results = sorted(results, key=lambda result: result.run)
    rows = StringIO(newline="")
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows(map(_row, results))
    with whole_file(directory / CSV) as file:
        file.write(rows.getvalue().encode())
    versions = len({result.code for result in results})
    by = f", by {versions} versions of the code" if versions > 1 else ""
    lines = ["# Every policy on the same web", "", f"{conditions}{by}.", "", COLUMNS, ""]
    for pages in sorted({result.run.pages for result in results}):
        chosen = [result for result in results if result.run.pages == pages]
        lines += _section(pages, chosen, draw(directory, chosen, f"_{pages}"))
    path = directory / PAGE
    with whole_file(path) as file:
        file.write("\n".join(lines).encode())
    return path


def _row(result: Result) -> list[object]:
    run, pace = result.run, pace_of([result])
    return [
        *(run.web, run.topic, run.policy, run.cap, run.seed, run.pages),
        *(result.pages, result.relevant, round(result.harvest, 4), result.domains, result.fetches),
        *(int(result.exhausted), result.seconds, round(pace.milliseconds, 4) if pace else ""),
    ]


def _section(pages: int, results: Sequence[Result], pictures: Sequence[Picture]) -> Iterator[str]:
    """Yield the lines of the section on crawls of one length."""
    seeds = sorted({result.run.seed for result in results})
    yield from (f"## T = {pages:,} pages, seeds {', '.join(map(str, seeds))}", "")
    for title, text, lines in _tables(cells_of(results)):
        if lines:
            yield from (f"### {title}", "", text, "", *lines, "")
    for picture in pictures:
        yield from (f"![{picture.caption}]({picture.name})", "", f"{picture.caption}.", "")


def _tables(cells: Cells) -> Iterator[tuple[str, str, list[str]]]:
    """Yield title, explanation and lines of each table; no lines without data."""
    yield (
        "Harvest rate in % / relevant domains (Table 3)",
        "Mean ± standard deviation over seeds, counted by the web. The best crawler for each MAX "
        "is bold (the oracle is excluded). n: the number of seeds, if other crawlers have more; "
        "such rows are never bold. †: links ran out after that many pages. Pages asked for but "
        "not fetched count as irrelevant for bold, ratios and Pareto order.",
        crawler_table(cells),
    )
    yield "Variants of TRES (Table 4)", "As above.", variant_table(cells)
    yield (
        "Relevant pages as a share of the oracle's",
        "Mean ± standard deviation over seeds. The oracle knows the labels of the web and looks "
        "one link ahead.",
        ratio_table(cells),
    )
    yield (
        "Pareto",
        "TRES dominates a crawler if TRES is at least as good in both mean harvest rate and mean "
        "domains, and better in one, on the seeds that both have (Figure 3).",
        pareto_table(cells),
    )
    yield (
        "Milliseconds of a choice",
        "Median processor time over the last tenth of the pages. In brackets: the size of the "
        "frontier, including samples that can no longer be taken. The time a policy takes to add "
        "links or to learn is not included; policies with queues rate links when they add them.",
        pace_table(cells),
    )
