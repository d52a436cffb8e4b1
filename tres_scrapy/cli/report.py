"""`tres report`: write the report of a crawl."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, record_of
from tres_scrapy.report.crawl_report import write_report
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import REPORT


@click.command(
    cls=Command,
    syntax="[RUN] [-o FILE]",
    epilog="Example: tres report food.jsonl -o report.html",
)
@click.argument("run", nargs=-1)
@option(
    "-o",
    "--output",
    metavar="FILE",
    type=Path,
    help="file to write (default: beside the record)",
)
def command(run: tuple[str, ...], output: Path | None) -> None:
    """Write the report of a crawl as one HTML file, which needs no network.

    RUN is the record of the crawl (food-TIME.run), its JOBDIR or its JSON lines file; without it,
    the latest crawl of this folder. The crawl may still be running. The report is written beside
    the record unless -o names a file.
    """
    path = record_of(run)
    page = output or path.with_suffix(REPORT)
    with Record(path) as record:
        write_report(record, page)
    print(page)
