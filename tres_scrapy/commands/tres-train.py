# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-train`: train a topic pack from keywords and labelled documents."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.commands import ScrapyCommand

from tres_scrapy.config.extra import require
from tres_scrapy.spiders.fetch import fetch_lists
from tres_scrapy.topic import bilstm
from tres_scrapy.topic.classifier import LINEAR_KINDS
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.shipped import HERE, TOPIC_FILE, VECTORS, shipped_models
from tres_scrapy.topic.topic_folder import find_folder, read_answers
from tres_scrapy.topic.vectors import WordVectors
from tres_scrapy.training.document import read_documents
from tres_scrapy.training.sample import STRIPES
from tres_scrapy.training.selection import Selection
from tres_scrapy.url.message import plainly
from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.recipe import Trained

WORDS: Final = "words"  # a kind of --classifier: few labels
BESIDE: Final = ["svm", "tfidf"]


class Command(ScrapyCommand):
    """Train a topic pack."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "TOPIC --keywords FILE --relevant PATH... --irrelevant PATH... [--answers FILE]"

    def short_desc(self) -> str:
        return "Train a topic pack from keywords and labelled documents"

    def long_desc(self) -> str:
        return (
            "Train a topic pack: the keywords and the classifier that recognise a topic. A PATH is "
            "a JSON lines file (html or text, and title, url and host if known), a folder of "
            ".html, .txt and .pdf files, a WARC file, or a .txt list of URLs. The URLs are fetched "
            "politely, and the pages are saved beside the list. Files may be .gz or .xz. "
            "FILE:FIELD=VALUE[,VALUE...] selects the lines whose field has one of the values, in "
            "which * stands for any text; a document selected by both sides is relevant. Give "
            "irrelevant documents of all kinds that the crawl may meet, near misses included. The "
            "pack is tested on hosts that it was not trained on. report.html in its folder shows "
            "the scores and the mistakes."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = (
            "Example: scrapy tres-train tea --keywords k.txt --relevant a/ --irrelevant b/"
        )
        parser.add_argument("topic", metavar="TOPIC", help="name of the pack")
        parser.add_argument(
            "--keywords",
            metavar="FILE",
            type=Path,
            required=True,
            help="text file with one word or phrase of the topic per line",
        )
        hosts = f"documents from at least {STRIPES} hosts"
        parser.add_argument("--relevant", metavar="PATH", nargs="+", default=[], help=hosts)
        parser.add_argument("--irrelevant", metavar="PATH", nargs="+", default=[], help=hosts)
        parser.add_argument(
            "--answers",
            metavar="FILE",
            nargs="+",
            default=[],
            help="answers of the live page or of tres-answer, `yes URL` or `no URL`; they win over "
            "--relevant and --irrelevant. Pages whose text the crawl did not keep are fetched",
        )
        parser.add_argument(
            "--models",
            "--output",
            metavar="DIR",
            type=Path,
            default=HERE,
            help="folder of topic packs, for the new pack (default: %(default)s)",
        )
        parser.add_argument(
            "--vectors",
            metavar="FILE",
            type=Path,
            help=f"word vectors from tres-vectors, in the folder of --models (default: {VECTORS} "
            "there; the installed vectors are copied if it is missing)",
        )
        parser.add_argument(
            "--classifier",
            choices=[*bilstm.KINDS, *LINEAR_KINDS, WORDS],
            default=bilstm.KINDS[0],
            help=f"kind of model (default: {bilstm.KINDS[0]}); tfidf takes a minute at most; "
            f"{WORDS} learns from 20 documents and the keywords",
        )
        parser.add_argument(
            "--unlabelled",
            metavar="RUN",
            type=Path,
            help=f"with --classifier {WORDS}: JOBDIR or JSON lines file of a crawl from keywords, "
            "whose pages help without labels",
        )
        parser.add_argument(
            "--beside",
            metavar="KIND",
            nargs="*",
            choices=[*bilstm.KINDS, *LINEAR_KINDS],
            help=f"models to compare it with (default: {' '.join(BESIDE)})",
        )
        parser.add_argument(
            "--language",
            metavar="CODE",
            default="en",
            help='skip documents in other languages; "" keeps all (default: en)',
        )
        seed = "random seed; the same seed makes the same pack (default: %(default)s)"
        parser.add_argument("--seed", metavar="N", type=int, default=0, help=seed)
        parser.add_argument("--date", default="", help="date to record in the pack")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            self._train(opts)
        except (OSError, ValueError) as error:
            sys.exit(f"scrapy tres-train: {plainly(error)}")
        except KeyboardInterrupt:
            sys.exit("scrapy tres-train: interrupted")

    def _train(self, opts: argparse.Namespace) -> None:
        require("train", "training")
        if opts.unlabelled and opts.classifier != WORDS:
            raise ValueError(f"--unlabelled needs --classifier {WORDS}")
        if opts.classifier == WORDS:
            _check_few(opts)
        # importing scikit-learn takes two seconds
        from tres_scrapy.topic.pack_file import check_place  # noqa: PLC0415
        from tres_scrapy.training.recipe import train_pack  # noqa: PLC0415
        from tres_scrapy.training.report import write_report  # noqa: PLC0415

        directory = opts.models / _checked(opts.topic, opts.language)
        place = check_place(opts.vectors or opts.models / VECTORS, directory)
        ships = opts.vectors is None and not place.exists()
        vectors = WordVectors.load(shipped_models() / VECTORS if ships else place)
        keywords = KeywordSet.read(opts.keywords)
        assert self.settings is not None
        answered = {file: _answers(Path(file)) for file in opts.answers}
        given = len(opts.relevant), len(opts.relevant) + len(opts.irrelevant)
        paths = fetch_lists([*opts.relevant, *opts.irrelevant], self.settings, answered)
        sides = [Selection.parse(path) for path in paths[: given[1]]]
        pages = zip(paths[given[1] :], answered.values(), strict=True)
        sides += [Selection(Path(path), "url", frozenset(urls)) for path, urls in pages]
        documents, census = read_documents(
            sides[: given[0]],
            sides[given[0] :],
            language=opts.language,
            answers={url: yes for answers in answered.values() for url, yes in answers.items()},
        )
        print(census, flush=True)
        if opts.classifier == WORDS:
            _train_few(directory, keywords, documents, opts)
            return
        for note in _notes(directory, documents, keywords, vectors):
            print(note, flush=True)
        if ships:
            _copy_vectors(place)
        trained = train_pack(
            directory,
            keywords,
            documents,
            place,
            kind=opts.classifier,
            beside=BESIDE if opts.beside is None else opts.beside,
            language=opts.language,
            seed=opts.seed,
            date=opts.date,
            say=partial(print, flush=True),
        )
        report = directory / "report.html"
        write_report(report, trained.facts, documents, trained.validations, census)
        _print_summary(trained, documents)
        print(f"written to {directory}; open {report} to see scores and mistakes")
        print(f"next: tres classify {opts.topic} URL, then tres crawl {opts.topic} URL")


def _check_few(opts: argparse.Namespace) -> None:
    """Raise ValueError if an option has no effect on a model of few labels."""
    if opts.language not in {"en", ""}:
        raise ValueError(f"--classifier {WORDS} knows only English, not --language {opts.language}")
    if opts.vectors is not None or opts.beside is not None:
        raise ValueError(
            f"--classifier {WORDS} uses the installed vectors and is compared with no other model: "
            "leave out --vectors and --beside"
        )


def _train_few(
    directory: Path, keywords: KeywordSet, documents: list[Document], opts: argparse.Namespace
) -> None:
    from tres_scrapy.training.few_labels import train_few  # noqa: PLC0415

    pages = []
    if opts.unlabelled:
        pages = [page for *_, page in find_folder(opts.unlabelled).read_pages()]
    options = {"seed": opts.seed, "date": opts.date}
    say = partial(print, flush=True)
    print(train_few(directory, keywords, documents, pages, **options, say=say))
    print(f"written to {directory}")
    print(f"next: tres classify {opts.topic} URL, then tres crawl {opts.topic} URL")


def _answers(file: Path) -> dict[str, bool]:
    answers, _ = read_answers(file)
    if not answers:
        raise ValueError(f"answers {str(file)!r} must be a file of lines `yes URL` or `no URL`")
    return answers


def _notes(
    directory: Path, documents: list[Document], keywords: KeywordSet, vectors: WordVectors
) -> Iterator[str]:
    """Yield warnings for the user before minutes of training."""
    if unknown := sorted(word for word in keywords.words if word not in vectors):
        yield f"{len(unknown)} keywords have no vector and add no others: {', '.join(unknown)}"
    if alone := sum("#" in document.host for document in documents):
        yield (
            f"{alone} documents have no host, so each counts as its own host: if some are from "
            "one site, the scores will be too good"
        )
    if (directory / TOPIC_FILE).exists():
        yield f"the pack in {directory} will be replaced"


def _copy_vectors(place: Path) -> None:
    """Copy the installed vectors to the folder of the pack."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as file:
        file.write((shipped_models() / VECTORS).read_bytes())
    print(f"the installed word vectors are copied to {place}", flush=True)


def _checked(topic: str, language: str) -> str:
    """Return the topic; raise ValueError if the topic or the language is not valid."""
    if not re.fullmatch(r"[\w-]+", topic) or topic == "vectors":
        raise ValueError(f"topic {topic!r} must be letters, digits, - and _ only, not 'vectors'")
    if not re.fullmatch(r"([a-z]{2})?", language):
        raise ValueError(f"--language {language!r} must be two lower-case letters or empty")
    return topic


def _print_summary(trained: Trained, documents: list[Document]) -> None:
    from tres_scrapy.training.summary import mistakes, table, verdict  # noqa: PLC0415

    keywords = trained.facts["keywords"]
    print(
        f"{len(keywords['expanded'])} keywords found at b = {keywords['b']}. Mean per document: "
        f"{keywords['per_relevant']} if relevant, {keywords['per_irrelevant']} if irrelevant\n"
    )
    print("fold: relevant documents of all documents; ±: standard deviation between folds")
    print(table(trained.validations))
    if wrong := mistakes(documents, trained.validations[0]):
        print("\nmost confident mistakes: P(relevant), kind, place, title")
        print(*wrong, sep="\n")
    print(f"\n{verdict(trained.validations)}")
