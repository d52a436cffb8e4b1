"""The judge of a crawl whose topic learns while the crawl runs (see topic_learner.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.topic.corrected_pack import odds_of
from tres_scrapy.topic.judge import FIRST_PAGES, Source
from tres_scrapy.topic.judge_process import Task
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import NOTHING_AGAIN, Judged, Pack
from tres_scrapy.topic.topic_folder import TopicFolder
from tres_scrapy.topic.topic_learner import TopicLearner, begin_topic, keywords_of
from tres_scrapy.url.message import TresError, plainly


@dataclass(frozen=True)
class LearningTask(Task):
    """A task whose topic learns in a folder.

    `keywords` are the lines of the keywords file; there are none with a trained pack. Its pages are
    kept and asked about from the first on if it `asks` or has learned before, or if the crawl finds
    little: the pack may be blind (see joint.py). Else they are kept from the first answer on.
    A crawl that keeps nothing never `doubts` its pack.
    `answers` is the file of answers, if that is not in the folder. `models` is the folder of the
    shipped packs: this process is killed at its end, and would leave behind what it unpacks of a
    zipped egg.
    """

    folder: Path = Path()
    name: str = ""
    keywords: tuple[str, ...] = ()
    asks: bool = True
    doubts: bool = True
    answers: Path | None = None
    seed: int = 0
    models: Path | None = None

    def load(
        self, begin: Callable[[int | None], None] = lambda number: None
    ) -> Callable[[Sequence[Source]], list[Judged]]:
        """Return the function that judges and learns; raise TresError if the topic is in use."""
        trained = None if self.keywords else self.load_packs()
        judge = LearningJudge(self.reader(begin), self, trained)
        topic = TopicFolder(self.folder)
        if self.asks or judge.has_answers or topic.pack.is_dir():
            judge.hold(topic.held())
        return judge

    def learner(self, trained: Pack | None) -> TopicLearner:
        """Return what learns; the topic must be held."""
        if trained is not None and not TopicFolder(self.folder).pack.is_dir():
            begin_topic(TopicFolder(self.folder), self.name, trained)
        keywords = KeywordSet.parse(self.keywords) if trained is None else keywords_of(trained)
        return TopicLearner(
            self.folder,
            self.name,
            keywords,
            answers=self.answers,
            seed=self.seed,
            models=self.models,
            trained=trained,
        )


class LearningJudge:
    """Judges pages by the model of the moment; `learn` is called while no page waits."""

    def __init__(
        self, read: Callable[..., list[Judged]], task: LearningTask, trained: Pack | None
    ) -> None:
        self._read = read
        self._task = task
        self._trained = trained
        self._learner: TopicLearner | None = None
        self._can_begin = True
        may_be_blind = trained is not None and not trained.has_own_judge
        self._may_doubt = task.doubts and may_be_blind
        self._first: list[tuple[Source, Judged]] = []  # pages
        self._holds_first = self._may_doubt  # until it is known whether it finds little
        self._finds_little = False
        self._notes: list[str] = []
        self._holding = ExitStack()  # the topic, until this process ends

    @property
    def has_answers(self) -> bool:
        """Whether there is a file of answers in the folder."""
        return TopicFolder(self._task.folder).answers.exists()

    def hold(self, topic: AbstractContextManager[bool]) -> None:
        """Begin to learn if the topic is free; raise TresError if its folder cannot be made."""
        folder = self._task.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:  # beside an output such as /dev/stdout
            raise TresError(f"the topic cannot be kept in {folder}: {plainly(error)}") from None
        if self._holding.enter_context(topic):
            self._learner = self._task.learner(self._trained)
        else:
            self._holding.close()

    def learn(self) -> None:
        """Learn what is new; a trained pack begins with the first answer, or if it finds little."""
        if self._learner is None and self._can_begin and (self.has_answers or self._finds_little):
            try:
                self.hold(TopicFolder(self._task.folder).reserved())
            except (OSError, TresError) as error:
                self._can_begin = False
                self._notes.append(f"the topic cannot learn: {plainly(error)}")
            if self._learner is not None:
                self._keep(self._first)
            if self._learner is not None or not self._can_begin:
                self._first, self._holds_first = [], False
        if self._learner is not None:
            if self._finds_little:
                self._learner.doubt()
            self._learner.learn()

    def _keep(self, pages: Iterable[tuple[Source, Judged]]) -> None:
        """Keep what the topic can learn from pages; before it learns, the first of the crawl."""
        usable = [
            (source, each)
            for source, each in pages
            if each.page.may_be_kept
            and not (source.is_sitemap or each.is_missing or each.wall or each.is_broken)
        ]
        if self._learner is None:
            if self._holds_first:
                self._first = [*self._first, *usable][:FIRST_PAGES]
            return
        for source, each in usable:
            self._learner.keep(
                each.page, each.mark, is_seed=source.is_seed, prior=self._prior(each)
            )

    def _note(self, sources: Sequence[Source]) -> None:
        """Note whether the crawl finds little; if it does not, its first pages are forgotten."""
        if self._may_doubt:
            self._finds_little |= any(source.little for source in sources)
            if any(source.little is False for source in sources) and not self._finds_little:
                self._first, self._holds_first = [], False

    def __call__(self, sources: Sequence[Source]) -> list[Judged]:
        """Judge pages, and keep what the topic can learn from them."""
        learner = self._learner
        self._note(sources)
        if learner is None:
            judged = self._read(self._trained, sources)
            self._keep(zip(sources, judged, strict=True))
            notes, self._notes = tuple(self._notes), []
            return [each._replace(notes=notes) for each in judged[:1]] + judged[1:]
        judged = self._read(learner.pack, sources)
        self._keep(zip(sources, judged, strict=True))
        judged = [
            each._replace(
                model=learner.model,
                described=_features(learner.pack, source.waiting),
                again=learner.again() if source.again else NOTHING_AGAIN,
            )
            for source, each in zip(sources, judged, strict=True)
        ]
        for place, source in enumerate(sources):
            if not (source.is_sitemap or judged[place].is_broken):  # their notes are not shown
                judged[place] = judged[place]._replace(notes=learner.take_notes())
                break
        return judged

    def _prior(self, judged: Judged) -> float | None:
        """Return the log odds of a page by the trained pack, None without one."""
        if self._trained is None:
            return None
        return float(odds_of(max(judged.scores.values(), default=judged.probability)))


def _features(pack: Pack, links: Sequence[tuple[str, str]]) -> NDArray[np.float32] | None:
    if not links:
        return None
    urls, anchors = zip(*links, strict=True)
    return pack.action_features(urls, anchors)
