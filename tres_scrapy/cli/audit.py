"""`tres audit`: how much of an output is relevant, and how much of what is relevant it has."""

from __future__ import annotations

import json
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from tres_scrapy.cli.command import Command, option, record_of
from tres_scrapy.cli.person import ask_person
from tres_scrapy.export.corrected_topic import topic_to_answer
from tres_scrapy.export.final_output import renew
from tres_scrapy.export.topic_view import topic_view, view_pages
from tres_scrapy.report.audit import Audit, Ranked, audit_path, identity_of
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import Fetch
from tres_scrapy.topic.topic_folder import add_answers, read_answers
from tres_scrapy.topic.topic_learner import learn_answers
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError, counted, printable

LEAD: Final = 300  # letters of a page that are shown
PAGES: Final = 20
SEEDS: Final = 2**32


@click.command(
    cls=Command,
    syntax="[RUN] [--questions] [--yes URL]... [--no URL]... [--answers FILE]",
    epilog="Example: tres audit jobs/tea",
)
@click.argument("run", nargs=-1)
@option(
    "--pages",
    metavar="N",
    type=click.IntRange(2),
    help=f"pages to draw (default: {PAGES}); more give narrower intervals",
)
@option("--questions", is_flag=True, help="print the pages to answer as JSON lines, ask nothing")
@option("--yes", metavar="URL", multiple=True, help="answer yes for this URL, without questions")
@option("--no", metavar="URL", multiple=True, help="answer no for this URL, without questions")
@option("--answers", metavar="FILE", type=Path, help="answers, lines of `yes URL` or `no URL`")
@option("--again", is_flag=True, help="draw other pages; the answers so far are forgotten")
@option("--learn", is_flag=True, help="also give the answers to the topic, which learns them")
def command(
    run: tuple[str, ...],
    *,
    pages: int | None,
    questions: bool,
    yes: tuple[str, ...],
    no: tuple[str, ...],
    answers: Path | None,
    again: bool,
    learn: bool,
) -> None:
    """Check the output of a crawl: ask about pages drawn by chance, print precision and recall.

    Half of the pages are of the output, the others are not. What you see of them does not say
    which. The answers and the estimate lie beside the record, and the report shows them. Nothing is
    learned from the answers without --learn. RUN is the record of the crawl (food-TIME.run), its
    JOBDIR or its JSON lines file; without it, the latest crawl of this folder.
    """
    path = record_of(run)
    with Record(path) as record:
        folder = topic_to_answer(record) if learn else None
        auditing = _Auditing(record, pages, again=again)
        if questions:
            for each in auditing.questions():
                print(json.dumps(each, ensure_ascii=False))
            return
        told = dict.fromkeys(yes, True) | dict.fromkeys(no, False)
        if answers is not None:
            if not answers.exists():
                raise TresError(f"{answers} does not exist")
            told |= read_answers(answers, partial(print, file=sys.stderr))
        if told or answers is not None:
            auditing.answer(told)
        else:
            auditing.ask()
        print(auditing)
    if folder is not None:
        add_answers(folder.answers, auditing.by_url())
        with Record(path) as record:
            topic_to_answer(record)  # has the answered pages too
        for line in [*learn_answers(folder), *renew(path)]:
            print(line)


class _Auditing:
    """The audit of a run: drawn again if the output has changed since."""

    def __init__(self, record: Record, count: int | None, *, again: bool) -> None:
        self._record = record
        view = topic_view(record, partial(print, file=sys.stderr))
        found = list(view_pages(record, view, 0.0))
        ranked = [Ranked(page.row, p, relevant) for page, _, p, relevant in found]
        if not any(page.relevant for page in ranked):
            raise TresError(f"{record.path}: no page of the output can be checked")
        self._pages: dict[int, Fetch] = {page.row: page for page, *_ in found}
        old = Audit.read(record.path)
        seed = random.SystemRandom().randrange(SEEDS)
        fetched = identity_of(page.row for page in record.pages())
        self._audit = Audit.draw(ranked, count or PAGES, seed, fetched=fetched)
        new = self._audit.output, fetched
        is_same = old is not None and (old.output, old.fetched) == new and not again
        is_same &= old is None or all(row in self._pages for row, _ in old.drawn)  # tres forget
        if old is not None and is_same and len(old.drawn) >= (count or 0):
            self._audit = old
            return
        if old is not None and is_same:
            self._audit = Audit.draw(ranked, count or PAGES, seed, old.drawn, fetched)
        if old is not None and not again:
            drawn = {row for row, _ in self._audit.drawn}
            self._audit.answers = {row: a for row, a in old.answers.items() if row in drawn}
            if not is_same:
                print(
                    "The output has changed since its audit: other pages are drawn", file=sys.stderr
                )
        self._audit.write(record.path)

    def __str__(self) -> str:
        audit = self._audit
        done, drawn = len(audit.answers), len(audit.drawn)
        lines = [f"{done} of {counted(drawn, 'page')} answered: {audit_path(self._record.path)}"]
        if precision := audit.precision():
            lines.append(f"Precision of the output: {precision}, with the 95 % interval")
        if recall := audit.recall():
            lines.append(f"Recall, of the relevant pages fetched: {recall}")
        elif done:
            lines.append("Recall, of the relevant pages fetched: not known")
        return "\n".join(lines)

    def by_url(self) -> dict[str, bool]:
        """Return the answers by the URL of the page."""
        answers = self._audit.answers.items()
        return {_address(self._pages[row]): answer for row, answer in answers}

    def questions(self) -> list[dict[str, Any]]:
        """Return what a person or a program needs to answer, page by page."""
        asked = [self._pages[row] for row in self._audit.left]
        texts = [self._record.text(page) for page in asked]
        return [
            {"url": _address(page), "title": text.title, "text": text.text[:LEAD]}
            for page, text in zip(asked, texts, strict=True)
        ]

    def answer(self, told: dict[str, bool]) -> None:
        """Add answers by URL; raise TresError for a URL that was not drawn."""
        rows: dict[str, int] = {}
        for row, _ in self._audit.drawn:
            page = self._pages[row]
            rows |= dict.fromkeys((page.url, _address(page)), row)
        for url, answer in told.items():
            known = url if url in rows else canonicalise(url)
            if known not in rows:
                raise TresError(
                    f"{printable(url)} is not among the pages drawn: `--questions` prints them"
                )
            self._audit.answers[rows[known]] = answer
        self._audit.write(self._record.path)

    def ask(self) -> None:
        """Ask about each page until the user quits; each answer is kept at once."""
        rows = self._audit.left
        for place, answer in ask_person(self.questions()):
            self._audit.answers[rows[place]] = answer
            self._audit.write(self._record.path)


def _address(page: Fetch) -> str:
    return page.final_url or page.url
