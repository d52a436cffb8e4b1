"""A topic that learns from the pages of a crawl while the crawl runs (see word_topic.py).

All that is learned lies in the topic's folder: a process that ends, or a crawl that is killed,
continues with the same model and the same pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tres_scrapy.page.text import Page
from tres_scrapy.topic.answer import AnswerError, add_answers, read_answers
from tres_scrapy.topic.background import FREQUENCIES, Background
from tres_scrapy.topic.bag import BagOfWords
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack, PackError
from tres_scrapy.topic.shipped import TOPIC_FILE, VECTORS, shipped_models
from tres_scrapy.topic.vectors import WordVectors
from tres_scrapy.topic.word_folder import WordFolder
from tres_scrapy.topic.word_topic import PageWords, TopicFit, WordTopic, questions
from tres_scrapy.url.message import plainly, plural, printable
from tres_scrapy.url.whole_file import sha256

MOST_PAGES: Final = 1_500  # kept to learn from: a fit takes less than a second
LEAST_WORDS: Final = 20  # of a page to learn from
GROWTH: Final = 1.15  # of the pages from one fit to the next
LEAD: Final = 300  # letters of a page that a question shows
ASKED: Final = 20
RUNS: Final = "The crawl runs: it learns from the answers with its next pages."
NEAR: Final = 60  # words near the keywords that count as keywords in anchors and URLs


def word_topic(keywords: KeywordSet, models: Path | None = None) -> WordTopic:
    """Return the topic of keywords; raise ValueError if none of them is known.

    `models` is the folder of the shipped packs, if it is known.
    """
    return WordTopic(keywords, *_english(models or shipped_models()))


@cache
def _english(models: Path) -> tuple[Background, WordVectors]:
    return Background.load(models / FREQUENCIES), WordVectors.load(models / VECTORS)


def open_topic(name: str, keywords: KeywordSet, path: Path) -> tuple[bool, list[str]]:
    """Make the first pack of a topic in its folder, unless it is there.

    It is made again if it came from other keywords. Return whether it was made now, and what to
    say. Raise ValueError if no keyword is known, PackError if another crawl learns the topic.
    """
    folder = WordFolder(path)
    topic = word_topic(keywords)
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


def learn_answers(folder: WordFolder) -> tuple[str, ...] | None:
    """Learn the answers of a topic whose crawl has ended, and propose other pages.

    Return what there is to say. Return None while the crawl runs: it learns them itself. Raise
    AnswerError if a file whose answers were learned is missing.
    """
    with folder.reserved() as alone:
        if not alone:
            return None
        pack, state = Pack.load(folder.pack), folder.read_state()
        keywords = KeywordSet(pack.given, pack.keywords.phrases)
        file = Path(state["file"]) if state.get("file") else None
        _check_file(file, state.get("answers", {}), read_answers(folder.answers)[0])
        seed = state.get("seed", 0)
        learner = WordLearner(folder.path, pack.name, keywords, answers=file, seed=seed)
        learner.learn()
        folder.write_questions(learner.questions(ASKED))
        return learner.take_notes()


def learned(folder: WordFolder, then: Sequence[str] = ()) -> Sequence[str]:
    """Learn the answers of a topic; return what to say, and `then` unless the crawl runs."""
    notes = learn_answers(folder)
    return [RUNS] if notes is None else [*notes, *then]


class WordLearner:
    """Keeps the words of judged pages, and fits the topic again when enough of them are new."""

    def __init__(
        self,
        path: Path,
        name: str,
        keywords: KeywordSet,
        *,
        answers: Path | None = None,
        seed: int = 0,
        models: Path | None = None,
    ) -> None:
        self._folder = WordFolder(path)
        self._name = name
        # of two answers about a page, that of the last file counts
        self._named = answers
        self._files = [*([answers] if answers else []), self._folder.answers]
        self._origin = {"file": str(answers.resolve()) if answers else "", "seed": seed}
        self._salt = str(seed).encode()
        self._load()
        self._topic = word_topic(keywords, models)
        self._near = self._topic.near(NEAR)
        pages = self._folder.read_pages(repair=True)
        self._kept = {mark: (number, sheet) for number, mark, sheet in pages}
        state = self._folder.read_state()
        if state and state != state | self._origin:  # the file of answers has moved
            self._folder.write_state(state | self._origin)
        self._seen = max((number for number, _ in self._kept.values()), default=0)
        self._next: int = state.get("next", 1)
        self._used: dict[str, bool] = state.get("answers", {})
        self._said: list[str] = []
        self._few = False  # whether hardly any page is relevant, which was said
        self._stamps: list[int | None] = [None for _ in self._files]

    @property
    def answered(self) -> int:
        """The number of answers that the model knows."""
        return len(self._used)

    def questions(self, most: int) -> list[tuple[PageWords, float]]:
        """Return the pages whose answers help most, with P(relevant) of each."""
        sheets = [sheet for _, sheet in self._kept.values()]
        assert isinstance(self.pack.classifier, BagOfWords)
        fit = TopicFit(self.pack.classifier, self.pack.calibration)
        return questions(fit.judge, sheets, self._used, most)

    def answer(self, answers: Mapping[str, bool]) -> None:
        """Add answers to the file of answers, and learn from them."""
        add_answers(self._folder.answers, answers)
        self.learn()

    def take_notes(self) -> tuple[str, ...]:
        """Return what there is to say since the last call."""
        notes, self._said = tuple(self._said), []
        return notes

    def keep(self, page: Page, fingerprint: bytes, *, is_seed: bool = False) -> None:
        """Keep the words of a page; a copy, or a page with hardly a word, teaches nothing."""
        mark = fingerprint.hex()
        if mark in self._kept:
            return
        words = Text.of(f"{page.title} {page.text}").words
        if len(words) < LEAST_WORDS:
            if is_seed:
                self._said.append(
                    f"the seed {page.url} has no text: the topic starts from its keywords alone"
                )
            return
        self._seen += 1
        sheet = PageWords(page.url, page.title, page.text[:LEAD], Counter(words), is_seed)
        self._kept[mark] = self._seen, sheet
        try:
            self._folder.add_page(self._seen, mark, sheet)
        except OSError as error:  # only a resumed crawl misses it
            self._said.append(f"cannot keep a page: {plainly(error)}")

    def learn(self) -> None:
        """Fit the topic again if enough pages or an answer are new."""
        if not self._kept:
            return
        answers = self._answers()
        if self._seen < self._next and answers == self._used:
            return
        self._forget(answers)
        sheets = [sheet for _, sheet in sorted(self._kept.values(), key=lambda each: each[0])]
        fit = self._topic.fit(sheets, answers)
        self._warn(fit)
        self._next = int(self._seen * GROWTH) + 10
        changed, self._used = answers != self._used, answers
        try:
            self._keep_fit(fit, changed=changed)
        except (OSError, PackError) as error:  # a full disk: the crawl goes on as it was
            self._said.append(f"cannot keep what was learned: {plainly(error)}")

    def _warn(self, fit: TopicFit) -> None:
        """Say once that the crawl has found hardly a page by the keywords."""
        few = fit.few and fit.pages >= ASKED
        if few and not self._few:
            self._said.append(
                f"hardly any of {fit.pages} pages fits the keywords: the best of them count as "
                "relevant until better ones are found; `tres answer`, or give other seeds"
            )
        self._few = few

    def _load(self) -> None:
        """Load the pack; `model` names it: another model, another name."""
        self.pack = Pack.load(self._folder.pack)
        self.model = sha256(self._folder.pack / TOPIC_FILE)

    def _keep_fit(self, fit: TopicFit, *, changed: bool) -> None:
        if fit.drifts and not self._used:
            self._next = 2 * self._seen
            self._said.append(
                f"keywords and pages disagree (rank correlation {fit.agreement:.2f}): kept the "
                f"model before, learns again after {self._next} pages; `tres answer` settles it"
            )
        else:
            self._folder.write_pack(self._name, self._topic.keywords, self._near, fit)
            self._load()
            self._said.append(_said(fit, self._used, changed=changed))
        self._folder.write_questions(self.questions(ASKED))
        state = {"next": self._next, "answers": self._used, "pulls": dict(fit.pulls)}
        self._folder.write_state(state | self._origin)

    def _forget(self, answers: dict[str, bool]) -> None:
        """Keep a random sample of the pages, with all seeds and answered ones."""
        if len(self._kept) <= MOST_PAGES:
            return

        def order(mark: str) -> tuple[bool, bytes]:
            sheet = self._kept[mark][1]
            drawn = not (sheet.is_seed or sheet.url in answers)
            return drawn, blake2b(mark.encode(), digest_size=8, salt=self._salt).digest()

        last = max(self._kept, key=lambda mark: self._kept[mark][0])  # it says how many there were
        chosen = {*sorted(self._kept, key=order)[:MOST_PAGES], last}
        self._kept = {mark: page for mark, page in self._kept.items() if mark in chosen}
        self._folder.keep_pages((number, mark, s) for mark, (number, s) in self._kept.items())

    def _answers(self) -> dict[str, bool]:
        """Return the answers, read again if a file of them has changed."""
        stamps = [path.stat().st_mtime_ns if path.exists() else None for path in self._files]
        if stamps == self._stamps:
            return self._used
        self._stamps = stamps
        answers: dict[str, bool] = {}
        for path in self._files:
            try:
                found, doubtful = read_answers(path)
            except AnswerError as error:
                self._said.append(str(error))
                return self._used
            if doubtful:
                urls = f"{len(doubtful)} {plural(len(doubtful), 'URL')}"
                self._said.append(
                    f"answers {path.name!r}: yes and no for {urls}, the first is "
                    f"{printable(doubtful[0])}; the last line about each counts"
                )
            answers |= found
        try:
            _check_file(self._named, self._used, answers)
        except AnswerError as error:
            self._said.append(str(error))
            return self._used
        return answers


def _check_file(file: Path | None, used: Mapping[str, bool], found: Mapping[str, bool]) -> None:
    """Raise AnswerError if a file of answers is missing, and with it some that were learned."""
    if file is not None and not file.exists() and used.keys() - found.keys():
        raise AnswerError(
            f"answers {str(file)!r} is missing, its answers were learned: put it back, or "
            "resume the crawl with answers= naming its new place"
        )


def _said(fit: TopicFit, answers: dict[str, bool], *, changed: bool) -> str:
    pages, answers_ = plural(fit.pages, "page"), plural(fit.answers, "answer")
    said = f"learned from {fit.pages} {pages} and {fit.answers} {answers_}"
    if fit.answers:
        low, high = (f"{each:.2f}" for each in fit.interval)
        where = f"lies between P {low} and {high}" if low != high else f"is P {low}"
        said += f"; by the answers the threshold {where}"
    if changed and answers and not any(answers.values()):
        said += "; all answers are no: check the keywords, or answer yes for one page"
    return said
