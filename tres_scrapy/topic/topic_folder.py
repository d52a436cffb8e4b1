"""The folder of a topic that a crawl learns: its pack, pages, questions and answers.

A file of answers has lines of `yes URL` or `no URL`.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Final

from tres_scrapy.topic.keyword_topic import THRESHOLD, PageWords
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError, counted, plainly, printable
from tres_scrapy.url.whole_file import append, drop_torn_line, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from tres_scrapy.topic.keyword import KeywordSet
    from tres_scrapy.topic.keyword_topic import TopicFit
    from tres_scrapy.topic.question import Question

SUFFIX: Final = ".topic"  # of the folder beside a crawl's JSON lines
IN_JOB: Final = "topic"  # its name in JOBDIR
PATIENCE: Final = 60.0  # seconds to wait for another process that learns the topic
INTERVAL: Final = 0.1  # seconds from one try to the next
NAMED_WORDS: Final = 30  # of a model, in its pack
ANSWER: Final = re.compile(r"(yes|no|y|n)\s+(\S+)", re.IGNORECASE)


class TopicFolder:
    """The files of a topic; each is complete at any moment, so a killed crawl can be resumed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pack = path / "pack"
        self.questions = path / "questions.jsonl"
        self.answers = path / "answers.txt"
        self.answered = path / "answered.jsonl"  # by a program
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
    def held(self) -> Iterator[bool]:
        """Hold the topic for this process alone; raise TresError if another crawl has it.

        The judging process of a killed crawl may need some time to end.
        """
        with self.reserved(patience=PATIENCE) as alone:
            if not alone:
                raise TresError(
                    f"the topic in {str(self.path)!r} is in use by another crawl: wait for its "
                    "end, or give another output or JOBDIR"
                )
            yield alone

    def write_pack(
        self, name: str, keywords: KeywordSet, near: Iterable[str], fit: TopicFit
    ) -> None:
        """Write the model of a fit as the topic's pack."""
        facts = topic_facts(name, keywords, near, fit)
        write_pack(self.pack, facts, fit.model)

    def read_pages(self, *, repair: bool = False) -> Iterator[tuple[int, str, PageWords]]:
        """Yield number, fingerprint and words of each kept page; leave out a torn last line.

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

    def find_pages(self, urls: Iterable[str]) -> list[str]:
        """Return the addresses of kept pages that these are; raise TresError if one is not."""
        kept = {page.url for *_, page in self.read_pages()}
        found = []
        for url in urls:
            page = url if url in kept else canonicalise(url)
            if page is None or page not in kept:
                raise TresError(
                    f"{printable(url)} is not a page that the crawl can learn from: only pages it "
                    "has fetched and kept teach it; copies and pages of hardly a word do not"
                )
            found.append(page)
        return found

    def add_page(self, number: int, mark: str, page: PageWords) -> None:
        """Append a page, before its verdict leaves this process."""
        append(self._pages, _line(number, mark, page))

    def keep_pages(self, pages: Iterable[tuple[int, str, PageWords]]) -> None:
        """Write these pages only."""
        with whole_file(self._pages) as file:
            file.writelines(_line(*page) for page in pages)

    def read_state(self) -> dict[str, Any]:
        """Return what `write_state` wrote last, {} at first; raise TresError if it is damaged."""
        if not self._state.exists():
            return {}
        try:
            state: dict[str, Any] = json.loads(self._state.read_bytes())
        except ValueError as error:
            raise TresError(f"{self._state} is damaged: {error}") from None
        return state

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write a few numbers, after all else that belongs to them."""
        with whole_file(self._state) as file:
            file.write(json.dumps(state).encode())

    def write_questions(self, asked: Iterable[Question]) -> None:
        """Write the pages about which an answer would help."""
        with whole_file(self.questions) as file:
            for page, probability, why in asked:
                row = {"url": page.url, "probability": round(probability, 4)}
                row |= {"why": why, "title": page.title, "text": page.lead}
                file.write(json.dumps(row).encode() + b"\n")

    def read_questions(self) -> list[dict[str, Any]]:
        """Return the questions of the last fit; raise TresError without questions."""
        try:
            lines = self.questions.read_bytes().splitlines()
        except FileNotFoundError:
            raise TresError("no questions yet: the crawl has not fetched a page") from None
        return [json.loads(line) for line in lines]

    def open_questions(self) -> list[dict[str, Any]]:
        """Return the questions without an answer; raise TresError without questions."""
        known = read_answers(self.answers)
        return [each for each in self.read_questions() if each["url"] not in known]

    def read_answered(self) -> list[dict[str, Any]]:
        """Return the pages that a program was asked about, with its answers and reasons."""
        drop_torn_line(self.answered)
        lines = self.answered.read_bytes().splitlines() if self.answered.exists() else []
        return [json.loads(line) for line in lines]

    def add_answered(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add pages that a program was asked about."""
        append(self.answered, "".join(json.dumps(row) + "\n" for row in rows).encode())


def read_answers(path: Path, say: Callable[[str], None] = lambda line: None) -> dict[str, bool]:
    """Return whether each URL is relevant; of several lines about a URL the last counts.

    `say` receives what is wrong: lines that are not `yes URL` or `no URL`, which are left out, and
    URLs with yes and no. Raise TresError if the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TresError(
            f"answers {path.name!r} cannot be read: {plainly(error, named=True)}"
        ) from None
    found: dict[str, bool] = {}
    doubtful: list[str] = []
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = ANSWER.fullmatch(line.strip())
        if match is None or canonicalise(match[2]) is None:
            wrong.append(f"line {number}: {printable(line.strip())[:60]!r}")
            continue
        url, answer = match[2], match[1].lower().startswith("y")
        if found.setdefault(url, answer) != answer:
            doubtful.append(url)
        found[url] = answer
    if wrong:
        more = f", and {len(wrong) - 1} more: they are" if wrong[1:] else ": it is"
        say(f"answers {path.name!r}, {wrong[0]} must be `yes URL` or `no URL`{more} left out")
    if count := len({*doubtful}):
        say(
            f"answers {path.name!r}: yes and no for {counted(count, 'URL')}, the first is "
            f"{printable(doubtful[0])}; the last line about each counts"
        )
    return found


def add_answers(path: Path, answers: Mapping[str, bool]) -> None:
    """Add whether each URL is relevant to a file of answers."""
    with path.open("a+b") as file:
        if file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")  # an editor may leave the last line open
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{'yes' if each else 'no'} {url}\n" for url, each in answers.items())


def _locked(file: IO[bytes]) -> bool:
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def topic_facts(
    name: str, keywords: KeywordSet, near: Iterable[str], fit: TopicFit
) -> dict[str, Any]:
    """Return what `topic.toml` says of a fit."""
    model, close = fit.model, sorted(near)
    best = (-model.weights[1]).argsort(kind="stable")[:NAMED_WORDS].tolist()
    return {
        "name": name,
        "language": "en" if close else "",  # near words are English
        "threshold": THRESHOLD,
        "keywords": {
            "given": sorted(keywords.words),
            "phrases": list(keywords.phrases),
            "expanded": close,
        },
        "classifier": {
            "kind": model.kind,
            **fit.calibration._asdict(),
            **model.sizes(),
            **({"prior_weight": fit.prior_weight} if fit.prior_weight else {}),
            **({} if fit.mean_prior is None else {"mean_prior": fit.mean_prior}),
        },
        "crawl": {
            "pages": fit.pages,
            "answers": fit.answers,
            **fit.shares,
            "heaviest_words": [model.words[row] for row in best],
        },
    }


def find_folder(run: Path, output: Path | None = None) -> TopicFolder:
    """Return the folder of a topic from a JOBDIR, a JSON lines file, or its own path.

    Several crawls to one `output` learn in one folder, beside it. Raise TresError if there is none.
    """
    run = run.resolve()  # "." has no name
    beside = [] if output is None else [output.with_suffix(SUFFIX)]
    for path in (run / IN_JOB, run.with_suffix(SUFFIX), run, *beside):
        if (folder := TopicFolder(path)).pack.is_dir():
            return folder
    if not run.exists():
        raise TresError(f"{str(run)!r} does not exist")
    raise TresError(
        f"{str(run)!r} has no topic that learns: give the JOBDIR or the JSON lines file of a crawl "
        "with keywords, or with a record; of a crawl with --jobdir, the JOBDIR"
    )


def count_unlearned(folder: TopicFolder) -> int:
    """Return how many answers of a topic's own file its model does not know yet."""
    answers = read_answers(folder.answers)
    known = folder.read_state().get("answers", {})
    return sum(known.get(url) != answer for url, answer in answers.items())


def _line(number: int, mark: str, page: PageWords) -> bytes:
    return json.dumps([number, mark, *page], separators=(",", ":")).encode() + b"\n"
