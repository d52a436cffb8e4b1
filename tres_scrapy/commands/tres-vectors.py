# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-vectors`: word vectors from text files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from tres_scrapy.topic.document import Sentences
from tres_scrapy.topic.vectors import train_vectors

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Train word vectors."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "FILE... --output FILE"

    def short_desc(self) -> str:
        return "Train word vectors from texts in JSON lines"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
        parser.add_argument("--output", metavar="FILE", type=Path, required=True)
        parser.add_argument("--seed", metavar="N", type=int, default=1)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            vectors = train_vectors(Sentences(opts.files), seed=opts.seed)
            vectors.save(opts.output)
        except (OSError, ValueError, RuntimeError) as error:
            sys.exit(f"scrapy tres-vectors: {error}")
        print(f"{len(vectors)} words written to {opts.output}")
