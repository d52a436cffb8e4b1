"""`tres forget`: take pages out of every file of a run."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, refuse
from tres_scrapy.forget.forgetting import forget, wanted_of
from tres_scrapy.report.record_path import find_record

LEFT = (
    "Not changed: what pipelines, feeds and copies of the files have had before, logs, folders of "
    "tres publish, topic packs that were saved, and the Q-network of the crawl."
)


@click.command(
    cls=Command,
    syntax="URL|SITE RUN",
    epilog="Example: tres forget example.org jobs/food",
)
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """Take a page, or all pages of a site, out of every file of a crawl that has stopped.

    A resumed crawl never fetches them. The models that learned from them are fitted again where
    that is possible. RUN is the record of the crawl (food-TIME.run), its JOBDIR or its JSON lines
    file. If the command is interrupted, run it again.
    """
    if len(words) != 2:
        refuse("a URL or a site, and a RUN", words)
    forget(find_record(Path(words[1])), wanted_of(words[0]), print)
    print(LEFT)
