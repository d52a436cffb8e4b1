"""The folder of a topic that a crawl learns: its pack, pages, questions and answers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Final

from tres_scrapy.topic.answer import AnswerError, read_answers
from tres_scrapy.topic.pack import PackError
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.topic.word_topic import THRESHOLD, PageWords
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import printable
from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from tres_scrapy.topic.keyword import KeywordSet
    from tres_scrapy.topic.word_topic import TopicFit

SUFFIX: Final = ".topic"  # of the folder beside a crawl's JSON lines
IN_JOB: Final = "topic"  # its name in JOBDIR
PATIENCE: Final = 60.0  # seconds to wait for another process that learns the topic
INTERVAL: Final = 0.1  # seconds from one try to the next
LEARNED: Final = 30  # words that a pack names


class WordFolder:
    """The files of a topic; each is complete at any moment, so a killed crawl can be resumed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pack = path / "pack"
        self.questions = path / "questions.jsonl"
        self.answers = path / "answers.txt"
        self._pages = path / "pages.jsonl"
        self._state = path / "state.json"
        self._lock = path / "lock"

    @contextmanager
    def reserved(self, *, patience: float = 0.0) -> Iterator[bool]:
        """Yield whether the topic is this process's alone; wait `patience` seconds for that.

        The end of a process, even by a kill, leaves the topic to others.
        """
        last = monotonic() + patience
        with self._lock.open("ab") as file:
            while not (alone := _locked(file)) and monotonic() < last:
                sleep(INTERVAL)
            yield alone

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the topic for this process alone; raise PackError if another crawl has it.

        The judging process of a killed crawl may need some time to end.
        """
        with self.reserved(patience=PATIENCE) as alone:
            if not alone:
                raise PackError(
                    f"the topic in {str(self.path)!r} is in use by another crawl: wait for its "
                    "end, or give another output or JOBDIR"
                )
            yield

    def write_pack(
        self, name: str, keywords: KeywordSet, near: Iterable[str], fit: TopicFit
    ) -> None:
        """Write the model of a fit as the topic's pack."""
        facts = word_facts(name, keywords, near, fit)
        write_pack(self.pack, facts, fit.model)

    def read_pages(self, *, repair: bool = False) -> Iterator[tuple[int, str, PageWords]]:
        """Yield number, fingerprint and sheet of each kept page; leave out a torn last line.

        `repair` removes that line; only the process that learns may, for others write it.
        """
        if not self._pages.exists():
            return
        with self._pages.open("r+b" if repair else "rb") as file:
            for line in iter(file.readline, b""):
                if not line.endswith(b"\n"):
                    if repair:
                        file.truncate(file.tell() - len(line))  # the process was killed meanwhile
                    return
                number, mark, *fields = json.loads(line)
                yield number, mark, PageWords(*fields)

    def known(self, urls: Iterable[str]) -> list[str]:
        """Return the addresses of kept pages that these are; raise AnswerError if one is not."""
        pages = {sheet.url for *_, sheet in self.read_pages()}
        found = []
        for url in urls:
            page = url if url in pages else canonicalise(url)
            if page is None or page not in pages:
                raise AnswerError(
                    f"{printable(url)} is not a page that the crawl can learn from: only pages it "
                    "has fetched and kept teach it; copies and pages of hardly a word do not"
                )
            found.append(page)
        return found

    def add_page(self, number: int, mark: str, sheet: PageWords) -> None:
        """Append a page, before its verdict leaves this process."""
        with self._pages.open("ab") as file:
            file.write(_line(number, mark, sheet))

    def keep_pages(self, pages: Iterable[tuple[int, str, PageWords]]) -> None:
        """Write these pages only."""
        with whole_file(self._pages) as file:
            file.writelines(_line(*page) for page in pages)

    def read_state(self) -> dict[str, Any]:
        """Return what `write_state` wrote last, {} at first; raise AnswerError if it is damaged."""
        if not self._state.exists():
            return {}
        try:
            state: dict[str, Any] = json.loads(self._state.read_bytes())
        except ValueError as error:
            raise AnswerError(f"{self._state} is damaged: {error}") from None
        return state

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write a few numbers, after all else that belongs to them."""
        with whole_file(self._state) as file:
            file.write(json.dumps(state).encode())

    def write_questions(self, asked: Iterable[tuple[PageWords, float]]) -> None:
        """Write the pages about which an answer would help."""
        with whole_file(self.questions) as file:
            for sheet, probability in asked:
                row = {"url": sheet.url, "probability": round(probability, 4)}
                row |= {"title": sheet.title, "text": sheet.lead}
                file.write(json.dumps(row).encode() + b"\n")

    def read_questions(self) -> list[dict[str, Any]]:
        """Return the questions of the last fit; raise AnswerError without questions."""
        try:
            lines = self.questions.read_bytes().splitlines()
        except FileNotFoundError:
            raise AnswerError("no questions yet: the crawl has not fetched a page") from None
        return [json.loads(line) for line in lines]


def _locked(file: IO[bytes]) -> bool:
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def word_facts(
    name: str, keywords: KeywordSet, near: Iterable[str], fit: TopicFit
) -> dict[str, Any]:
    """Return what `topic.toml` says of a fit."""
    model = fit.model
    best = (-model.weights[1]).argsort(kind="stable")[:LEARNED].tolist()
    return {
        "name": name,
        "language": "en",
        "threshold": THRESHOLD,
        "keywords": {
            "given": sorted(keywords.words),
            "phrases": list(keywords.phrases),
            "expanded": sorted(near),
        },
        "classifier": {"kind": model.kind, **fit.calibration._asdict(), **model.sizes()},
        "crawl": {
            "pages": fit.pages,
            "answers": fit.answers,
            "share_of_relevant_pages": round(fit.share, 4),
            "agreement_with_keywords": round(fit.agreement, 4),
            "threshold_interval": [round(each, 4) for each in fit.interval],
            "heaviest_words": [model.words[row] for row in best],
        },
    }


def find_folder(run: Path) -> WordFolder:
    """Return the folder of a topic from a JOBDIR, a JSON lines file, or its own path.

    Raise AnswerError if the crawl has none.
    """
    run = run.resolve()  # "." has no name
    for path in (run / IN_JOB, run.with_suffix(SUFFIX), run):
        if (folder := WordFolder(path)).pack.is_dir():
            return folder
    if not run.exists():
        raise AnswerError(f"{str(run)!r} does not exist")
    raise AnswerError(
        f"{str(run)!r} has no topic that learns: give the JOBDIR or the JSON lines file of a crawl "
        "with keywords; of a crawl with --jobdir, the JOBDIR"
    )


def unlearned(folder: WordFolder) -> int:
    """Return how many answers of a topic's own file its model does not know yet."""
    answers, _ = read_answers(folder.answers)
    known = folder.read_state().get("answers", {})
    return sum(known.get(url) != answer for url, answer in answers.items())


def _line(number: int, mark: str, sheet: PageWords) -> bytes:
    return json.dumps([number, mark, *sheet], separators=(",", ":")).encode() + b"\n"
