"""Puts the questions of a topic to an answerer, five at a time, and keeps what it answered."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tres_scrapy.answerer.answer import Answer, AskedPage
from tres_scrapy.answerer.answerer import Answerer
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers, read_answers
from tres_scrapy.url.message import TresError, counted, printable

AT_ONCE: Final = 5
ENOUGH: Final = 10  # answers yes and no, from which on they are looked at
CONTRARY: Final = 0.35  # share of pairs in which the page with a yes looked more relevant
THRESHOLD: Final = 0.5  # of a topic that learns


class Asking:
    """Asks about the pages that a topic asks about, `left` more at most, none of them twice.

    `record` is the file of the run, which has the texts of pages, None if there is none.
    """

    def __init__(
        self,
        folder: TopicFolder,
        answerer: Answerer,
        record: Path | None,
        left: int,
    ) -> None:
        self._folder = folder
        self._answerer = answerer
        self._record = record
        self.left = left
        self._topic = ""
        self._said: set[str] = set()
        self._past = folder.read_answered()

    def questions(self) -> list[dict[str, Any]]:
        """Return the next questions without an answer, five at most."""
        try:
            asked = self._folder.read_questions()
        except TresError:  # no page is fetched yet
            return []
        known = {*read_answers(self._folder.answers), *(each["url"] for each in self._past)}
        return [each for each in asked if each["url"] not in known][
            : max(0, min(AT_ONCE, self.left))
        ]

    def ask(self, questions: list[dict[str, Any]]) -> list[str]:
        """Have questions answered, write the answers, and return what there is to say.

        Raise AnswererError if the answerer fails. An answer of a person that came meanwhile counts.
        """
        self._topic = self._topic or described(Pack.load(self._folder.pack))
        answers = self._answerer.ask(self._pages(questions))
        known = read_answers(self._folder.answers)
        told = {
            each["url"]: answer.relevant
            for each, answer in zip(questions, answers, strict=True)
            if answer.relevant is not None and each["url"] not in known
        }
        rows = [
            {"url": each["url"], "probability": each["probability"], **answer._asdict()}
            for each, answer in zip(questions, answers, strict=True)
        ]
        add_answers(self._folder.answers, told)  # first: what is answered is not asked again
        self._folder.add_answered(rows)
        self._past += rows
        self.left -= len(rows)
        return [summary(answers, rows), *self._doubts()]

    def _pages(self, questions: list[dict[str, Any]]) -> list[AskedPage]:
        texts = {}
        if self._record is not None:
            with suppress(RecordError), Record(self._record) as record:
                found = [record.find(each["url"]) for each in questions]
                texts = {
                    page.final_url or page.url: record.text(page).text for page in found if page
                }
        return [
            AskedPage(url, each["title"], texts.get(url, each["text"]), self._topic)
            for each in questions
            for url in [each["url"]]
        ]

    def _doubts(self) -> list[str]:
        """Return what speaks against the answers so far, each line once."""
        told = [each for each in self._past if each["relevant"] is not None]
        if len(told) < ENOUGH:
            return []
        yes = [each["probability"] for each in told if each["relevant"]]
        no = [each["probability"] for each in told if not each["relevant"]]
        doubt = ""
        if not yes or not no:
            doubt = f"all {len(told)} answers are {'yes' if yes else 'no'}: check the answerer"
        elif sum(a > b for a in yes for b in no) <= CONTRARY * len(yes) * len(no):
            doubt = (
                "its answers contradict the keywords, pages with a yes looked less relevant than "
                "those with a no: check the answerer and the keywords"
            )
        kind = doubt[:3]
        fresh = [doubt] if doubt and kind not in self._said else []
        self._said.add(kind)
        return fresh


def described(pack: Pack) -> str:
    """Return the name and keywords of a topic in one line, for a program that knows neither."""
    return f"{pack.name}: {', '.join([*sorted(pack.given), *pack.keywords.phrases])}"


def summary(answers: list[Answer], rows: list[dict[str, Any]]) -> str:
    """Return what was answered to some questions, and how many answers the topic expected."""
    yes, no = (sum(each.relevant is kind for each in answers) for kind in (True, False))
    unsure = len(answers) - yes - no
    as_expected = sum(
        each["relevant"] is not None and each["relevant"] == (each["probability"] >= THRESHOLD)
        for each in rows
    )
    counts = f"{yes} yes, {no} no" + (f", {unsure} without an answer" if unsure else "")
    said = f"{counts} ({as_expected} as the topic expected)"
    reasons = [
        f"{'yes' if answer.relevant else 'no' if answer.relevant is False else 'no answer'} to "
        f"{printable(row['url'])}: {answer.reason}"
        for answer, row in zip(answers, rows, strict=True)
        if answer.reason
    ]
    more = f"; {reasons[0]}" if reasons else ""
    return f"{counted(len(answers), 'question')}: {said}{more}"
