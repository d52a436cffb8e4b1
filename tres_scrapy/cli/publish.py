"""`tres publish`: write a crawl as a folder of static HTML."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, record_of
from tres_scrapy.publish.folder import publish
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import counted


@click.command(
    cls=Command,
    syntax="[RUN] [-o FOLDER]",
    epilog="Example: tres publish food.jsonl -o site",
)
@click.argument("run", nargs=-1)
@option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=Path,
    help="folder to write (default: beside the record)",
)
def command(run: tuple[str, ...], output: Path | None) -> None:
    """Write the relevant pages of a crawl as a folder of static HTML, to pass on.

    Shown are topic, figures, a map of the sites, and each page with title, first words, why it was
    fetched and its rights. It needs no server, and no script but for the search. RUN is the record
    of the crawl (food-TIME.run), its JOBDIR or its JSON lines file; without it, the latest crawl
    of this folder. The crawl may still be running.
    """
    path = record_of(run)
    name = "site" if path.name == NAME else f"{path.stem}-site"
    folder = output or path.with_name(name)
    with Record(path) as record:
        count = publish(record, folder)
    print(f"{folder / 'index.html'}: {counted(count, 'page')}")
