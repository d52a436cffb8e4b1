"""A topic that learns from the pages of a crawl while the crawl runs (see keyword_topic.py).

It starts from keywords, or from a trained pack, which answers then correct.

All that is learned lies in the topic's folder: a process that ends, or a crawl that is killed,
continues with the same model and the same pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.page.copies import SKETCH
from tres_scrapy.page.text import Page
from tres_scrapy.topic.corrected_pack import CorrectedPack, at_threshold, odds_of
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_topic import KeywordTopic, PageWords, TopicFit
from tres_scrapy.topic.pack import Pack, text_of
from tres_scrapy.topic.question import Question, change, questions
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.topic.topic_folder import TopicFolder, read_answers
from tres_scrapy.url.message import TresError, counted, plainly, printable
from tres_scrapy.url.whole_file import sha256

MAX_PAGES: Final = 1_500  # kept to learn from: a fit takes less than a second
LEAST_WORDS: Final = 20  # of a page to learn from
GROWTH: Final = 1.15  # of the pages from one fit to the next
LEAD: Final = 300  # letters of a page that a question shows
QUESTIONS: Final = 20
SEVERAL: Final = 5  # answers yes, without a no, that are worth a word
RUNS: Final = "The crawl runs: it learns from the answers with its next pages."
BLIND_NOTE: Final = "hardly knows the pages of this crawl"
INSTEAD: Final = "its keywords count more than it here; answers help (`tres answer`)"
NEAR: Final = 60  # words near the keywords that count as keywords in anchors and URLs


def open_topic(name: str, keywords: KeywordSet, path: Path) -> tuple[bool, list[str]]:
    """Make the first pack of a topic in its folder, unless it is there.

    It is made again if it came from other keywords. Return whether it was made now, and what to
    say. Raise TresError if another crawl learns the topic.
    """
    folder = TopicFolder(path)
    topic = KeywordTopic.in_english(keywords)
    path.mkdir(parents=True, exist_ok=True)
    with folder.held():
        is_new = not folder.pack.exists() or not _is_made_from(Pack.load(folder.pack), keywords)
        if is_new:
            folder.write_pack(name, keywords, topic.near(NEAR), topic.fit([], {}))
            folder.write_state({})  # pages of an earlier crawl are learned again
    if unknown := topic.unknown:
        return is_new, [f"no word vectors for {', '.join(unknown)}: found only word for word"]
    return is_new, []


def _is_made_from(pack: Pack, keywords: KeywordSet) -> bool:
    given = set(pack.given), set(pack.keywords.phrases)
    return given == (set(keywords.words), set(keywords.phrases))


def begin_topic(folder: TopicFolder, name: str, pack: Pack) -> None:
    """Write the first model of a trained pack in its folder: nothing corrects it."""
    folder.write_state({"edge": edge_of(pack)})
    folder.write_pack(name, keywords_of(pack), (), TopicFit.uncorrected())


def edge_of(pack: Pack) -> float:
    """Return the log odds from which on a pack calls a page relevant."""
    return float(odds_of(pack.threshold))


def keywords_of(pack: Pack) -> KeywordSet:
    """Return the keywords that a pack was made from."""
    return KeywordSet(pack.given, pack.keywords.phrases)


def learn_answers(folder: TopicFolder, then: Sequence[str] = ()) -> Sequence[str]:
    """Learn the answers of a topic whose crawl has ended, and propose other pages.

    A running crawl learns them itself. Return what to say, and `then` unless the crawl runs. Raise
    TresError if a file whose answers were learned is missing.
    """
    with folder.reserved() as alone:
        if not alone:
            return [RUNS]
        pack, state = Pack.load(folder.pack), folder.read_state()
        keywords = keywords_of(pack)
        file = Path(state["file"]) if state.get("file") else None
        _check_file(file, state.get("answers", {}), read_answers(folder.answers))
        seed = state.get("seed", 0)
        learner = TopicLearner(folder.path, pack.name, keywords, answers=file, seed=seed)
        learner.learn()
        folder.write_questions(learner.questions(QUESTIONS))
        return [*learner.take_notes(), *then]


class TopicLearner:
    """Keeps the words of judged pages, and fits the topic again when enough of them are new.

    `trained` is the pack that answers correct, None for a topic from keywords.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        keywords: KeywordSet,
        *,
        answers: Path | None = None,
        seed: int = 0,
        models: Path | None = None,
        trained: Pack | None = None,
    ) -> None:
        self.folder = TopicFolder(path)
        self._name = name
        self._trained = trained
        state = self.folder.read_state()
        if answers is None and state.get("file"):  # named before the crawl was resumed
            answers = Path(state["file"])
        # of two answers about a page, that of the last file counts
        self._named = answers
        self._files = [*([answers] if answers else []), self.folder.answers]
        # from which log odds on the trained pack calls a page relevant
        self._edge = state.get("edge") or 0.0 if trained is None else edge_of(trained)
        self._doubts = bool(state.get("doubts")) and not (trained and trained.has_own_judge)
        file = str(answers.resolve()) if answers else ""
        self._origin = {"file": file, "seed": seed, "edge": self._edge, "doubts": self._doubts}
        self._salt = str(seed).encode()
        self._topic = KeywordTopic.in_english(keywords, models)
        self._near = self._topic.near(NEAR)
        pages = self.folder.read_pages(repair=True)
        self._kept = {mark: (number, page) for number, mark, page in pages}
        if state and state != state | self._origin:  # the file of answers has moved
            self.folder.write_state(state | self._origin)
        self._urls = {page.url for _, page in self._kept.values()}
        self._seen = max((number for number, _ in self._kept.values()), default=0)
        self._next: int = state.get("next", 1)
        self.known_answers: dict[str, bool] = state.get("answers", {})  # to the model
        self._load()
        self._notes = [f"the trained topic {BLIND_NOTE}; {INSTEAD}"] if self._is_blind else []
        self._wrong = set[str]()  # what was said of files of answers
        self._strange = set[str]()  # URLs of answers that were said to be of no page
        self._warned = False  # whether hardly any page is relevant, which was said
        self._stamps: list[int | None] = [None for _ in self._files]
        self._again: dict[str, float] | None = None  # None until it is asked for, or learned

    def questions(self, most: int) -> list[Question]:
        """Return the pages whose answers help most."""
        pages = [page for _, page in self._kept.values()]
        return questions(self._fit.judge, pages, self.known_answers, most)

    def again(self) -> dict[str, float]:
        """Return P(relevant) of earlier pages by the model of now, by the sketch of each."""
        if self._again is None:
            found = self._fit.judge(page for _, page in self._kept.values())
            self._again = self._by_sketch(self._kept, found)
        return self._again

    @property
    def _is_blind(self) -> bool:
        """Whether the trained pack was found blind; it stays so."""
        return self._doubts and self._own.mean_prior is not None

    @property
    def _fit(self) -> TopicFit:
        """The model of now."""
        return TopicFit.of(self._own)

    def take_notes(self) -> tuple[str, ...]:
        """Return what there is to say since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes

    def keep(
        self,
        page: Page,
        fingerprint: bytes,
        *,
        is_seed: bool = False,
        prior: float | None = None,
    ) -> None:
        """Keep the words of a page; a copy, a URL that is known, or hardly a word teach nothing.

        `prior` is its log odds by the trained pack.
        """
        mark = fingerprint[:SKETCH].hex()
        if mark in self._kept or page.url in self._urls:
            return
        text = text_of(page)
        if len(text.words) < LEAST_WORDS:
            if is_seed and prior is None:
                self._notes.append(
                    f"the seed {page.url} has no text: the topic starts from its keywords alone"
                )
            return
        self._seen += 1
        self._urls.add(page.url)
        kept = PageWords(page.url, page.title, page.text[:LEAD], text.counts(), is_seed, prior)
        self._kept[mark] = self._seen, kept
        try:
            self.folder.add_page(self._seen, mark, kept)
        except OSError as error:  # only a resumed crawl misses it
            self._notes.append(f"cannot keep a page: {plainly(error)}")

    def doubt(self) -> None:
        """Doubt the trained pack from the next fit on, which is due now.

        A judge of the user's own is never doubted, nor is a pack without keywords.
        """
        pack, words = self._trained, self._topic.keywords
        if self._doubts or pack is None or pack.has_own_judge:
            return
        if words.words or words.phrases:
            self._doubts = self._origin["doubts"] = True
            self._next = 0

    def learn(self) -> None:
        """Fit the topic again if enough pages or an answer are new."""
        if not self._kept:
            return
        answers = self._answers()
        if self._seen < self._next and answers == self.known_answers:
            return
        self._forget(answers)
        marks = sorted(self._kept, key=lambda mark: self._kept[mark][0])
        pages = [self._kept[mark][1] for mark in marks]
        fit = self._topic.fit(
            pages, answers, self._edge, doubts=self._doubts, is_blind=self._is_blind
        )
        self._warn(fit)
        self._next = int(self._seen * GROWTH) + 10
        changed, self.known_answers = answers != self.known_answers, answers
        if changed:
            self._name_strange(answers.keys() - {page.url for page in pages})
        try:
            self._keep_fit(fit, changed=changed)
            self._again = None if fit.found is None else self._by_sketch(marks, fit.found)
        except (OSError, TresError) as error:  # a full disk: the crawl goes on as it was
            self._notes.append(f"cannot keep what was learned: {plainly(error)}")

    def _by_sketch(self, marks: Iterable[str], found: NDArray[np.float64]) -> dict[str, float]:
        """Return P(relevant) of pages; a trained pack that is corrected keeps its threshold."""
        if self._trained is not None:
            found = at_threshold(odds_of(found), self.pack.threshold)
        return dict(zip(marks, found.tolist(), strict=True))

    def _warn(self, fit: TopicFit) -> None:
        """Say once that a trained pack is blind, or that hardly a page fits the keywords."""
        if fit.blindness and not self._is_blind:
            self._notes.append(f"the trained topic {BLIND_NOTE}: {fit.blindness}; {INSTEAD}")
        few = fit.few and fit.pages >= QUESTIONS
        if few and not self._warned:
            self._notes.append(
                f"hardly any of {fit.pages} pages fits the keywords: the best of them count as "
                "relevant until better ones are found; `tres answer`, or give other seeds"
            )
        self._warned = few

    def _name_strange(self, urls: Set[str]) -> None:
        """Say which answers are about pages that were not kept, if there are new ones."""
        if not urls <= self._strange:
            self._strange |= urls
            what = counted(len(urls), "answer")
            self._notes.append(
                f"{what} about pages that were not fetched yet, or not kept, the first is "
                f"{printable(min(urls))}: not learned from"
            )

    def _load(self) -> None:
        """Load the model; `model` names it, "" for a trained pack that nothing corrects."""
        self._own = self.pack = Pack.load(self.folder.pack)
        self.model = sha256(self.folder.pack / TOPIC_FILE)
        if self._trained is not None:
            is_alone = self._fit.is_uncorrected
            self.pack = self._trained if is_alone else CorrectedPack(self._trained, self._own)
            self.model = "" if is_alone else self.model

    def _keep_fit(self, fit: TopicFit, *, changed: bool) -> None:
        before = self._fit
        self.folder.write_pack(self._name, self._topic.keywords, self._near, fit)
        self._load()
        is_first = "next" not in self.folder.read_state()
        summary = _summary(fit, self.known_answers, changed=changed, is_first=is_first)
        if changed:
            pages = [page for _, page in self._kept.values()]
            summary += f"; {change(before.judge(pages), self._fit.judge(pages))}"
        if changed or self.model:
            self._notes.append(summary)
        self.folder.write_questions(self.questions(QUESTIONS))
        state = {"next": self._next, "answers": self.known_answers, "pulls": dict(fit.pulls)}
        self.folder.write_state(state | self._origin)

    def _forget(self, answers: dict[str, bool]) -> None:
        """Keep a random sample of the pages, with all seeds and answered ones."""
        if len(self._kept) <= MAX_PAGES:
            return

        def order(mark: str) -> tuple[bool, bytes]:
            page = self._kept[mark][1]
            drawn = not (page.is_seed or page.url in answers)
            return drawn, blake2b(mark.encode(), digest_size=8, salt=self._salt).digest()

        last = max(self._kept, key=lambda mark: self._kept[mark][0])  # it says how many there were
        chosen = {*sorted(self._kept, key=order)[:MAX_PAGES], last}
        self._kept = {mark: page for mark, page in self._kept.items() if mark in chosen}
        try:
            self.folder.keep_pages((number, mark, s) for mark, (number, s) in self._kept.items())
        except OSError as error:  # a resumed crawl has more of them
            self._notes.append(f"cannot keep pages: {plainly(error)}")

    def _say_once(self, wrong: str) -> None:
        """Say what is wrong with a file of answers, which is read again and again, once."""
        if wrong not in self._wrong:
            self._wrong.add(wrong)
            self._notes.append(wrong)

    def _answers(self) -> dict[str, bool]:
        """Return the answers, read again if a file of them has changed."""
        stamps = [path.stat().st_mtime_ns if path.exists() else None for path in self._files]
        if stamps == self._stamps:
            return self.known_answers
        self._stamps = stamps
        answers: dict[str, bool] = {}
        for path in self._files:
            try:
                answers |= read_answers(path, self._say_once)
            except TresError as error:
                self._notes.append(str(error))
                return self.known_answers
        try:
            _check_file(self._named, self.known_answers, answers)
        except TresError as error:
            self._notes.append(str(error))
            return self.known_answers
        return answers


def _check_file(file: Path | None, used: Mapping[str, bool], found: Mapping[str, bool]) -> None:
    """Raise TresError if a file of answers is missing, and with it some that were learned."""
    if file is not None and not file.exists() and used.keys() - found.keys():
        raise TresError(
            f"answers {str(file)!r} is missing, its answers were learned: put it back, or "
            "resume the crawl with answers= naming its new place"
        )


def _summary(fit: TopicFit, answers: dict[str, bool], *, changed: bool, is_first: bool) -> str:
    counts = [counted(fit.pages, "page")]
    counts.append(counted(fit.answers, "answer"))
    summary = f"learned from {' and '.join(counts)}"
    if fit.answers or is_first:  # that nothing is known is said once
        summary += f"; {fit.accuracy}"
    if changed and len(set(answers.values())) == 1:
        if not any(answers.values()):
            check = "" if fit.prior_weight else "check the keywords, or "
            summary += f"; all answers are no: {check}answer yes for one page"
        elif len(answers) >= SEVERAL:
            summary += "; all answers are yes: answer no for one page, to find the threshold"
    return summary
