"""Judging pages by a topic that learns from them, in the process that judges (see word_topic.py).

All that is learned lies in the topic's folder: a process that ends, or a crawl that is killed,
continues with the same model and the same pages.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.links.code import Wordbook
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.judge import Judged, Source, judge_pages
from tres_scrapy.topic.judge_process import Task
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.shipped import VECTORS, shipped_models
from tres_scrapy.topic.vectors import WordVectors
from tres_scrapy.training.background import FREQUENCIES, Background
from tres_scrapy.training.word_folder import AnswerError, WordFolder, read_answers
from tres_scrapy.training.word_topic import Fit, Sheet, WordTopic, questions

MOST_PAGES: Final = 1_500  # kept to learn from: a fit takes less than a second
LEAST_WORDS: Final = 20  # of a page to learn from
GROWTH: Final = 1.15  # of the pages from one fit to the next
LEAD: Final = 300  # letters of a page that a question shows
ASKED: Final = 20
NEAR: Final = 60  # words near the keywords that count as keywords in anchors and URLs

logger = logging.getLogger(__name__)


def word_topic(keywords: KeywordSet) -> WordTopic:
    """Return the topic of keywords; raise ValueError if none of them is known."""
    models = shipped_models()
    background = Background.load(models / FREQUENCIES)
    return WordTopic(keywords, background, WordVectors.load(models / VECTORS))


def open_topic(name: str, keywords: KeywordSet, path: Path) -> list[str]:
    """Make the first pack of a topic in its folder, unless it is there; return what to say.

    Raise ValueError if no keyword is known.
    """
    folder = WordFolder(path)
    topic = word_topic(keywords)
    if not folder.pack.exists():
        path.mkdir(parents=True, exist_ok=True)
        folder.write_pack(name, keywords, topic.near(NEAR), topic.fit([], {}))
    if unknown := topic.unknown:
        return [f"no word vectors for {', '.join(unknown)}: found only word for word"]
    return []


@dataclass(frozen=True)
class WordTask(Task):
    """A task whose `pack` lies in the folder of a topic that learns.

    `keywords` are the lines of the keywords file; `answers` is the file of answers, if that is not
    in the folder.
    """

    name: str = ""
    keywords: tuple[str, ...] = ()
    answers: Path | None = None
    seed: int = 0

    def load(
        self, begin: Callable[[int | None], None] = lambda number: None
    ) -> Callable[[Sequence[Source]], list[Judged]]:
        """Return the function that judges and learns."""
        return WordJudge(self, begin)


class WordJudge:
    """Judges pages, keeps their words, and learns the topic again when enough of them are new."""

    def __init__(self, task: WordTask, begin: Callable[[int | None], None]) -> None:
        self._task = task
        self._begin = begin
        self._folder = WordFolder(task.pack.parent)
        self._pack = Pack.load(self._folder.pack)
        self._wordbook = Wordbook() if task.cues else None
        self._topic = word_topic(KeywordSet.parse(task.keywords))
        self._kept = {mark: (number, sheet) for number, mark, sheet in self._folder.read_pages()}
        state = self._folder.read_state()
        self._seen = max((number for number, _ in self._kept.values()), default=0)
        self._next = state.get("next", 1)
        self._used: dict[str, bool] = state.get("answers", {})
        self._said: list[str] = []
        self._stamp: int | None = None

    def __call__(self, sources: Sequence[Source]) -> list[Judged]:
        """Judge pages by the model of this moment."""
        limits: ReadingLimits = self._task.limits
        contexts, words = self._task.contexts, self._wordbook
        judged = judge_pages(
            self._pack, limits, sources, contexts=contexts, words=words, begin=self._begin
        )
        for source, each in zip(sources, judged, strict=True):
            self._keep(each, is_seed=source.is_seed)
        notes, self._said = tuple(self._said), []
        judged[-1] = judged[-1]._replace(notes=notes)
        return judged

    def learn(self) -> None:
        """Fit the topic again if that is due; called while no page waits for an answer."""
        answers = self._answers()
        if self._seen < self._next and answers == self._used:
            return
        self._forget(answers)
        sheets = [sheet for _, sheet in sorted(self._kept.values(), key=lambda each: each[0])]
        fit = self._topic.fit(sheets, answers)
        self._next = int(self._seen * GROWTH) + 10
        if fit.drifts and not answers:
            self._next = 2 * self._seen
            self._said.append(
                f"keywords and pages disagree (rank correlation {fit.agreement:.2f}): kept the "
                f"model before, learns again after {self._next} pages; `tres answer` settles it"
            )
        else:
            self._folder.write_pack(self._task.name, self._topic.keywords, self._near(), fit)
            self._pack = Pack.load(self._folder.pack)
            self._said.append(_said(fit, answers, changed=answers != self._used))
        self._folder.write_questions(questions(fit, sheets, answers, ASKED))
        self._used = answers
        self._folder.write_state({"next": self._next, "answers": answers})

    def _near(self) -> list[str]:
        return sorted(self._pack.keywords.words - self._topic.keywords.words)

    def _keep(self, judged: Judged, *, is_seed: bool) -> None:
        page, mark = judged.page, judged.mark.hex()
        if mark in self._kept or judged.is_missing:
            return
        words = Text.of(f"{page.title} {page.text}").words
        if len(words) < LEAST_WORDS:
            if is_seed:
                self._said.append(
                    f"the seed {page.url} has no text: the topic starts from its keywords alone"
                )
            return
        self._seen += 1
        sheet = Sheet(page.url, page.title, page.text[:LEAD], Counter(words), is_seed)
        self._kept[mark] = self._seen, sheet
        self._folder.add_page(self._seen, mark, sheet)

    def _forget(self, answers: dict[str, bool]) -> None:
        """Keep a random sample of the pages, with all seeds and answered ones."""
        if len(self._kept) <= MOST_PAGES:
            return

        def order(mark: str) -> tuple[bool, bytes]:
            sheet, salt = self._kept[mark][1], str(self._task.seed).encode()
            drawn = not (sheet.is_seed or sheet.url in answers)
            return drawn, blake2b(mark.encode(), digest_size=8, salt=salt).digest()

        last = max(self._kept, key=lambda mark: self._kept[mark][0])  # it says how many there were
        chosen = {*sorted(self._kept, key=order)[:MOST_PAGES], last}
        self._kept = {mark: page for mark, page in self._kept.items() if mark in chosen}
        self._folder.keep_pages((number, mark, s) for mark, (number, s) in self._kept.items())

    def _answers(self) -> dict[str, bool]:
        """Return the answers, read again if their file has changed."""
        path = self._task.answers or self._folder.answers
        stamp = path.stat().st_mtime_ns if path.exists() else None
        if stamp == self._stamp:
            return self._used
        self._stamp = stamp
        try:
            return read_answers(path)
        except AnswerError as error:
            self._said.append(str(error))
            return self._used


def _said(fit: Fit, answers: dict[str, bool], *, changed: bool) -> str:
    said = f"learned from {fit.pages} pages and {fit.answers} answers"
    if fit.answers:
        low, high = fit.interval
        said += f"; by the answers the threshold lies between P {low:.2f} and {high:.2f}"
    if changed and answers and not any(answers.values()):
        said += "; all answers are no: check the keywords, or answer yes for one page"
    return said
