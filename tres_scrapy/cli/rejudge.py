"""`tres rejudge`: judge the pages of a crawl again by the topic it has learned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from tres_scrapy.cli.command import Command, option, refuse
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import find_record
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, count_unlearned, find_folder, read_answers
from tres_scrapy.topic.topic_learner import learn_answers
from tres_scrapy.url.message import TresError, reason
from tres_scrapy.url.whole_file import whole_file

SUFFIX: Final = ".rejudged.jsonl"


@click.command(
    cls=Command,
    syntax="RUN [-o FILE]",
    epilog="Example: tres rejudge jobs/tea",
)
@click.argument("words", metavar="RUN", nargs=-1)
@option(
    "--run",
    "jobdir",
    metavar="JOBDIR",
    type=Path,
    help="JOBDIR of the crawl, if RUN is a file and no record says which crawl wrote it",
)
@option(
    "-o",
    "--output",
    metavar="FILE",
    type=Path,
    help=f"file to write (default: that of the crawl, with {SUFFIX})",
)
def command(words: tuple[str, ...], jobdir: Path | None, output: Path | None) -> None:
    """Judge the pages of a crawl from keywords by the topic as the crawl learned it in the end.

    RUN is its JSON lines file or its JOBDIR. Each line gains final_probability; probability stays
    what it was at the time. Pages below the threshold are left out. A page that you have answered
    follows your answer. The crawl keeps no text of pages that it judged irrelevant: it cannot add
    them.
    """
    if len(words) != 1:
        refuse("one RUN, the output or JOBDIR of a crawl", words)
    source, folder = _find_output(Path(words[0]), jobdir)
    target = output or source.with_suffix(SUFFIX)
    if target.exists() and target.samefile(source):
        raise TresError(f"-o {target} is the output itself: give another file")
    if count_unlearned(folder):
        for line in learn_answers(folder):
            print(line)
    answers = folder.read_state().get("answers", {}) | read_answers(folder.answers)[0]
    kept, count = _rejudge(Pack.load(folder.pack), answers, source, target)
    print(f"{kept} of {count} pages are relevant: {target}")


def _find_output(run: Path, jobdir: Path | None) -> tuple[Path, TopicFolder]:
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
        with suppress(TresError):
            return find_folder(find_record(output).parent)
        raise TresError(
            f"{str(output)!r} has no topic that learns beside it, and no record in this folder "
            "says which crawl wrote it: add --run JOBDIR"
        ) from None


def _rejudge(
    pack: Pack, answers: Mapping[str, bool], source: Path, target: Path
) -> tuple[int, int]:
    """Write the lines that are still relevant; return their number and that of all lines.

    `answers` are the user's, by URL: they count more than the pack. Raise TresError if a line is
    not an item of a crawl.
    """
    kept = count = 0
    try:
        with source.open(encoding="utf-8") as lines, whole_file(target) as file:
            for count, line in enumerate(lines, 1):  # noqa: B007 - the number of lines
                item = json.loads(line)
                text = Text.of(f"{item['title']} {item['text']}", item["url"])
                probability = float(pack.probabilities([text])[0])
                answer = answers.get(item.get("final_url"), answers.get(item["url"]))
                if probability >= pack.threshold if answer is None else answer:
                    kept += 1
                    final = {**item, "final_probability": round(probability, 6)}
                    file.write(json.dumps(final, ensure_ascii=False).encode() + b"\n")
    except (ValueError, KeyError, TypeError) as error:
        raise TresError(f"{source} is not a crawl's output: {reason(error)}") from None
    return kept, count
