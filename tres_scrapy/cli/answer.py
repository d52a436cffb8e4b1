"""`tres answer`: answer whether pages of a crawl belong to its topic."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from tres_scrapy.answerer.answerer import Answerer
from tres_scrapy.answerer.asking import Asking
from tres_scrapy.cli.command import Command, option, refuse
from tres_scrapy.cli.person import ask_person
from tres_scrapy.config.config import Config
from tres_scrapy.export.corrected_topic import topic_to_answer
from tres_scrapy.export.final_output import renew
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import find_record
from tres_scrapy.run.run_file import NAME, RecordError
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers, find_folder
from tres_scrapy.topic.topic_learner import RUNS, learn_answers
from tres_scrapy.url.message import counted, printable

CHECK: Final = "`tres audit` checks the output."


@click.command(
    cls=Command,
    syntax="RUN [--yes URL]... [--no URL]...",
    epilog="Example: tres answer jobs/tea",
)
@click.argument("run", nargs=-1)
@option("--yes", metavar="URL", multiple=True, help="answer yes for this URL, without questions")
@option("--no", metavar="URL", multiple=True, help="answer no for this URL, without questions")
@option("--answerer", metavar="NAME", help="http, program COMMAND or module:function: it answers")
@option(
    "--answers-most", metavar="N", default=50, help="most pages it is asked about (default: 50)"
)
def command(
    run: tuple[str, ...],
    yes: tuple[str, ...],
    no: tuple[str, ...],
    answerer: str | None,
    answers_most: int,
) -> None:
    """Show the pages of a crawl whose answers help its topic most, and ask about each.

    The question is whether the page is relevant to the topic. A topic from keywords is learned from
    the answers; a trained one is corrected by them. RUN is the JOBDIR of the crawl or its JSON
    lines file. A running crawl reads each answer with its next pages; the topic of an ended one is
    learned again at once. A later answer about a page replaces the earlier one. With --answerer a
    program answers, five questions at a time.
    """
    if len(run) != 1:
        refuse("one RUN, the JOBDIR or JSON lines file of a crawl", run)
    record = _record(Path(run[0]))
    if record is None or not record.is_file():
        folder = find_folder(Path(run[0]))
    else:
        with Record(record) as opened:  # makes the folder of a trained topic
            folder = topic_to_answer(opened, {*yes, *no})
    if answerer is not None:
        _have_answered(folder, record, answerer, answers_most)
        return
    if yes or no:
        good, bad = folder.find_pages(list(yes)), folder.find_pages(list(no))
        if both := set(good) & set(bad):
            raise click.UsageError(f"yes and no for {printable(min(both))}: give one answer")
        told = dict.fromkeys(good, True) | dict.fromkeys(bad, False)
        add_answers(folder.answers, told)
        given = len(told)
    else:
        learn_answers(folder)  # asks about the last pages of an ended crawl too
        asked = folder.open_questions()
        given = 0
        for place, answer in ask_person(asked):
            add_answers(folder.answers, {asked[place]["url"]: answer})
            given += 1
    print(f"{counted(given, 'answer')} added to {folder.answers}")
    if given:
        learned = learn_answers(folder, [_next(record)])
        more = renew(record) if record is not None and RUNS not in learned else []
        for line in [*learned, *more]:
            print(line)


def _have_answered(folder: TopicFolder, record: Path | None, name: str, most: int) -> None:
    """Have a program answer the questions of a topic, and learn after each five answers."""
    learned = learn_answers(folder)  # asks about the last pages of an ended crawl too
    checked = Config.declared()["TRES_ANSWERER"].read(name)
    asking = Asking(folder, Answerer(checked), record, most)
    while questions := asking.questions():
        said, learned = asking.ask(questions), learn_answers(folder)
        for line in [*said, *learned]:
            print(line, flush=True)
    if RUNS not in learned:
        for line in [*([] if record is None else renew(record)), _next(record)]:
            print(line)


def _next(record: Path | None) -> str:
    """Return what to do with the answers of a crawl; only one with a JOBDIR can be resumed."""
    is_kept = record is not None and record.name == NAME
    return f"Resume the crawl to go on with it; {CHECK}" if is_kept else CHECK


def _record(run: Path) -> Path | None:
    """Return the record of a run, which has the texts of its pages."""
    with suppress(RecordError):
        return find_record(run)
    return None
