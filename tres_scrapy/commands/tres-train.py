# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-train`: a topic pack from keywords and labelled documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from tres_scrapy.topic.document import Selection, read_documents
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.training import train_pack

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Train a topic pack."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "TOPIC --keywords FILE --relevant FILE... --irrelevant FILE..."

    def short_desc(self) -> str:
        return "Train a topic pack from keywords and labelled documents"

    def long_desc(self) -> str:
        return (
            "Train a topic pack. Documents are JSON lines, plain, .gz or .xz, with html or text, "
            "and title, url, host where known. FILE:FIELD=VALUE[,VALUE...] takes only the lines "
            "whose field has one of the values; what both sides take is relevant."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("topic", metavar="TOPIC")
        parser.add_argument("--keywords", metavar="FILE", type=Path, required=True)
        parser.add_argument("--relevant", metavar="FILE", nargs="+", required=True)
        parser.add_argument("--irrelevant", metavar="FILE", nargs="+", required=True)
        models = Path("models")
        parser.add_argument(
            "--output", metavar="DIR", type=Path, default=models, help="holds packs and vectors"
        )
        vectors = models / "vectors" / "english.npz"
        parser.add_argument("--vectors", metavar="FILE", type=Path, default=vectors)
        parser.add_argument("--seed", metavar="N", type=int, default=0)
        parser.add_argument("--date", default="", help="recorded in the pack")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        directory = opts.output / opts.topic
        try:
            keywords = KeywordSet.parse(opts.keywords.read_text(encoding="utf-8").splitlines())
            relevant = [Selection.parse(text) for text in opts.relevant]
            irrelevant = [Selection.parse(text) for text in opts.irrelevant]
            documents = list(read_documents(relevant, irrelevant))
            facts = train_pack(
                directory, keywords, documents, opts.vectors, seed=opts.seed, date=opts.date
            )
        except (OSError, ValueError) as error:
            sys.exit(f"scrapy tres-train: {error}")
        _report(facts, directory)


def _report(facts: dict[str, Any], directory: Path) -> None:
    keywords = facts["keywords"]
    print(f"{len(keywords['expanded'])} keywords found at b = {keywords['b']}")
    print("held-out hosts          precision  recall  F-macro    MCC")
    for source, figures in facts["held_out"].items():
        for kind in ("texts", "titles"):
            p, r, f, mcc = figures[kind].values()
            print(f"{source:16}{kind:8}{p:9.3f}{r:8.3f}{f:9.3f}{mcc:7.3f}")
    print(f"written to {directory}")
