# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-answer`: answer whether pages of a crawl belong to its topic."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.topic.topic_folder import add_answers, find_folder, read_answers
from tres_scrapy.topic.topic_learner import learn_answers, learned
from tres_scrapy.url.message import TresError, plainly, plural, printable

WIDTH: Final = 100
NEXT: Final = "`tres rejudge` judges the pages of the crawl again; resume it to crawl with them."
PROMPT: Final = "Relevant? y(es), n(o), s(kip), q(uit): "


class Command(ScrapyCommand):
    """Ask about the pages whose answers help a topic most."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "RUN [--yes URL]... [--no URL]..."

    def short_desc(self) -> str:
        return "Answer whether pages of a crawl from keywords are relevant"

    def long_desc(self) -> str:
        return fill(
            "Show the pages of a crawl from keywords whose answers help its topic most, and ask "
            "whether they are relevant. RUN is the JOBDIR of the crawl or its JSON lines file. A "
            "running crawl reads each answer with its next pages; the topic of one that has ended "
            "is learned again at once. A later answer about a page replaces the earlier one."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-answer jobs/tea"
        for name in ("yes", "no"):
            about = f"answer {name} for this URL, without questions; may repeat"
            parser.add_argument(f"--{name}", metavar="URL", action="append", default=[], help=about)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(
                f"give one RUN, the JOBDIR or JSON lines file of a crawl, not {named(args)}"
            )
        try:
            folder = find_folder(Path(args[0]))
            known, _ = read_answers(folder.answers)
            if opts.yes or opts.no:
                yes, no = folder.find_pages(opts.yes), folder.find_pages(opts.no)
                if both := set(yes) & set(no):
                    raise UsageError(f"yes and no for {printable(min(both))}: give one answer")
                told = dict.fromkeys(yes, True) | dict.fromkeys(no, False)
                add_answers(folder.answers, told)
                given = len(told)
            else:
                learn_answers(folder)  # asks about the last pages of an ended crawl too
                asked = [each for each in folder.read_questions() if each["url"] not in known]
                given = ask(folder.answers, asked)
            print(f"{given} {plural(given, 'answer')} added to {folder.answers}")
            if given:
                for line in learned(folder, [NEXT]):
                    print(line)
        except (OSError, TresError) as error:
            sys.exit(f"scrapy tres-answer: {plainly(error)}")


def ask(file: Path, asked: list[dict[str, Any]]) -> int:
    """Ask about pages until the user quits; return how many answers were added to the file."""
    given = 0
    for number, each in enumerate(asked, 1):
        title, text = printable(each["title"]), printable(each["text"])
        print(f"\n{number} of {len(asked)}: {title or 'no title'}\n{printable(each['url'])}")
        print(f"P(relevant) {each['probability']:.2f}\n{fill(text, WIDTH)}")
        answer = _reply()
        if answer == "q":
            break
        if answer != "s":
            add_answers(file, {each["url"]: answer == "y"})
            given += 1
    return given


def _reply() -> str:
    """Return y, n, s or q; q at the end of the input."""
    while True:
        try:
            answer = input(PROMPT).strip().lower()[:1]
        except (EOFError, KeyboardInterrupt):
            print()  # the cursor stands behind the prompt
            return "q"
        if answer in {"y", "n", "s", "q"}:
            return answer
