"""One training from the files that a user names to the pack and its report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tres_scrapy.config.extra import require
from tres_scrapy.spiders.fetch import fetch_lists
from tres_scrapy.topic import bilstm
from tres_scrapy.topic.classifier import LINEAR_KINDS, WordVectors
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.shipped import HERE, TOPIC_FILE, VECTORS, shipped_models
from tres_scrapy.topic.topic_folder import find_folder, read_answers
from tres_scrapy.training.document import Selection, read_documents
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from tres_scrapy.training.document import Census, Document
    from tres_scrapy.training.recipe import Trained

WORDS: Final = "words"  # a kind of classifier: few labels
KINDS: Final = (*bilstm.KINDS, *LINEAR_KINDS)
BESIDE: Final = ("svm", "tfidf")

Say = Callable[[str], None]


@dataclass(frozen=True)
class TrainingRun:
    """What a training is given: documents of both sides, answers that win over them, the model.

    `beside` are kinds of models that the pack is compared with; None: BESIDE.
    """

    topic: str
    keywords: Path
    relevant: Sequence[str]
    irrelevant: Sequence[str]
    answers: Sequence[str] = ()
    models: Path = HERE
    vectors: Path | None = None
    classifier: str = bilstm.KINDS[0]
    unlabelled: Path | None = None
    beside: Sequence[str] | None = None
    language: str = "en"
    seed: int = 0
    date: str = ""

    def run(self, settings: Settings, say: Say) -> None:
        """Fetch lists of URLs, train, and write the pack; `say` gets what the user reads.

        Raise TresError or OSError if that fails.
        """
        require("train", "training")
        self._check()
        # importing scikit-learn takes two seconds
        from tres_scrapy.training.recipe import check_place  # noqa: PLC0415

        place = check_place(self.vectors or self.models / VECTORS, self.directory)
        ships = self.vectors is None and not place.exists()
        vectors = WordVectors.load(shipped_models() / VECTORS if ships else place)
        keywords = KeywordSet.read(self.keywords)
        documents, census = self._read(settings, say)
        say(str(census))
        if self.classifier == WORDS:
            self._train_few(keywords, documents, say)
        else:
            for note in self._notes(documents, keywords, vectors):
                say(note)
            if ships:
                _copy_vectors(place)
                say(f"the installed word vectors are copied to {place}")
            self._train(keywords, documents, place, census, say)
        say(f"next: tres classify {self.topic} URL, then tres crawl {self.topic} URL")

    @property
    def directory(self) -> Path:
        """The folder of the pack."""
        return self.models / self.topic

    def _check(self) -> None:
        """Raise TresError if an option is not valid, or has no effect."""
        if self.unlabelled and self.classifier != WORDS:
            raise TresError(f"--unlabelled needs --classifier {WORDS}")
        if self.classifier == WORDS and self.language not in {"en", ""}:
            raise TresError(
                f"--classifier {WORDS} knows only English, not --language {self.language}"
            )
        if self.classifier == WORDS and (self.vectors is not None or self.beside is not None):
            raise TresError(
                f"--classifier {WORDS} uses the installed vectors and is compared with no other "
                "model: leave out --vectors and --beside"
            )
        if not re.fullmatch(r"[\w-]+", self.topic) or self.topic == "vectors":
            raise TresError(
                f"topic {self.topic!r} must be letters, digits, - and _ only, not 'vectors'"
            )
        if not re.fullmatch(r"([a-z]{2})?", self.language):
            raise TresError(f"--language {self.language!r} must be two lower-case letters or empty")

    def _read(self, settings: Settings, say: Say) -> tuple[list[Document], Census]:
        """Return the documents, and how many of them there are of each kind."""
        answered = {file: _answers(Path(file), say) for file in self.answers}
        relevant, both = len(self.relevant), len(self.relevant) + len(self.irrelevant)
        paths = fetch_lists([*self.relevant, *self.irrelevant], settings, answered)
        sides = [Selection.parse(path) for path in paths[:both]]
        pages = zip(paths[both:], answered.values(), strict=True)
        sides += [Selection(Path(path), "url", frozenset(urls)) for path, urls in pages]
        return read_documents(
            sides[:relevant],
            sides[relevant:],
            language=self.language,
            answers={url: yes for answers in answered.values() for url, yes in answers.items()},
        )

    def _notes(
        self, documents: list[Document], keywords: KeywordSet, vectors: WordVectors
    ) -> Iterator[str]:
        """Yield warnings for the user before minutes of training."""
        if unknown := sorted(word for word in keywords.words if word not in vectors):
            yield f"{len(unknown)} keywords have no vector and add no others: {', '.join(unknown)}"
        if alone := sum("#" in document.host for document in documents):
            yield (
                f"{alone} documents have no host, so each counts as its own host: if some are from "
                "one site, the scores will be too good"
            )
        if (self.directory / TOPIC_FILE).exists():
            yield f"the pack in {self.directory} will be replaced"

    def _train_few(self, keywords: KeywordSet, documents: list[Document], say: Say) -> None:
        from tres_scrapy.training.few_labels import train_few  # noqa: PLC0415

        pages = []
        if self.unlabelled:
            pages = [words for *_, words in find_folder(self.unlabelled).read_pages()]
        few = train_few(
            self.directory, keywords, documents, pages, seed=self.seed, date=self.date, say=say
        )
        say(str(few))
        say(f"written to {self.directory}")

    def _train(
        self,
        keywords: KeywordSet,
        documents: list[Document],
        vectors: Path,
        census: Census,
        say: Say,
    ) -> None:
        from tres_scrapy.training.recipe import train_pack  # noqa: PLC0415
        from tres_scrapy.training.report import write_report  # noqa: PLC0415

        trained = train_pack(
            self.directory,
            keywords,
            documents,
            vectors,
            kind=self.classifier,
            beside=list(BESIDE if self.beside is None else self.beside),
            language=self.language,
            seed=self.seed,
            date=self.date,
            say=say,
        )
        report = self.directory / "report.html"
        write_report(report, trained.facts, documents, trained.validations, census)
        say(_summary(trained, documents))
        say(f"written to {self.directory}; open {report} to see scores and mistakes")


def _answers(file: Path, say: Say) -> dict[str, bool]:
    answers = read_answers(file, say)
    if not answers:
        raise TresError(f"answers {str(file)!r} must be a file of lines `yes URL` or `no URL`")
    return answers


def _copy_vectors(place: Path) -> None:
    """Copy the installed vectors to the folder of the pack."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as file:
        file.write((shipped_models() / VECTORS).read_bytes())


def _summary(trained: Trained, documents: list[Document]) -> str:
    from tres_scrapy.training.summary import mistakes, table, verdict  # noqa: PLC0415

    keywords = trained.facts["keywords"]
    lines = [
        f"{len(keywords['expanded'])} keywords found at b = {keywords['b']}. Mean per document: "
        f"{keywords['per_relevant']} if relevant, {keywords['per_irrelevant']} if irrelevant",
        "",
        "fold: relevant documents of all documents; ±: standard deviation between folds",
        table(trained.validations),
    ]
    if wrong := mistakes(documents, trained.validations[0]):
        lines += ["", "most confident mistakes: P(relevant), kind, place, title", *map(str, wrong)]
    return "\n".join([*lines, "", verdict(trained.validations)])
