"""`tres export`: write the pages of a crawl, also those that it found irrelevant."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, record_of, refuse
from tres_scrapy.export.run_export import WRITERS, check_ending, pages_of
from tres_scrapy.export.topic_view import topic_view
from tres_scrapy.report.record import Record
from tres_scrapy.url.whole_file import whole_file


@click.command(
    cls=Command,
    syntax="[--run RUN] [--least P] [-o FILE]",
    epilog="Example: tres export --run food-TIME.run --least 0.2 -o pages.csv",
)
@click.argument("words", nargs=-1)
@option("--run", metavar="RUN", type=Path, help="the record of the crawl (default: the latest)")
@option("--least", metavar="P", type=float, help="all pages with P(relevant) of this or more")
@option("-o", "--output", metavar="FILE", type=Path, help="file to write (default: print lines)")
def command(
    words: tuple[str, ...], run: Path | None, least: float | None, output: Path | None
) -> None:
    """Write the pages of a crawl from the file of its run, which has the texts of all of them.

    Without --least these are the relevant pages; with --least 0, all pages fetched but copies. The
    name of FILE ends with .jsonl, .csv, .parquet or .md, which says the format. RUN is the record
    of the crawl (food-TIME.run), its JOBDIR or its JSON lines file. The crawl may still be running.

    Pages of a crawl from keywords, or with answers, are judged again by the topic as it is now, so
    pages that turned relevant later are among them. A page that you have answered follows your
    answer.
    """
    if words:
        refuse("options alone", words)
    if least is not None and not 0 <= least <= 1:
        refuse("--least from 0 to 1", (str(least),))
    ending = "jsonl" if output is None else check_ending(output)
    with Record(record_of([run] if run else [])) as record:
        pages = pages_of(record, least, topic_view(record, partial(print, file=sys.stderr)))
        if output is None:
            WRITERS[ending](pages, sys.stdout.buffer)
            return
        with whole_file(output) as file:
            WRITERS[ending](pages, file)
    print(output)
