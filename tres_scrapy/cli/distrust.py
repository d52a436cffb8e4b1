"""`tres distrust`: take a site and those found only through it out of what a run gives."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, refuse
from tres_scrapy.forget.distrust import distrust
from tres_scrapy.report.record_path import find_record


@click.command(
    cls=Command,
    syntax="SITE RUN",
    epilog="Example: tres distrust farm.example jobs/food",
)
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """Take a site, and the sites found only through it, out of a crawl that has stopped.

    Their pages leave the output; they stay in the file of the run, marked. The models that learned
    from them are fitted again where that is possible. A resumed crawl fetches nothing of them, nor
    what only they link to. RUN is the record of the crawl (food-TIME.run), its JOBDIR or its JSON
    lines file. If the command is interrupted, run it again.
    """
    if len(words) != 2:
        refuse("a site, and a RUN", words)
    distrust(find_record(Path(words[1])), words[0], print)
