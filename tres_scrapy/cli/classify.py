"""`tres classify`: how relevant documents are to a topic, and why."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tres_scrapy.cli.command import (
    INTERRUPTED,
    Command,
    option,
    project_settings,
    refuse,
)
from tres_scrapy.config.config import Config
from tres_scrapy.crawl.assembly import load_pack
from tres_scrapy.page.document_file import Unreadable
from tres_scrapy.spiders.named_source import read_sources
from tres_scrapy.topic.explanation import Totals, explain
from tres_scrapy.topic.pack import Pack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tres_scrapy.page.text import Page

BATCH: Final = 64  # documents in one call of the model, printed together
MANY: Final = 20  # above this number of documents, each is printed in one line
NAMED_FAULTS: Final = 20
WAITING: Final = (
    "Waiting for a page or a text on standard input: paste it, then press Ctrl-D. To judge "
    "something else, press Ctrl-C and name URLs or files"
)
EXAMPLES: Final = """\
Examples:
  tres classify food https://example.org/soup page.html
  tres classify food saved-pages/ --brief
  curl -s https://example.org/ | tres classify food
  tres classify food pages.jsonl.xz crawl.warc.gz --json --words 0 > verdicts.jsonl
"""


@click.command(
    cls=Command,
    syntax="TOPIC [URL|FILE|FOLDER|-]... [--json | --brief] [--words N]",
    epilog=EXAMPLES,
)
@click.argument("documents", nargs=-1)
@option("--json", is_flag=True, help="print one JSON object per line")
@option(
    "--brief",
    is_flag=True,
    help=f"print one line per document; the default for more than {MANY}",
)
@option(
    "--words",
    metavar="N",
    type=click.IntRange(0),
    default=8,
    help="explain with N words (default: 8); 0 is several times faster",
)
@option(
    "--models",
    metavar="DIR",
    type=Path,
    help="folder of topic packs (default: ./models and the installed packs)",
)
def command(
    documents: tuple[str, ...], json: bool, brief: bool, words: int, models: Path | None
) -> int:
    """Judge documents with the topic pack TOPIC.

    Print the probability that each is relevant, the threshold of the pack, the language, the
    keywords found, and the words with the strongest effect. A FILE is .html, .txt, .pdf, JSON lines
    with html or text (all also as .xz or .gz), or a WARC file. Without arguments, or for -, read a
    page, a PDF, a text or JSON lines from standard input. URLs are fetched politely, after the
    files. The exit status is 1 if anything could not be read.
    """
    if not documents:
        refuse("a topic and documents to judge", documents)
    if json and brief:
        raise click.UsageError("--json and --brief: give only one of them")
    topic, *sources = documents
    if "-" in (sources or ["-"]) and sys.stdin.isatty():
        print(WAITING, file=sys.stderr)
    settings = project_settings()
    settings.set("TRES_TOPIC", topic, priority="cmdline")
    if models is not None:
        settings.set("TRES_MODELS", str(models.resolve()), priority="cmdline")
    config = Config.from_settings(settings)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of PyTorch, which is loaded now
    classification = Classification(load_pack(config), words=words, json=json, brief=brief)
    return classification.run(read_sources(sources or ["-"], settings))


class Classification:
    """Judge documents in batches and print the result of each batch."""

    def __init__(self, pack: Pack, *, words: int, json: bool, brief: bool) -> None:
        self._pack = pack
        self._words = words
        self._json = json
        self._brief = brief
        self._batch: list[Page] = []
        self._totals = Totals()

    def run(self, found: Iterable[Page | Unreadable]) -> int:
        """Judge all documents and return the exit status; Ctrl-C ends only the reading."""
        status = 0
        try:
            for each in found:
                if isinstance(each, Unreadable):
                    self._say(each)
                else:
                    self._batch.append(each)
                if len(self._batch) == BATCH:
                    self._judge()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            status = INTERRUPTED
        self._judge()
        if self._totals.unreadable > NAMED_FAULTS:
            rest = self._totals.unreadable - NAMED_FAULTS
            print(f"{rest} more could not be read", file=sys.stderr)
        if not self._json:
            print(self._totals, flush=True)
        return status or int(self._totals.unreadable > 0)

    def _judge(self) -> None:
        batch, self._batch = self._batch, []
        if not batch:
            return
        self._brief = self._brief or (len(batch) > MANY and not self._json)
        found = explain(self._pack, batch, words=0 if self._brief else self._words)
        self._totals.add(found)
        if self._json:
            print(*(each.as_json() for each in found), sep="\n", flush=True)
        elif self._brief:
            print(*(each.as_line() for each in found), sep="\n", flush=True)
        else:
            print(*(each.as_block() for each in found), sep="\n\n", end="\n\n", flush=True)

    def _say(self, fault: Unreadable) -> None:
        self._totals.unreadable += 1
        if self._totals.unreadable <= NAMED_FAULTS:
            print(f"tres classify: {fault}", file=sys.stderr)
