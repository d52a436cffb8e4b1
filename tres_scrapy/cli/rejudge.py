"""`tres rejudge`: judge the pages of a crawl again by the topic it has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from tres_scrapy.cli.command import Command, option, refuse
from tres_scrapy.report.rejudging import find_output, rejudge
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import read_answers, unlearned
from tres_scrapy.topic.topic_learner import learned
from tres_scrapy.url.message import TresError

SUFFIX: Final = ".rejudged.jsonl"


@click.command(
    cls=Command,
    syntax="RUN [-o FILE]",
    epilog="Example: tres rejudge jobs/tea",
)
@click.argument("words", metavar="RUN", nargs=-1)
@option(
    "--run",
    "jobdir",
    metavar="JOBDIR",
    type=Path,
    help="JOBDIR of the crawl, if RUN is a file and no record says which crawl wrote it",
)
@option(
    "-o",
    "--output",
    metavar="FILE",
    type=Path,
    help=f"file to write (default: that of the crawl, with {SUFFIX})",
)
def command(words: tuple[str, ...], jobdir: Path | None, output: Path | None) -> None:
    """Judge the pages of a crawl from keywords by the topic as the crawl learned it in the end.

    RUN is its JSON lines file or its JOBDIR. Each line gains final_probability; probability stays
    what it was at the time. Pages below the threshold are left out. A page that you have answered
    follows your answer. The crawl keeps no text of pages that it judged irrelevant: it cannot add
    them.
    """
    if len(words) != 1:
        refuse("one RUN, the output or JOBDIR of a crawl", words)
    source, folder = find_output(Path(words[0]), jobdir)
    target = output or source.with_suffix(SUFFIX)
    if target.exists() and target.samefile(source):
        raise TresError(f"-o {target} is the output itself: give another file")
    if unlearned(folder):
        for line in learned(folder):
            print(line)
    answers = folder.read_state().get("answers", {}) | read_answers(folder.answers)[0]
    kept, count = rejudge(Pack.load(folder.pack), answers, source, target)
    print(f"{kept} of {count} pages are relevant: {target}")
