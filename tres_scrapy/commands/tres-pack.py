# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-pack`: keep the topic that a crawl from keywords has learned."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from textwrap import fill

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.config.parser import identifier
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.topic.shipped import HERE, TOPIC_FILE, shipped_models, topics
from tres_scrapy.topic.topic_folder import find_folder, unlearned
from tres_scrapy.topic.topic_learner import learned
from tres_scrapy.url.message import plainly


class Command(ScrapyCommand):
    """Save a learned topic as a pack."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "save NAME RUN [--models DIR]"

    def short_desc(self) -> str:
        return "Save the topic that a crawl from keywords has learned as a pack"

    def long_desc(self) -> str:
        return fill(
            "Save the topic that a crawl from keywords has learned as the pack NAME, for later "
            "crawls with this topic. RUN is the JOBDIR of the crawl or its JSON lines file."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-pack save tea jobs/tea"
        models = "folder of topic packs (default: ./models)"
        parser.add_argument("--models", metavar="DIR", type=Path, default=HERE, help=models)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 3 or args[0] != "save":
            raise UsageError(f"give `save NAME RUN`, not {named(args)}")
        try:
            name = _name(args[1])
            folder, place = find_folder(Path(args[2])), opts.models / name
            if (place / TOPIC_FILE).exists():
                raise ValueError(f"{place} exists: choose another name or remove it")
            if unlearned(folder):
                for line in learned(folder):
                    print(line)
            facts = tomllib.loads((folder.pack / TOPIC_FILE).read_text(encoding="utf-8"))
            answers = folder.read_state().get("answers", {})
            write_pack(place, facts | {"name": name}, Pack.load(folder.pack).classifier)
        except (OSError, ValueError) as error:
            sys.exit(f"scrapy tres-pack: {plainly(error)}")
        print(place)
        if answers and not any(answers.values()):
            print("All answers were no: this topic may find nothing relevant.")
        if name in topics(shipped_models()) and opts.models == HERE:
            print(f"Crawls in this folder use it instead of the topic {name} that TRES brings.")


def _name(text: str) -> str:
    try:
        return identifier(text)
    except ValueError as error:
        raise ValueError(f"the name {text!r} {error}") from None
