# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-doctor`: what a crawl needs of this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.commands.diagnosis import diagnose


class Command(ScrapyCommand):
    """Print what is there for a crawl, and what is missing."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return ""

    def short_desc(self) -> str:
        return "Check that a crawl can run on this machine"

    def long_desc(self) -> str:
        return fill(
            "Check what a crawl needs of this machine: packages, topics, disk, network. A line "
            "says `ok`; `missing` for a part that only some crawls need, with the command that "
            "installs it; or `problem` for what stops every crawl, with exit status 1. One name "
            "is resolved, nothing is fetched."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise UsageError(f"give no arguments, not {named(args)}")
        models = self.settings and self.settings["TRES_MODELS"]
        self.exitcode = diagnose(Path(models) if models else None)
