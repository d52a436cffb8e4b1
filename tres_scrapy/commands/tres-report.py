# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-report`: write the report of a crawl."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from textwrap import fill

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.report.crawl_report import SUFFIX, write_report
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import RecordError
from tres_scrapy.report.record_path import find_record, latest_record
from tres_scrapy.url.message import plainly


class Command(ScrapyCommand):
    """Write the report of a crawl, finished or not."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "[RUN] [-o FILE]"

    def short_desc(self) -> str:
        return "Write the report of a crawl as one HTML file"

    def long_desc(self) -> str:
        return fill(
            "Write the report of a crawl as one HTML file, which needs no network. RUN is the "
            "record of the crawl (food-TIME.run), its JOBDIR or its JSON lines file; without it, "
            "the latest crawl of this folder. The crawl may still be running. The report is "
            "written beside the record unless -o names a file."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-report food.jsonl -o report.html"
        name = "file to write (default: beside the record)"
        parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=name)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1:
            raise UsageError(f"give one RUN or none, not {named(args)}")
        try:
            path = find_record(Path(args[0])) if args else latest_record()
            if not args:
                print(f"The latest crawl: {path}", file=sys.stderr)
            page: Path = opts.output or path.with_suffix(SUFFIX)
            with Record(path) as record:
                write_report(record, page)
        except (OSError, RecordError) as error:
            sys.exit(f"scrapy tres-report: {plainly(error)}")
        print(page)
