"""Judging pages by a topic that learns from them, in the process that judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.links.code import Wordbook
from tres_scrapy.topic.judge import Judged, Source, judge_pages
from tres_scrapy.topic.judge_process import Task
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.word_folder import WordFolder
from tres_scrapy.topic.word_learner import WordLearner


@dataclass(frozen=True)
class WordTask(Task):
    """A task whose `pack` lies in the folder of a topic that learns.

    `keywords` are the lines of the keywords file; `answers` is the file of answers, if that is not
    in the folder. `models` is the folder of the shipped packs: this process is killed at its end,
    and would leave behind what it unpacks of a zipped egg.
    """

    name: str = ""
    keywords: tuple[str, ...] = ()
    answers: Path | None = None
    seed: int = 0
    models: Path | None = None

    def load(
        self, begin: Callable[[int | None], None] = lambda number: None
    ) -> Callable[[Sequence[Source]], list[Judged]]:
        """Return the function that judges and learns; raise PackError if the topic is in use."""
        keywords = KeywordSet.parse(self.keywords)
        holding = ExitStack()
        holding.enter_context(WordFolder(self.pack.parent).held())
        learner = WordLearner(
            self.pack.parent,
            self.name,
            keywords,
            answers=self.answers,
            seed=self.seed,
            models=self.models,
        )
        return WordJudge(self, learner, begin, holding)


class WordJudge:
    """Judges pages by the model of the moment; `learn` is called while no page waits."""

    def __init__(
        self,
        task: Task,
        learner: WordLearner,
        begin: Callable[[int | None], None],
        holding: ExitStack,
    ) -> None:
        self._task = task
        self._begin = begin
        self._learner = learner
        self._holding = holding  # the topic, until this process ends
        self._words = Wordbook() if task.cues else None
        self.learn = learner.learn

    def __call__(self, sources: Sequence[Source]) -> list[Judged]:
        """Judge pages, and keep what the topic can learn from them."""
        judged = judge_pages(
            self._learner.pack,
            self._task.limits,
            sources,
            contexts=self._task.contexts,
            words=self._words,
            begin=self._begin,
            content=self._task.content,
        )
        for source, each in zip(sources, judged, strict=True):
            if each.page.may_be_kept and not (each.is_missing or each.is_broken):
                self._learner.keep(each.page, each.mark, is_seed=source.is_seed)
        judged = [
            each._replace(model=self._learner.model, actions=self._described(source))
            for source, each in zip(sources, judged, strict=True)
        ]
        pages = [each for each, source in enumerate(sources) if not source.is_sitemap]
        place = next((each for each in pages if not judged[each].is_broken), None)
        if place is not None:  # else the next page brings them to the log
            judged[place] = judged[place]._replace(notes=self._learner.take_notes())
        return judged

    def _described(self, source: Source) -> NDArray[np.float32] | None:
        if not source.waiting:
            return None
        urls, anchors = zip(*source.waiting, strict=True)
        return self._learner.pack.action_features(urls, anchors)
