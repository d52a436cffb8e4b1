# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-rejudge`: judge the pages of a crawl again by the topic it has learned."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.page.file import reason, whole_file
from tres_scrapy.topic.answer import AnswerError, read_answers
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.pack import Pack, PackError
from tres_scrapy.training.word_folder import find_folder, unlearned
from tres_scrapy.training.word_learner import learned

SUFFIX: Final = ".rejudged.jsonl"


class Command(ScrapyCommand):
    """Add the final probability to the items of a crawl."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "OUTPUT [--run JOBDIR] [-o FILE]"

    def short_desc(self) -> str:
        return "Judge the pages of a crawl again by the topic it has learned"

    def long_desc(self) -> str:
        return fill(
            "Judge the pages in OUTPUT, the JSON lines file of a crawl from keywords, by the topic "
            "as the crawl learned it in the end. Each line gains the field final_probability; "
            "probability stays what it was at the time. Pages below the threshold are left out. A "
            "page that you have answered follows your answer. "
            "The crawl keeps no text of pages that it judged irrelevant: it cannot add them."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-rejudge output/tea.jsonl --run jobs/tea"
        run = "JOBDIR of the crawl, if it had one"
        parser.add_argument("--run", metavar="JOBDIR", type=Path, help=run)
        name = f"file to write (default: OUTPUT with {SUFFIX})"
        parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=name)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"give one OUTPUT, the JSON lines file of a crawl, not {named(args)}")
        source = Path(args[0])
        target = opts.output or source.with_suffix(SUFFIX)
        if target.exists() and source.exists() and target.samefile(source):
            sys.exit(f"scrapy tres-rejudge: -o {target} is OUTPUT itself: give another file")
        try:
            folder = find_folder(opts.run or source)
            if not source.is_file():
                raise AnswerError(f"{str(source)!r} is not a file: give the output of the crawl")
            if unlearned(folder):
                for line in learned(folder):
                    print(line)
            answers = folder.read_state().get("answers", {}) | read_answers(folder.answers)[0]
            kept, count = rejudge(Pack.load(folder.pack), answers, source, target)
        except (AnswerError, OSError, PackError) as error:
            sys.exit(f"scrapy tres-rejudge: {error}")
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"scrapy tres-rejudge: {source} is not a crawl's output: {reason(error)}")
        print(f"{kept} of {count} pages are relevant: {target}")


def rejudge(pack: Pack, answers: Mapping[str, bool], source: Path, target: Path) -> tuple[int, int]:
    """Write the lines that are still relevant; return their number and that of all lines.

    `answers` are the user's, by URL: they count more than the pack. Raise ValueError if a line is
    not an item of a crawl.
    """
    kept = count = 0
    with source.open(encoding="utf-8") as lines, whole_file(target) as file:
        for count, line in enumerate(lines, 1):  # noqa: B007 - the number of lines
            item = json.loads(line)
            text = Text.of(f"{item['title']} {item['text']}", item["url"])
            probability = float(pack.probabilities([text])[0])
            told = answers.get(item.get("final_url"), answers.get(item["url"]))
            if probability >= pack.threshold if told is None else told:
                kept += 1
                final = {**item, "final_probability": round(probability, 6)}
                file.write(json.dumps(final, ensure_ascii=False).encode() + b"\n")
    return kept, count
