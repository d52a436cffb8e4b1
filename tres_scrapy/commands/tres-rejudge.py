# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-rejudge`: judge the pages of a crawl again by the topic it has learned."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import fill
from typing import Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from tres_scrapy.commands.calling import named
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import RecordError
from tres_scrapy.report.record_path import find_record
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, find_folder, read_answers, unlearned
from tres_scrapy.topic.topic_learner import learned
from tres_scrapy.url.message import TresError, plainly, reason
from tres_scrapy.url.whole_file import whole_file

SUFFIX: Final = ".rejudged.jsonl"


class Command(ScrapyCommand):
    """Add the final probability to the items of a crawl."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "RUN [-o FILE]"

    def short_desc(self) -> str:
        return "Judge the pages of a crawl again by the topic it has learned"

    def long_desc(self) -> str:
        return fill(
            "Judge the pages of a crawl from keywords by the topic as the crawl learned it in the "
            "end. RUN is its JSON lines file or its JOBDIR. Each line gains final_probability; "
            "probability stays what it was at the time. Pages below the threshold are left out. A "
            "page that you have answered follows your answer. "
            "The crawl keeps no text of pages that it judged irrelevant: it cannot add them."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-rejudge jobs/tea"
        run = "JOBDIR of the crawl, if RUN is a file and no record says which crawl wrote it"
        parser.add_argument("--run", metavar="JOBDIR", type=Path, help=run)
        name = f"file to write (default: that of the crawl, with {SUFFIX})"
        parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=name)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"give one RUN, the output or JOBDIR of a crawl, not {named(args)}")
        source = Path(args[0])
        try:
            source, folder = found(source, opts.run)
            target = opts.output or source.with_suffix(SUFFIX)
            if target.exists() and target.samefile(source):
                raise TresError(f"-o {target} is the output itself: give another file")
            if unlearned(folder):
                for line in learned(folder):
                    print(line)
            answers = folder.read_state().get("answers", {}) | read_answers(folder.answers)[0]
            kept, count = rejudge(Pack.load(folder.pack), answers, source, target)
        except (OSError, TresError, RecordError) as error:
            sys.exit(f"scrapy tres-rejudge: {plainly(error)}")
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"scrapy tres-rejudge: {source} is not a crawl's output: {reason(error)}")
        print(f"{kept} of {count} pages are relevant: {target}")


def found(run: Path, jobdir: Path | None) -> tuple[Path, TopicFolder]:
    """Return the output of a crawl and the folder of its topic, from one of them or its JOBDIR.

    Raise TresError if one of the two cannot be found.
    """
    if not run.exists():
        raise TresError(f"{str(run)!r} does not exist: give the output or JOBDIR of a crawl")
    if not run.is_dir():
        return run, find_folder(jobdir) if jobdir is not None else _folder_of(run)
    folder = find_folder(run)
    try:
        with Record(find_record(run)) as record:
            output = Path(record.meta().get("output", ""))
    except RecordError as error:
        raise TresError(f"{error}: give its output, and --run {run}") from None
    if not output.is_file():
        raise TresError(
            f"{str(output)!r}, which the crawl in {run} wrote, is not there: give its "
            f"output, and --run {run}"
        )
    return output, folder


def _folder_of(output: Path) -> TopicFolder:
    """Return the folder of the topic beside an output, or in the JOBDIR of its crawl."""
    try:
        return find_folder(output)
    except TresError:
        with suppress(TresError, RecordError):
            return find_folder(find_record(output).parent)
        raise TresError(
            f"{str(output)!r} has no topic that learns beside it, and no record in this folder "
            "says which crawl wrote it: add --run JOBDIR"
        ) from None


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
