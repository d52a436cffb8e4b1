# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-vectors`: train word vectors on texts, or convert existing ones."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from tqdm import tqdm

from tres_scrapy.commands.calling import named
from tres_scrapy.topic.vectors import MOST_DIMENSIONS, MOST_WORDS, WordVectors
from tres_scrapy.training.document import Sentences
from tres_scrapy.training.word_vectors import MAX_WORDS, read_vectors, train_vectors
from tres_scrapy.url.message import plainly

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


LIMITS: Final = {"words": MOST_WORDS, "dimension": MOST_DIMENSIONS, "epochs": 100, "workers": 64}


class Command(ScrapyCommand):
    """Train or convert word vectors."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "(FILE... | --from FILE|NAME) --output FILE"

    def short_desc(self) -> str:
        return "Train word vectors on texts, or convert word2vec or GloVe vectors"

    def long_desc(self) -> str:
        return (
            "Write word vectors for topic packs: lower-case words, one byte per number. Train them "
            "by skip-gram on text files, or convert existing vectors with --from. --from takes a "
            "word2vec file (text or binary) or a GloVe file, both also as .gz, or a name of "
            "gensim's downloader such as glove-wiki-gigaword-100, which is saved in ~/gensim-data. "
            "Of KeyedVectors of gensim, give what `save_word2vec_format` writes."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-vectors pages.jsonl --output models/vectors/my.npz"
        parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="texts to train on")
        parser.add_argument("--from", dest="source", metavar="FILE|NAME", help="vectors to convert")
        parser.add_argument(
            "--output", metavar="FILE", type=Path, required=True, help="file to write"
        )
        words = "keep the N most frequent words (default: %(default)s, 5 MB at 100 dimensions)"
        parser.add_argument("--words", metavar="N", type=int, default=MAX_WORDS, help=words)
        training = parser.add_argument_group("training")
        training.add_argument(
            "--dimension",
            metavar="N",
            type=int,
            default=100,
            help="numbers per vector (default: 100)",
        )
        training.add_argument(
            "--epochs", metavar="N", type=int, default=5, help="passes over the texts (default: 5)"
        )
        training.add_argument(
            "--seed", metavar="N", type=int, default=1, help="random seed (default: 1)"
        )
        workers = "threads (default: 1; with more, results differ from run to run)"
        training.add_argument("--workers", metavar="N", type=int, default=1, help=workers)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args or bool(opts.files) == bool(opts.source):
            said = named([*map(str, opts.files), *args])
            raise UsageError(f"give texts, or --from FILE|NAME, not {said}")
        try:
            _check(opts)
            opts.output.parent.mkdir(parents=True, exist_ok=True)
            vectors = read_vectors(opts.source, words=opts.words) if opts.source else _train(opts)
            vectors.save(opts.output)
        except (OSError, ValueError) as error:
            sys.exit(f"scrapy tres-vectors: {plainly(error)}")
        n, d = vectors.matrix.shape
        size = opts.output.stat().st_size / 1e6
        print(f"{n} words of {d} dimensions written to {opts.output}, {size:.1f} MB")
        print(f"next: tres train TOPIC --vectors {opts.output} ...")


def _check(opts: argparse.Namespace) -> None:
    for name, most in LIMITS.items():
        if not 1 <= getattr(opts, name) <= most:
            msg = f"--{name} {getattr(opts, name)} must be 1 or more, {most} at most"
            raise ValueError(msg)
    if opts.output.is_dir():
        msg = f"--output {str(opts.output)!r} is a folder: name a file"
        raise ValueError(msg)


def _train(opts: argparse.Namespace) -> WordVectors:
    return train_vectors(
        _Passes(Sentences(opts.files), opts.epochs),
        seed=opts.seed,
        words=opts.words,
        dimension=opts.dimension,
        epochs=opts.epochs,
        workers=opts.workers,
    )


class _Passes:
    """Sentences that can be read repeatedly: for the vocabulary, then for each epoch."""

    def __init__(self, sentences: Sentences, epochs: int) -> None:
        self._sentences = sentences
        names = (f"epoch {n} of {epochs}" for n in range(1, epochs + 1))
        self._names = chain(["vocabulary"], names)
        self._total: int | None = None

    def __iter__(self) -> Iterator[list[str]]:
        with tqdm(desc=next(self._names), total=self._total, unit=" words", unit_scale=True) as bar:
            for sentence in self._sentences:
                bar.update(len(sentence))
                yield sentence
            self._total = int(bar.n)
