# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-train`: a topic pack from keywords and labelled documents."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from tres_scrapy.config.config import HERE
from tres_scrapy.page.file import whole_file
from tres_scrapy.spiders.fetch import fetch_lists
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import KINDS, TOPIC_FILE, check_place
from tres_scrapy.topic.shipped import VECTORS, shipped_models
from tres_scrapy.topic.vectors import WordVectors
from tres_scrapy.training.document import read_documents
from tres_scrapy.training.selection import Selection
from tres_scrapy.training.validation import STRIPES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.recipe import Trained


class Command(ScrapyCommand):
    """Train a topic pack."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "TOPIC --keywords FILE --relevant PATH... --irrelevant PATH..."

    def short_desc(self) -> str:
        return "Train a topic pack from keywords and labelled documents"

    def long_desc(self) -> str:
        return (
            "Train a topic pack: the words and the classifier that tell a topic. Documents are "
            "JSON lines (html or text; title, url and host where known), folders of .html and .txt "
            "files, WARC files, or a .txt list of URLs, which are fetched politely and kept beside "
            "it; .gz and .xz are read as they are. FILE:FIELD=VALUE[,VALUE...] takes only the "
            "lines whose field has one of the values; what both sides take is relevant. Give "
            "irrelevant documents of many kinds, near misses too: whatever the crawl will meet. "
            "The pack is tested on hosts it was not trained on; report.html in its folder shows "
            "how well it does and where it errs."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("topic", metavar="TOPIC", help="name of the pack")
        parser.add_argument(
            "--keywords",
            metavar="FILE",
            type=Path,
            required=True,
            help="a word or phrase of the topic per line",
        )
        hosts = f"documents of {STRIPES} hosts or more"
        parser.add_argument("--relevant", metavar="PATH", nargs="+", required=True, help=hosts)
        parser.add_argument("--irrelevant", metavar="PATH", nargs="+", required=True, help=hosts)
        parser.add_argument(
            "--output",
            metavar="DIR",
            type=Path,
            default=HERE,
            help="holds packs and, in a folder beside them, vectors, default: %(default)s",
        )
        parser.add_argument(
            "--vectors",
            metavar="FILE",
            type=Path,
            help=f"made by tres-vectors, in a folder of --output, default: {VECTORS} there, which "
            "is copied from those that ship if it is missing",
        )
        parser.add_argument(
            "--classifier",
            choices=KINDS,
            default=KINDS[0],
            help=f"default: {KINDS[0]}; tfidf takes seconds",
        )
        parser.add_argument(
            "--beside",
            metavar="KIND",
            nargs="*",
            choices=KINDS,
            default=["svm", "tfidf"],
            help="models to compare it with, default: svm tfidf",
        )
        parser.add_argument(
            "--language",
            metavar="CODE",
            default="en",
            help='documents in others are left out, "" keeps all, default: en',
        )
        seed = "of folds and weights: the same seed makes the same pack, default: %(default)s"
        parser.add_argument("--seed", metavar="N", type=int, default=0, help=seed)
        parser.add_argument("--date", default="", help="recorded in the pack")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            self._train(opts)
        except (OSError, ValueError) as error:
            sys.exit(f"scrapy tres-train: {error}")
        except KeyboardInterrupt:
            sys.exit("scrapy tres-train: interrupted")

    def _train(self, opts: argparse.Namespace) -> None:
        directory = opts.output / _checked(opts.topic, opts.language)
        place = check_place(opts.vectors or opts.output / VECTORS, directory)
        ships = opts.vectors is None and not place.exists()
        vectors = WordVectors.load(shipped_models() / VECTORS if ships else place)
        keywords = KeywordSet.read(opts.keywords)
        assert self.settings is not None
        paths = fetch_lists([*opts.relevant, *opts.irrelevant], self.settings)
        sides = [Selection.parse(path) for path in paths]
        count = len(opts.relevant)
        documents, census = read_documents(sides[:count], sides[count:], language=opts.language)
        print(census, flush=True)
        for note in _notes(directory, documents, keywords, vectors):
            print(note, flush=True)
        if ships:
            _copy_vectors(place)
        # two seconds of scikit-learn that no other command should pay
        from tres_scrapy.training.recipe import train_pack  # noqa: PLC0415
        from tres_scrapy.training.training_report import write_report  # noqa: PLC0415

        trained = train_pack(
            directory,
            keywords,
            documents,
            place,
            kind=opts.classifier,
            beside=opts.beside,
            language=opts.language,
            seed=opts.seed,
            date=opts.date,
        )
        report = directory / "report.html"
        write_report(report, trained.facts, documents, trained.validations, census)
        _print_summary(trained, documents)
        print(f"written to {directory}; open {report} to see how well it does and where it errs")


def _notes(
    directory: Path, documents: list[Document], keywords: KeywordSet, vectors: WordVectors
) -> Iterator[str]:
    """Yield what a user should know before minutes of training."""
    if unknown := sorted(word for word in keywords.words if word not in vectors):
        yield f"{len(unknown)} keywords have no vector and expand nothing: {', '.join(unknown)}"
    if alone := sum("#" in document.host for document in documents):
        yield (
            f"{alone} documents name no host and stand for themselves: if some are of one site, "
            "the figures will be better than the pack"
        )
    if (directory / TOPIC_FILE).exists():
        yield f"the pack in {directory} will be replaced"


def _copy_vectors(place: Path) -> None:
    """Copy the vectors that ship to where the packs of a folder can name them."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as file:
        file.write((shipped_models() / VECTORS).read_bytes())
    print(f"the word vectors that ship are copied to {place}", flush=True)


def _checked(topic: str, language: str) -> str:
    """Return the name of a topic; raise ValueError for one, or a language, that cannot be."""
    if not re.fullmatch(r"[\w-]+", topic) or topic == "vectors":
        raise ValueError(f"topic {topic!r} must be letters, digits, - and _ only, not 'vectors'")
    if not re.fullmatch(r"([a-z]{2})?", language):
        raise ValueError(f"--language {language!r} must be a code of two small letters, or empty")
    return topic


def _print_summary(trained: Trained, documents: list[Document]) -> None:
    from tres_scrapy.training.summary import mistakes, table, verdict  # noqa: PLC0415

    keywords = trained.facts["keywords"]
    print(
        f"{len(keywords['expanded'])} keywords found at b = {keywords['b']}; a relevant document "
        f"holds {keywords['per_relevant']}, another {keywords['per_irrelevant']} of them\n"
    )
    print("a fold: its relevant documents, of how many; ± is the deviation between folds")
    print(table(trained.validations))
    if wrong := mistakes(documents, trained.validations[0]):
        print("\nmost confident mistakes: P(relevant), kind, place, title")
        print(*wrong, sep="\n")
    print(f"\n{verdict(trained.validations)}")
