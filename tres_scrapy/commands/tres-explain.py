# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-explain`: why a crawl fetched a page."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from textwrap import fill

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import RecordError
from tres_scrapy.report.record_path import find_record, latest_record
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError


class Command(ScrapyCommand):
    """Explain why a page was fetched."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "[RUN] URL [--json]"

    def short_desc(self) -> str:
        return "Explain why a crawl fetched a page"

    def long_desc(self) -> str:
        return fill(
            "Explain why the crawl RUN fetched URL: the path from the seed, the rule of its leaf "
            "in the tree, what its link says, its features, its Q value, and the links it was "
            "preferred to; in a crawl from keywords also which words and answers make the page "
            "relevant. RUN is the record of the crawl (food-TIME.run), its JOBDIR or its JSON "
            "lines file; without it, the latest crawl of this folder."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-explain food.jsonl https://example.org/soup"
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) not in (1, 2) or not args[-1].lower().startswith(("http://", "https://")):
            raise UsageError(f"give the URL of a page, or a RUN and a URL, not {named(args)}")
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a title may be in any script
        *run, url = args
        try:
            path = find_record(Path(run[0])) if run else latest_record()
            if not run:
                print(f"The latest crawl: {path}", file=sys.stderr)
            with Record(path) as record, record.moment():
                explanation = FetchExplanation(record, canonicalise(url) or url)
        except (LookupError, RecordError) as error:
            sys.exit(f"scrapy tres-explain: {error}")
        try:
            if opts.json:
                print(explanation.as_json(), flush=True)
                return
            print(explanation, flush=True)
            if reason := _topic_reason(path, explanation.address):
                print(f"\n{reason}", flush=True)
        except BrokenPipeError:  # the reader of the pipe, such as head, has stopped
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.exitcode = 1


def _topic_reason(record: Path, url: str) -> str:
    """Return what a topic from keywords says of a page, "" without such a topic or page."""
    from tres_scrapy.topic.explanation import topic_reason  # noqa: PLC0415
    from tres_scrapy.topic.topic_folder import find_folder  # noqa: PLC0415 - PyTorch takes 2 s

    for run in (record, record.parent):  # beside the output, or in JOBDIR
        with suppress(OSError, TresError):
            return str(topic_reason(find_folder(run), url) or "")
    return ""
